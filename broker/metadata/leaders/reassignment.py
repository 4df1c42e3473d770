"""Reassignment of partitions to other brokers (KIP-455): the steps, as pure functions of an image.

```
                          from replicas 1 2 3 to 2 3 4
begin (any broker)        replicas 2 3 4 1, adding 4, removing 1      all of them fetch, and 1 may lead
complete (controller)     replicas 2 3 4, the ISR without 1           once all that are added are in the ISR
revert (any broker)       replicas 2 3 1, the ISR without 4           instead of complete, on request
```

A change of assignment is one transaction with the state. Where replicas are removed, the leader epoch rises even if the
leader stays, so that a removed replica is fenced. A broker that finds itself removed from a topic's present replicas
deletes its log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leaders.leadership import (
    NO_LEADER,
    Decision,
    choose_leader,
    choose_unclean,
    next_state,
)
from odradek.broker.metadata.values import Assignment, PartitionState
from odradek.protocol.errors import ErrorCode, KafkaError


def is_running(partition: PartitionImage) -> bool:
    """Return whether the partition is being reassigned."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def begin(
    partition: PartitionImage, replicas: Sequence[int], brokers: Mapping[int, BrokerImage], *, min_insync: int
) -> Decision:
    """Return the state in which `partition` moves to `replicas`; if no replica is added, it may be complete at once.

    `min_insync`, here and below: the topic's `min.insync.replicas`. Replicas that stay remain eligible leaders.
    """
    original = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    adding = [replica for replica in replicas if replica not in original]
    removing = [replica for replica in partition.replicas if replica not in replicas]
    assignment = Assignment([*replicas, *removing], adding, removing)
    begun = msgspec.structs.replace(
        partition,
        replicas=assignment.replicas,
        adding_replicas=assignment.adding,
        removing_replicas=assignment.removing,
    )
    return complete(begun, brokers, min_insync=min_insync) or Decision(_unchanged(begun), assignment=assignment)


def complete(partition: PartitionImage, brokers: Mapping[int, BrokerImage], *, min_insync: int) -> Decision | None:
    """Return the state after the reassignment, or None if it is not running, or cannot be completed yet."""
    if not is_running(partition):
        return None
    removing = set(partition.removing_replicas)
    isr = {replica: epoch for replica, epoch in partition.isr.items() if replica not in removing}
    if not isr or not isr.keys() >= set(partition.adding_replicas):
        return None
    replicas = [replica for replica in partition.replicas if replica not in removing]
    decision = _with_replicas(partition, replicas, isr, brokers, min_insync)
    return None if decision.state.leader == NO_LEADER else decision


def revert(
    partition: PartitionImage, brokers: Mapping[int, BrokerImage], *, min_insync: int, unclean: bool
) -> Decision:
    """Return the state with the replicas from before the reassignment.

    Raises `KafkaError` NO_REASSIGNMENT_IN_PROGRESS; INVALID_REPLICA_ASSIGNMENT if only added replicas are in sync and
    the topic does not allow unclean elections.
    """
    if not is_running(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    adding = set(partition.adding_replicas)
    replicas = [replica for replica in partition.replicas if replica not in adding]
    isr = {replica: epoch for replica, epoch in partition.isr.items() if replica not in adding}
    if not replicas:
        raise invalid("Invalid replica assignment: addingReplicas contains all replicas.")
    if isr:
        return _with_replicas(partition, replicas, isr, brokers, min_insync)
    before = _settled(partition, replicas, {})
    state = choose_unclean(before, brokers) if unclean else None
    if state is None:
        raise invalid("the reassignment cannot be cancelled: it would require an unclean leader election")
    return Decision(state, may_have_lost=True, is_unclean=True, assignment=Assignment(replicas))


def _with_replicas(
    partition: PartitionImage,
    replicas: list[int],
    isr: dict[int, int],
    brokers: Mapping[int, BrokerImage],
    min_insync: int,
) -> Decision:
    """Return the state of `partition` with these replicas alone, led by an electable one if there is one."""
    settled = _settled(partition, replicas, isr)
    decision = choose_leader(settled, brokers, min_insync=min_insync) or Decision(_unchanged(settled))
    state = decision.state
    if state.leader_epoch == partition.leader_epoch and len(replicas) < len(partition.replicas):
        state = msgspec.structs.replace(state, leader_epoch=state.leader_epoch + 1)
    return decision._replace(state=state, assignment=Assignment(replicas))


def _settled(partition: PartitionImage, replicas: list[int], isr: dict[int, int]) -> PartitionImage:
    elr = {replica: epoch for replica, epoch in partition.eligible_leader_replicas.items() if replica in replicas}
    return msgspec.structs.replace(
        partition,
        replicas=replicas,
        isr=isr,
        adding_replicas=[],
        removing_replicas=[],
        eligible_leader_replicas=elr,
    )


def _unchanged(partition: PartitionImage) -> PartitionState:
    return next_state(partition, partition.leader, partition.leader_epoch, partition.isr)


def invalid(detail: str) -> KafkaError:
    """Return the error of an assignment that a partition cannot have."""
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, detail)
