"""The requests that a consumer group refuses: heartbeats, and offset commits and fetches. Codes and texts are Kafka's.

| sender | may commit if | may fetch if |
|---|---|---|
| a client outside (epoch below 0) | the group is empty | it names no member |
| a member, with its epoch | always | always |
| a member, with an earlier epoch | it has had each partition since that epoch or longer (KIP-1251) | never |
| a member, with a later epoch | never | never |

A commit with an earlier epoch is no mistake: the response with the newer epoch may be on its way. The epoch in which a
partition was assigned separates such a commit from that of a member that has lost the partition since. Members of the
classic protocol are refused with ILLEGAL_GENERATION, others with STALE_MEMBER_EPOCH. Source: Kafka's
`ConsumerGroup.validateOffsetCommit`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from odradek.broker.coordinator.consumer_group.member import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    TopicPartitionIds,
    are_within,
)
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.group_type import Committer
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_FIRST_VERSION_WITH_CLIENT_IDS = 1
_FIRST_VERSION_WITH_MEMBER_EPOCHS = 9  # of OffsetCommit
MAX_SUBSCRIBED_TOPICS = 10_000
"""Names that one member may subscribe to: one turn of the event loop stores them and looks them up."""


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Check the form of a heartbeat, whatever its group. Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if version >= _FIRST_VERSION_WITH_CLIENT_IDS or epoch > 0 or epoch == LEAVE_EPOCH:
        _check_not_empty("MemberId", request.member_id)
    _check_not_empty("GroupId", request.group_id)
    _check_not_empty("InstanceId", request.instance_id)
    _check_not_empty("RackId", request.rack_id)
    if len(request.subscribed_topic_names or ()) > MAX_SUBSCRIBED_TOPICS:
        # Differs from Kafka: it allows any number. Here other clients would have to wait meanwhile.
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
    """Raise GROUP_ID_NOT_FOUND unless the group exists, or the member joins, which creates it."""
    if not state.is_stored and epoch != 0:
        kind = "Consumer group" if epoch > 0 else "Group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {state.group_id} not found.")


def check_room(state: GroupState, member_id: str, settings: ConsumerGroupSettings) -> None:
    """Raise GROUP_MAX_SIZE_REACHED for a new member of a group that is full."""
    if len(state.members) >= settings.max_size and member_id not in state.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {settings.max_size} members.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: TopicPartitionIds | None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch is the member's.

    Its previous epoch is allowed if it owns no partition of others. Epoch 0 is always allowed: the member joins, or
    starts over after it was fenced.
    """
    if epoch in (0, member.member_epoch):
        return
    if epoch > member.member_epoch:
        raise _fenced("greater", epoch, member)
    if epoch != member.previous_member_epoch or owned is None or not are_within(owned, member.assigned):
        raise _fenced("smaller", epoch, member)


def known_member(state: GroupState, member_id: str, instance_id: str | None = None) -> ConsumerMember:
    """Return the member. Raises UNKNOWN_MEMBER_ID, and with an instance id the errors of `known_static_member`."""
    if instance_id is not None:
        return known_static_member(state, member_id, instance_id)
    member = state.members.get(member_id)
    if member is None:
        detail = f"Member {member_id} is not a member of group {state.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, detail)
    return member


def known_static_member(state: GroupState, member_id: str, instance_id: str) -> ConsumerMember:
    """Return the member. Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another process uses the instance id."""
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
    """Raise UNRELEASED_INSTANCE_ID unless the static member has left with epoch -2."""
    if member.member_epoch != STATIC_LEAVE_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {member.member_id} member.",
        )


# -------------------------------------------------------------------------------------------------------------- offsets


def check_commit(
    state: GroupState, committer: Committer, partitions: Collection[tuple[str, int]], image: MetadataImage
) -> None:
    """Raise UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION for a refused commit."""
    epoch = committer.generation_id
    if epoch < 0 and not state.members:
        return
    if committer.is_transactional and epoch == -1 and not committer.member_id and committer.group_instance_id is None:
        return
    member = known_member(state, committer.member_id)
    is_classic = member.classic is not None
    if not committer.is_transactional and not is_classic and committer.api_version < _FIRST_VERSION_WITH_MEMBER_EPOCHS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"OffsetCommit version {_FIRST_VERSION_WITH_MEMBER_EPOCHS} or above must be used by members using the "
            "consumer group protocol",
        )
    if epoch > member.member_epoch:
        raise _stale(
            member, f"Received {_epoch_word(member)} {epoch} is newer than current member epoch {member.member_epoch}."
        )
    if epoch < member.member_epoch:
        for topic, partition in partitions:
            _check_assigned_by(member, epoch, topic, partition, image)


def check_fetch(state: GroupState, member_id: str | None, epoch: int) -> None:
    """Raise UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION for a refused fetch of offsets."""
    if member_id is None and epoch < 0:
        return
    member = known_member(state, member_id or "")
    if epoch != member.member_epoch:
        raise _stale(
            member,
            f"The received {_epoch_word(member)} {epoch} does not match the expected member epoch "
            f"{member.member_epoch}.",
        )


def _check_assigned_by(member: ConsumerMember, epoch: int, topic: str, partition: int, image: MetadataImage) -> None:
    topic_id = image.topics[topic].topic_id if topic in image.topics else b""
    assigned_in = member.assigned.get(topic_id, {}).get(partition)
    if assigned_in is None:
        assigned_in = member.pending_revocation.get(topic_id, {}).get(partition)
    if assigned_in is None:
        raise _stale(member, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
    if epoch < assigned_in:
        raise _stale(
            member,
            f"Received {_epoch_word(member)} {epoch} is older than assignment epoch {assigned_in} for partition "
            f"{topic}-{partition}.",
        )


def _epoch_word(member: ConsumerMember) -> str:
    return "member epoch" if member.classic is None else "generation id"


def _stale(member: ConsumerMember, detail: str) -> KafkaError:
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return KafkaError(code, detail)


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
