"""A consumer group as records of `__consumer_offsets`.

| type | key | value | meaning of a tombstone |
|---|---|---|---|
| 3 | group | group epoch, metadata hash | the group is deleted |
| 4 | group | — | deletes the record that Kafka before 4.0 wrote |
| 5 | group, member | subscription of the member | the member is gone |
| 6 | group | epoch and time of the target | the target is deleted |
| 7 | group, member | target of the member | the member has no target |
| 8 | group, member | epochs, state, partitions of the member | the member has left |
| 16 | group, expression | topics that the expression matches | no member subscribes by it any more |

Lists are sorted, so that equal states have equal bytes; readers do not depend on the order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from odradek.broker.coordinator.consumer_group.member import ConsumerMember, OwnedPartitions
from odradek.broker.coordinator.consumer_group.regular_expressions import ResolvedExpression
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.stored_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)

_GROUP, _SUBSCRIPTION_METADATA, _SUBSCRIPTION, _TARGET_EPOCH, _TARGET, _CURRENT, _EXPRESSION = 3, 4, 5, 6, 7, 8, 16


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ConsumerGroupMetadataValue(epoch, metadata_hash)
    return CoordinatorRecord(_GROUP, ConsumerGroupMetadataKey(group_id), value)


def group_deleted(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_GROUP, ConsumerGroupMetadataKey(group_id), None)


def subscription_metadata_deleted(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_SUBSCRIPTION_METADATA, ConsumerGroupPartitionMetadataKey(group_id), None)


def subscription(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return CoordinatorRecord(_SUBSCRIPTION, ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def target_epoch(group_id: str, epoch: int, timestamp: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(epoch, timestamp)
    return CoordinatorRecord(_TARGET_EPOCH, ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def target_deleted(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_TARGET_EPOCH, ConsumerGroupTargetAssignmentMetadataKey(group_id), None)


def target(group_id: str, member_id: str, partitions: Mapping[bytes, Collection[int]]) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        [TopicPartition(topic_id, sorted(partitions[topic_id])) for topic_id in sorted(partitions)]
    )
    return CoordinatorRecord(_TARGET, ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value)


def current_assignment(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.pending_revocation),
    )
    return CoordinatorRecord(_CURRENT, ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def member_deleted(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones in the order of replay: the first frees the partitions, the last deletes the member."""
    return [
        CoordinatorRecord(_CURRENT, ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        CoordinatorRecord(_TARGET, ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        CoordinatorRecord(_SUBSCRIPTION, ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def member_replaced(
    group_id: str, old_member_id: str, new: ConsumerMember, new_target: Mapping[bytes, Collection[int]]
) -> list[CoordinatorRecord]:
    """Return the records that move a static member to another member id, with everything stored of it."""
    return [
        *member_deleted(group_id, old_member_id),
        subscription(group_id, new),
        target(group_id, new.member_id, new_target),
        current_assignment(group_id, new),
    ]


def expression(group_id: str, pattern: str, resolved: ResolvedExpression) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(sorted(resolved.topics), resolved.version, resolved.timestamp)
    return CoordinatorRecord(_EXPRESSION, ConsumerGroupRegularExpressionKey(group_id, pattern), value)


def expression_deleted(group_id: str, pattern: str) -> CoordinatorRecord:
    return CoordinatorRecord(_EXPRESSION, ConsumerGroupRegularExpressionKey(group_id, pattern), None)


def _with_epochs(partitions: OwnedPartitions) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id, sorted(epochs), [epochs[number] for number in sorted(epochs)])
        for topic_id, epochs in sorted(partitions.items())
    ]
