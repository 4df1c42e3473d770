"""The election of partition leaders, as pure functions: images in, new partition states out.

```
electable(replica)   in the ISR, its broker serves and is not draining, and it has lost nothing since it was found in
                     sync: broker.intact_since <= isr[replica]

leader electable, every ISR member electable   nothing changes
leader electable, others not                   they leave the ISR                                             same epoch
leader not electable, another member is        the first electable replica, as assigned, leads; others leave  epoch + 1
no member is, an eligible replica is           the first such replica, as assigned, leads alone          epoch + 1
no member is, all have lost records            one that serves leads, though records may be lost: the former epoch + 1
                                               leader, else the first as assigned (not while its log is lost)
no member is, the topic allows unclean ones    the first live replica leads alone; records are lost           epoch + 1
no member is                                   no leader; members that have lost records leave, for any other epoch + 1
                                               may come back with all of them
```

Eligible leader replicas (KIP-966) left the ISR when fewer members than min.insync.replicas remained. They have all that
is committed, because the high watermark does not move while there are any, and can be elected by the same rule as
members. A broker may stop while the last other member has lost power and is registered still: then it is one, and leads
when it is back. They are forgotten when enough replicas are in sync, and at each election that may lose records.

So after a power failure of all brokers a partition is led again when the last member of its ISR is back. Until then a
member may come back that has lost nothing, because it was stopped before. Kafka elects the last known leader (KIP-966).

Administrators can request two more elections: of the preferred replica, the first as assigned, if it is electable; and,
where there is no leader, of any live replica, although records are lost.

A broker whose log directory fails reports the partitions in it (`without`), because it is alive otherwise: it leaves
their ISRs. If it is the only member, it stays there with the negative of its broker epoch, LOST: it cannot be elected
in this incarnation. When it has registered anew, without reporting the partition again, its log is back; since the
disk had failed, records may be lost. A log that is missing at the start is reported in the same way; if it can never
come back, because it was not made before the broker was killed, the only member stays with epoch 0, and is elected.

After a restart without losses the old leader is electable and the epoch stays. After a restart with losses the epoch
increases, so that followers and clients detect that the log may be shorter (KIP-101, KIP-320).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.values import Assignment, PartitionState, decode_partition_state

NO_LEADER = -1


class Decision(NamedTuple):
    """A partition's new state, and its new assignment if its replicas change.

    `may_have_lost`: the leader may lack records that were acknowledged; `is_unclean`: another replica may have them.
    """

    state: PartitionState
    may_have_lost: bool = False
    is_unclean: bool = False
    assignment: Assignment | None = None


def choose_leader(
    partition: PartitionImage, brokers: Mapping[int, BrokerImage], *, unclean: bool = False, min_insync: int = 1
) -> Decision | None:
    """Return the new state of `partition` while `brokers` serve, or None if nothing changes.

    `unclean`: the topic prefers a leader that lacks records to none (`unclean.leader.election.enable`). `min_insync`:
    its `min.insync.replicas`.
    """
    decision = _choose(partition, brokers, unclean=unclean)
    if decision is None or decision.may_have_lost:
        return decision
    elr = eligible_replicas(partition, decision.state.isr, min_insync)
    kept = {replica: epoch for replica, epoch in elr.items() if not _has_lost(replica, epoch, brokers)}
    return decision._replace(state=msgspec.structs.replace(decision.state, elr=kept))


def eligible_replicas(partition: PartitionImage, isr: Mapping[int, int], min_insync: int) -> dict[int, int]:
    """Return the eligible leader replicas of `partition` when its ISR changes to `isr` without a loss."""
    if len(isr) >= min(min_insync, len(partition.replicas)):
        return {}
    known = {**partition.eligible_leader_replicas, **partition.isr}
    return {
        replica: epoch
        for replica, epoch in known.items()
        if epoch > 0 and replica in partition.replicas and replica not in isr
    }


def _choose(partition: PartitionImage, brokers: Mapping[int, BrokerImage], *, unclean: bool) -> Decision | None:
    electable = {replica: epoch for replica, epoch in partition.isr.items() if _is_electable(replica, epoch, brokers)}
    if partition.leader in electable:
        unchanged = len(electable) == len(partition.isr)
        return (
            None if unchanged else Decision(next_state(partition, partition.leader, partition.leader_epoch, electable))
        )
    next_epoch = partition.leader_epoch + 1
    for replica in partition.replicas:
        if replica in electable:
            return Decision(next_state(partition, replica, next_epoch, electable | {replica: brokers[replica].epoch}))
    elr = {
        replica: epoch for replica, epoch in partition.eligible_leader_replicas.items() if replica not in partition.isr
    }
    for replica in partition.replicas:
        if replica in elr and _is_electable(replica, elr[replica], brokers):
            return Decision(next_state(partition, replica, next_epoch, {replica: brokers[replica].epoch}))
    hopeful = {replica: epoch for replica, epoch in partition.isr.items() if not _has_lost(replica, epoch, brokers)}
    has_hope = hopeful or not all(_has_lost(replica, epoch, brokers) for replica, epoch in elr.items())
    if not has_hope and (decision := _choose_of_lossy(partition, brokers)) is not None:
        return decision
    if unclean and (state := choose_unclean(partition, brokers)) is not None:
        return Decision(state, may_have_lost=True, is_unclean=True)
    isr = hopeful or partition.isr
    if partition.leader != NO_LEADER:
        return Decision(next_state(partition, NO_LEADER, next_epoch, isr))
    if len(isr) < len(partition.isr):
        return Decision(next_state(partition, NO_LEADER, partition.leader_epoch, isr))
    return None


def _choose_of_lossy(partition: PartitionImage, brokers: Mapping[int, BrokerImage]) -> Decision | None:
    """Return the election of a member of the ISR, all of which have lost records, or None if none of them can lead."""
    for replica in (partition.leader, *partition.replicas):
        epoch = partition.isr.get(replica)
        if epoch is not None and _is_available(replica, brokers) and not _is_lost(replica, epoch, brokers):
            isr = {replica: brokers[replica].epoch}
            state = _lossy(next_state(partition, replica, partition.leader_epoch + 1, isr), partition)
            return Decision(state, may_have_lost=True, is_unclean=len(partition.isr) > 1)
    return None


def prefer(partition: PartitionImage, brokers: Mapping[int, BrokerImage]) -> PartitionState | None:
    """Return the state in which the preferred replica leads, or None if it is not electable."""
    preferred = partition.replicas[0]
    if preferred not in partition.isr or not _is_electable(preferred, partition.isr[preferred], brokers):
        return None
    return next_state(partition, preferred, partition.leader_epoch + 1, partition.isr)


def choose_unclean(partition: PartitionImage, brokers: Mapping[int, BrokerImage]) -> PartitionState | None:
    """Return the state in which the first live replica leads, whatever its log contains, or None if there is none."""
    for replica in partition.replicas:
        epoch = partition.isr.get(replica, 0)
        if _is_available(replica, brokers) and not _is_lost(replica, epoch, brokers):
            isr = {replica: brokers[replica].epoch}
            return _lossy(next_state(partition, replica, partition.leader_epoch + 1, isr), partition)
    return None


def without(
    partition: PartitionImage,
    node_id: int,
    brokers: Mapping[int, BrokerImage],
    lost_epoch: int,
    *,
    min_insync: int = 1,
) -> Decision | None:
    """Return the new state of `partition` when a live broker has lost its log of it, or None if nothing changes.

    `lost_epoch`: the value under which the broker stays in the ISR if it is the only member.
    """
    elr = {replica: epoch for replica, epoch in partition.eligible_leader_replicas.items() if replica != node_id}
    isr = {replica: epoch for replica, epoch in partition.isr.items() if replica != node_id}
    rest = msgspec.structs.replace(partition, isr=isr, eligible_leader_replicas=elr)
    if isr:
        if len(isr) == len(partition.isr) and rest == partition and partition.leader != node_id:
            return None
        same = Decision(next_state(rest, rest.leader, rest.leader_epoch, isr))
        return choose_leader(rest, brokers, min_insync=min_insync) or same
    if any(_is_electable(replica, epoch, brokers) for replica, epoch in elr.items()):
        return choose_leader(rest, brokers, min_insync=min_insync)
    if partition.isr == {node_id: lost_epoch} and partition.leader == NO_LEADER:
        return None
    return Decision(next_state(rest, NO_LEADER, partition.leader_epoch + 1, {node_id: lost_epoch}))


def _lossy(state: PartitionState, partition: PartitionImage) -> PartitionState:
    """Return the state after an election that may have lost records; other replicas may still have them."""
    return msgspec.structs.replace(state, elr={}, rec=int(len(partition.replicas) > 1))


def _is_available(replica: int, brokers: Mapping[int, BrokerImage]) -> bool:
    broker = brokers.get(replica)
    return broker is not None and not broker.is_draining


def _is_electable(replica: int, epoch_in_isr: int, brokers: Mapping[int, BrokerImage]) -> bool:
    return _is_available(replica, brokers) and brokers[replica].intact_since <= epoch_in_isr


def _has_lost(replica: int, epoch_in_isr: int, brokers: Mapping[int, BrokerImage]) -> bool:
    """Return whether a live broker has lost records since it was found in sync; then it never leads by that entry."""
    broker = brokers.get(replica)
    return broker is not None and broker.intact_since > epoch_in_isr


def _is_lost(replica: int, epoch_in_isr: int, brokers: Mapping[int, BrokerImage]) -> bool:
    """Return whether a live broker has reported the loss of its log in its present incarnation."""
    return epoch_in_isr == -brokers[replica].epoch


def next_state(partition: PartitionImage, leader: int, leader_epoch: int, isr: dict[int, int]) -> PartitionState:
    """Return the next state of the partition, with this leader and ISR."""
    lossy = bool(partition.state_value) and decode_partition_state(partition.state_value).rec
    return PartitionState(
        leader=leader,
        leader_epoch=leader_epoch,
        isr=isr,
        partition_epoch=partition.partition_epoch + 1,
        elr=partition.eligible_leader_replicas,
        rec=int(lossy and not isr.keys() >= set(partition.replicas)),
    )
