"""What a heartbeat of the consumer protocol is refused for, with Kafka's codes and words."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.broker.coordinator.consumer_group.member import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    TopicPartitionIds,
    are_within,
)
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_FIRST_VERSION_WITH_CLIENT_IDS = 1
MAX_SUBSCRIBED_TOPICS = 10_000
"""Names that one member may subscribe to: they are stored, and compared with the metadata, in one turn of the loop."""


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Check the form of a request, whatever group it is for. Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if version >= _FIRST_VERSION_WITH_CLIENT_IDS or epoch > 0 or epoch == LEAVE_EPOCH:
        _check_not_empty("MemberId", request.member_id)
    _check_not_empty("GroupId", request.group_id)
    _check_not_empty("InstanceId", request.instance_id)
    _check_not_empty("RackId", request.rack_id)
    if len(request.subscribed_topic_names or ()) > MAX_SUBSCRIBED_TOPICS:
        # Differs from Kafka, which takes any number, because it would keep everybody waiting.
        raise _invalid(f"SubscribedTopicNames has more than {MAX_SUBSCRIBED_TOPICS} names.")
    if epoch == 0:
        _check_first_request(request)
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        supported = ", ".join(assignors)
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}.",
        )


def _check_first_request(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def check_exists(state: GroupState, epoch: int) -> None:
    """Raises GROUP_ID_NOT_FOUND, unless there is the group, or the member joins, which makes it."""
    if not state.is_stored and epoch != 0:
        kind = "Consumer group" if epoch > 0 else "Group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {state.group_id} not found.")


def check_room(state: GroupState, member_id: str, settings: ConsumerGroupSettings) -> None:
    """Raises GROUP_MAX_SIZE_REACHED for a new member of a group that is full."""
    if len(state.members) >= settings.max_size and member_id not in state.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {settings.max_size} members.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: TopicPartitionIds | None) -> None:
    """Raises FENCED_MEMBER_EPOCH, unless the epoch is the member's, or its last one and it owns nothing of others.

    Epoch 0 is always welcome: the member joins, or was fenced and starts over.
    """
    if epoch in (0, member.member_epoch):
        return
    if epoch > member.member_epoch:
        raise _fenced("greater", epoch, member)
    if epoch != member.previous_member_epoch or owned is None or not are_within(owned, member.assigned):
        raise _fenced("smaller", epoch, member)


def known_member(state: GroupState, member_id: str, instance_id: str | None = None) -> ConsumerMember:
    """Raises UNKNOWN_MEMBER_ID; with an instance id also FENCED_INSTANCE_ID, as `known_static_member`."""
    if instance_id is not None:
        return known_static_member(state, member_id, instance_id)
    member = state.members.get(member_id)
    if member is None:
        detail = f"Member {member_id} is not a member of group {state.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, detail)
    return member


def known_static_member(state: GroupState, member_id: str, instance_id: str) -> ConsumerMember:
    """Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another process has taken the instance id."""
    member = state.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def check_released(member: ConsumerMember, member_id: str, instance_id: str) -> None:
    """Raises UNRELEASED_INSTANCE_ID, unless the static member has said that it will be back."""
    if member.member_epoch != STATIC_LEAVE_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {member.member_id} member.",
        )


def _check_not_empty(name: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)


def _fenced(how: str, epoch: int, member: ConsumerMember) -> KafkaError:
    return KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {how} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )
