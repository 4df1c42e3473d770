"""The state of a consumer group: everything that its records say.

```
epochs      group epoch ≥ target epoch ≥ epoch of each member
            one change of members, subscriptions or topics ─► group epoch + 1
            one target assignment computed                 ─► target epoch = group epoch
            one member reconciled to the target            ─► member epoch = target epoch
```

| state | holds when |
|---|---|
| Empty | there are no members |
| Assigning | the group epoch is above the target epoch: the next heartbeat may compute a target |
| Reconciling | some member misses partitions of its target, or still has others |
| Stable | every member is in the target epoch and has its whole target |

Invariants after every batch of records: a partition has at most one owner (`is_owned`), the member that has it assigned
or pending revocation; the target epoch and the member epochs never decrease, except that a member that rejoins starts
over; an instance id belongs to one static member.

Only `replay` changes the state, one record at a time, whether an event produced the record or it is loaded from the
log. Besides there are marks, which are not in records: about the cluster's metadata (`is_refresh_due`, `is_resolving`,
`topics_added_at`), whose loss costs one comparison of the metadata, and about timers (`must_rejoin`), whose loss
restarts a member's join timer. If the records of an event cannot be written, the first two are changed back; the third
is true all the same, and the fourth may be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from odradek.broker.coordinator.assignors import Assignment
from odradek.broker.coordinator.consumer_group import records
from odradek.broker.coordinator.consumer_group.current_assignment import Target
from odradek.broker.coordinator.consumer_group.member import LEAVE_EPOCH, ConsumerMember, MemberState, OwnedPartitions
from odradek.broker.coordinator.consumer_group.regular_expressions import ResolvedExpression
from odradek.broker.coordinator.consumer_group.subscription import topic_names
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.schema import Message
from odradek.protocol.stored_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)

_FIRST_EPOCH = 1
"""As in Kafka: with its first member a group goes to epoch 2."""

_NO_TARGET = -1
"""The target epoch after the target was deleted."""


class GroupState:
    """The state of one group. Only `replay` changes it, apart from the marks."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = _FIRST_EPOCH
        self.target_timestamp = 0
        self.targets: dict[str, Assignment] = {}
        self.members: dict[str, ConsumerMember] = {}
        self.is_stored = False
        self.static_member_ids: dict[str, str] = {}
        self.expressions: dict[str, ResolvedExpression] = {}
        self.has_subscription_metadata = False
        self.is_refresh_due = False  # a topic changed: the next heartbeat must compare the metadata
        self.is_resolving = False  # regular expressions are being matched
        self.topics_added_at = 0  # the last revision of the metadata that had, or may have had, a new topic
        self.must_rejoin: set[str] = set()  # members of the classic protocol whose join timer runs
        self.subscribers_by_pattern: Counter[str] = Counter()
        self.owners: dict[bytes, dict[int, str]] = {}
        self._replay: dict[type[Message], Callable[[Any, Any], None]] = {
            ConsumerGroupMetadataKey: self._group,
            ConsumerGroupPartitionMetadataKey: self._subscription_metadata,
            ConsumerGroupMemberMetadataKey: self._member,
            ConsumerGroupTargetAssignmentMetadataKey: self._target_epoch,
            ConsumerGroupTargetAssignmentMemberKey: self._target,
            ConsumerGroupCurrentMemberAssignmentKey: self._current_assignment,
            ConsumerGroupRegularExpressionKey: self._expression,
        }

    @property
    def name(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def target_of(self, member_id: str, instance_id: str | None) -> Target:
        """Return the target of a member, or of the static member that it replaces."""
        if instance_id is not None:
            member_id = self.static_member_ids.get(instance_id, member_id)
        return Target(self.target_epoch, self.targets.get(member_id, {}))

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        return None if instance_id is None else self.members.get(self.static_member_ids.get(instance_id, ""))

    def is_owned(self, topic_id: bytes, partition: int) -> bool:
        """Return whether a member has the partition, or must revoke it and has not confirmed that."""
        return partition in self.owners.get(topic_id, {})

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in topic_names(member, self.expressions) for member in self.members.values())

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group from the log, with its members."""
        by_member = [records.member_deleted(self.group_id, member_id) for member_id in self.members]
        return [
            *(current for current, _, _ in by_member),
            *(target for _, target, _ in by_member),
            records.target_deleted(self.group_id),
            *(subscription for _, _, subscription in by_member),
            *(records.expression_deleted(self.group_id, pattern) for pattern in self.expressions),
            records.subscription_metadata_deleted(self.group_id),
            records.group_deleted(self.group_id),
        ]

    def after(self, written: Sequence[CoordinatorRecord]) -> GroupState:
        """Return a copy of the state with these records replayed; it is as large as the group."""
        state = deepcopy(self)
        for record in written:
            state.replay(record)
        return state

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply one record of the group: of types 3 to 8 or 16."""
        self.is_stored = True
        self._replay[type(record.key)](record.key, record.value)

    def _group(self, _: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None) -> None:
        if value is not None:
            self.group_epoch = value.epoch
            self.metadata_hash = value.metadata_hash

    def _subscription_metadata(
        self, _: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
    ) -> None:
        self.has_subscription_metadata = value is not None

    def _member(self, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None) -> None:
        old = self.members.get(key.member_id)
        if value is None:
            self._remove(old)
        else:
            self._put(
                msgspec.structs.replace(
                    old or ConsumerMember(key.member_id),
                    instance_id=value.instance_id,
                    rack_id=value.rack_id,
                    rebalance_timeout_ms=value.rebalance_timeout_ms,
                    client_id=value.client_id,
                    client_host=value.client_host,
                    subscribed_topic_names=frozenset(value.subscribed_topic_names),
                    subscribed_topic_regex=value.subscribed_topic_regex or "",
                    server_assignor=value.server_assignor,
                    classic=value.classic_member_metadata,
                )
            )

    def _target_epoch(
        self,
        _: ConsumerGroupTargetAssignmentMetadataKey,
        value: ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        self.target_epoch = _NO_TARGET if value is None else value.assignment_epoch
        self.target_timestamp = 0 if value is None else value.assignment_timestamp

    def _target(
        self, key: ConsumerGroupTargetAssignmentMemberKey, value: ConsumerGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = {
                topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
            }

    def _current_assignment(
        self, key: ConsumerGroupCurrentMemberAssignmentKey, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        old = self.members.get(key.member_id)
        if value is not None:
            self._put(
                msgspec.structs.replace(
                    old or ConsumerMember(key.member_id),
                    member_epoch=value.member_epoch,
                    previous_member_epoch=value.previous_member_epoch,
                    state=MemberState(value.state),
                    assigned=_owned(value.assigned_partitions, value.member_epoch),
                    pending_revocation=_owned(value.partitions_pending_revocation, value.member_epoch),
                )
            )
        elif old is not None:
            self._put(
                msgspec.structs.replace(
                    old,
                    member_epoch=LEAVE_EPOCH,
                    previous_member_epoch=LEAVE_EPOCH,
                    assigned={},
                    pending_revocation={},
                )
            )

    def _expression(
        self, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
    ) -> None:
        if value is None:
            self.expressions.pop(key.regular_expression, None)
        else:
            resolved = ResolvedExpression(frozenset(value.topics), value.version, value.timestamp)
            self.expressions[key.regular_expression] = resolved

    def _put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        if member.subscribed_topic_regex:
            self.subscribers_by_pattern[member.subscribed_topic_regex] += 1
        for topic_id, number in _partitions(member):
            self.owners.setdefault(topic_id, {})[number] = member.member_id
        if member.instance_id is not None:
            self.static_member_ids[member.instance_id] = member.member_id

    def _remove(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        self._release(member)
        self.must_rejoin.discard(member.member_id)
        del self.members[member.member_id]
        instance_id = member.instance_id
        if instance_id is not None and self.static_member_ids.get(instance_id) == member.member_id:
            del self.static_member_ids[instance_id]

    def _release(self, member: ConsumerMember) -> None:
        pattern = member.subscribed_topic_regex
        if pattern:
            self.subscribers_by_pattern[pattern] -= 1
            if not self.subscribers_by_pattern[pattern]:
                del self.subscribers_by_pattern[pattern]
        for topic_id, number in _partitions(member):
            owners = self.owners.get(topic_id, {})
            # In a log that is partly compacted the record of the next owner may come before the revocation by this one.
            if owners.get(number) == member.member_id:
                del owners[number]
                if not owners:
                    del self.owners[topic_id]


def _partitions(member: ConsumerMember) -> Iterator[tuple[bytes, int]]:
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            for number in epochs:
                yield topic_id, number


def _owned(topics: list[TopicPartitions], member_epoch: int) -> OwnedPartitions:
    """Return the partitions with their epochs. Records of older brokers have no epochs: the member's is taken."""
    return {
        topic.topic_id: dict(
            zip(topic.partitions, topic.assignment_epochs or [member_epoch] * len(topic.partitions), strict=True)
        )
        for topic in topics
    }
