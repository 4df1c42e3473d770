"""Reconciliation: one step from the partitions that a member has towards its target.

```
assigned ∩ target             kept
assigned − target             revoked    the member keeps them, in its epoch, until its heartbeat no longer names them
target − assigned, unowned    given      at once, with the target's epoch
target − assigned, owned      unreleased given at a later heartbeat, when the other member has revoked them
```

A partition is given only if no other member has it or is revoking it, so it has one owner in every epoch. A topic that
the member no longer subscribes to counts as not in the target, even before a target without it is computed.
Source: KIP-848, Kafka's `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet

import msgspec

from odradek.broker.coordinator.consumer_group.member import (
    ConsumerMember,
    MemberState,
    OwnedPartitions,
    TopicPartitionIds,
    share_any,
)
from odradek.protocol.errors import ErrorCode, KafkaError

_NOTHING: frozenset[int] = frozenset()


class Target(msgspec.Struct, frozen=True):
    """The partitions of one member in the target assignment of `epoch`."""

    epoch: int
    partitions: dict[bytes, frozenset[int]]


class Reconciliation(msgspec.Struct, frozen=True):
    """The inputs of the next step, apart from the member.

    `owned` are the partitions that the request names as owned, None if it names none. `is_owned(topic_id, partition)`
    returns whether any member has the partition or is revoking it.
    """

    target: Target
    subscribed_topic_ids: Collection[bytes]
    owned: TopicPartitionIds | None
    has_subscription_changed: bool
    is_owned: Callable[[bytes, int], bool]

    def apply(self, member: ConsumerMember) -> ConsumerMember:
        """Return the member after this step; the same object if there is nothing to do.

        Raises FENCED_MEMBER_EPOCH for a member in state UNKNOWN that still owns partitions.
        """
        if member.state is MemberState.UNKNOWN and (self.owned is None or self.owned):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        if self._must_wait(member):
            return self._without_unsubscribed(member) if self.has_subscription_changed else member
        return self._next(member)

    def _must_wait(self, member: ConsumerMember) -> bool:
        if member.state is MemberState.STABLE:
            return member.member_epoch == self.target.epoch
        return member.state is MemberState.UNREVOKED_PARTITIONS and self._still_owns(member.pending_revocation)

    def _still_owns(self, revoked: OwnedPartitions) -> bool:
        return self.owned is None or share_any(self.owned, revoked)

    def _without_unsubscribed(self, member: ConsumerMember) -> ConsumerMember:
        """Revoke the topics that the member no longer subscribes to, and do nothing else."""
        dropped = member.assigned.keys() - set(self.subscribed_topic_ids)
        if not dropped:
            return member
        kept = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in dropped}
        revoked = dict(member.pending_revocation)
        for topic_id in dropped:
            revoked[topic_id] = {**revoked.get(topic_id, {}), **member.assigned[topic_id]}
        if self._still_owns(revoked):
            return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.member_epoch, kept, revoked)
        return _moved(member, member.state, member.member_epoch, kept, member.pending_revocation)

    def _next(self, member: ConsumerMember) -> ConsumerMember:
        kept: OwnedPartitions = {}
        revoked: OwnedPartitions = {}
        given: dict[bytes, list[int]] = {}
        has_unreleased = False
        for topic_id in self.target.partitions.keys() | member.assigned.keys():
            wanted = self._wanted(topic_id)
            assigned = member.assigned.get(topic_id, {})
            _put(kept, topic_id, {number: epoch for number, epoch in assigned.items() if number in wanted})
            _put(revoked, topic_id, {number: epoch for number, epoch in assigned.items() if number not in wanted})
            missing = wanted - assigned.keys()
            free = [number for number in missing if self._is_free(member, topic_id, number)]
            has_unreleased = has_unreleased or len(free) < len(missing)
            if free:
                given[topic_id] = free
        if revoked and self._still_owns(revoked):
            return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.member_epoch, kept, revoked)
        for topic_id, numbers in given.items():
            kept[topic_id] = {**kept.get(topic_id, {}), **dict.fromkeys(numbers, self.target.epoch)}
        state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
        return _moved(member, state, self.target.epoch, kept, {})

    def _wanted(self, topic_id: bytes) -> AbstractSet[int]:
        return self.target.partitions.get(topic_id, _NOTHING) if topic_id in self.subscribed_topic_ids else _NOTHING

    def _is_free(self, member: ConsumerMember, topic_id: bytes, number: int) -> bool:
        # A partition that the member itself was revoking had no other owner.
        return not self.is_owned(topic_id, number) or number in member.pending_revocation.get(topic_id, {})


def _put(partitions: OwnedPartitions, topic_id: bytes, epochs: dict[int, int]) -> None:
    if epochs:
        partitions[topic_id] = epochs


def _moved(
    member: ConsumerMember, state: MemberState, epoch: int, assigned: OwnedPartitions, revoked: OwnedPartitions
) -> ConsumerMember:
    return msgspec.structs.replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=revoked,
    )
