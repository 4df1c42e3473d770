"""Decisions about in-sync replicas: pure functions, the same for one replica and for several.

```
high watermark   the smallest log end offset of the maximal ISR, and of replicas that are about to join it
shrink           remove replicas that have not reached the leader's end for replica.lag.time.max.ms
expand           add a replica whose end has reached both the high watermark and the start of the leader epoch
```

While a change of the set is on its way to the metadata store, the leader uses the *maximal* set: committed and proposed
members. A replica that may already be in the committed set thus limits the high watermark, so that any leader elected
from that set has every acknowledged record.

A replica that ends below the start of the leader epoch cannot join. What it has may end at an earlier epoch's high
watermark, and the leader's log has more of that epoch, which may be acknowledged already. Kafka's `Partition` has the
same rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from odradek.broker.replication.replica_state import ReplicaState

UNKNOWN_OFFSET = -1


def high_watermark(
    leader_end: int, followers: Mapping[int, ReplicaState], maximal_isr: Collection[int], joining: Collection[int]
) -> int:
    """The smallest log end offset (exclusive) of the leader, the maximal ISR and the replicas about to join it.

    A member that has not fetched in this leader epoch has offset -1. Kafka's `Partition.maybeIncrementLeaderHW`.
    """
    end = leader_end
    for replica, state in followers.items():
        if state.log_end_offset < end and (replica in maximal_isr or replica in joining):
            end = state.log_end_offset
    return end


def lagging(
    isr: Collection[int],
    followers: Mapping[int, ReplicaState],
    leader_end: int,
    now: float,
    lag_time_max: float,
) -> set[int]:
    """The followers in the ISR that have not reached the leader's end for `lag_time_max` seconds.

    Kafka's `Partition.getOutOfSyncReplicas`.
    """
    return {
        replica
        for replica, state in followers.items()
        if replica in isr and not state.is_caught_up(leader_end, now, lag_time_max)
    }


def has_reached(end: int, high_watermark: int, epoch_start_offset: int) -> bool:
    """Whether a follower that ends at `end` may join the ISR; an epoch start of -1 is not known yet.

    Kafka's `Partition.isFollowerInSync`.
    """
    return end >= high_watermark and end >= epoch_start_offset > UNKNOWN_OFFSET


def effective_min_insync(min_insync_replicas: int, replicas_count: int) -> int:
    """min.insync.replicas, at most the number of replicas: since Kafka 4.0 acks=all works with a single replica."""
    return min(min_insync_replicas, replicas_count)
