"""What follows from a set of in-sync replicas: pure functions, the same for one replica and for several.

The leader counts with the *maximal* set while a change of it is on its way to the metadata store: a replica that may
already be in the committed set holds the high watermark back, so that whoever is elected from that set has every
acknowledged record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def high_watermark(isr: Iterable[int], end_offsets: Mapping[int, int]) -> int:
    """The offset below which every in-sync replica has every record: the smallest of their log end offsets (exclusive).

    A replica that has not reported counts as having nothing. Kafka's `Partition.maybeIncrementLeaderHW`.
    """
    return min((end_offsets.get(replica, 0) for replica in isr), default=0)


def effective_min_insync(min_insync_replicas: int, replicas_count: int) -> int:
    """min.insync.replicas, but never more than there are replicas: since Kafka 4.0 acks=all works on a lone replica."""
    return min(min_insync_replicas, replicas_count)
