"""Decisions about in-sync replicas: pure functions, the same for one replica and for several.

While a change of the set is on its way to the metadata store, the leader uses the *maximal* set. A replica that may
already be in the committed set thus limits the high watermark, so that any leader elected from that set has every
acknowledged record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def high_watermark(isr: Iterable[int], end_offsets: Mapping[int, int]) -> int:
    """The smallest log end offset (exclusive) of the in-sync replicas: each of them has every record below it.

    A replica that has not reported counts with offset 0. Kafka's `Partition.maybeIncrementLeaderHW`.
    """
    return min((end_offsets.get(replica, 0) for replica in isr), default=0)


def effective_min_insync(min_insync_replicas: int, replicas_count: int) -> int:
    """min.insync.replicas, at most the number of replicas: since Kafka 4.0 acks=all works with a single replica."""
    return min(min_insync_replicas, replicas_count)
