"""ConsumerGroupHeartbeat: a member joins, stays, changes its subscription, or leaves.

| member epoch | means |
|---|---|
| 0 | joins, or starts over after it was fenced |
| above 0 | stays; the request has only what changed, and the owned partitions while it revokes some |
| -1 | leaves (`departure`) |
| -2 | a static member leaves and will come back (`departure`) |

The response has the assignment if the member joins, sent every field, or gets another assignment than it had.
Source: KIP-848, Kafka's `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

import msgspec

from odradek.broker.coordinator.consumer_group import checks, records
from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat, session_timer
from odradek.broker.coordinator.consumer_group.member import (
    ConsumerMember,
    OwnedPartitions,
    TopicPartitionIds,
    same_partitions,
)
from odradek.broker.coordinator.consumer_group.member_update import MemberUpdate
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.runtime.events import Effects
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def heartbeat(
    state: GroupState, event: ConsumerHeartbeat, settings: ConsumerGroupSettings, image: MetadataImage, now_ms: int
) -> Effects:
    """Handle a heartbeat with epoch 0 or above. Raises the errors of `checks`, and INVALID_REGULAR_EXPRESSION."""
    request = event.request
    member_id = request.member_id or event.new_member_id
    owned = _owned(request)
    checks.check_room(state, member_id, settings)
    effects = Effects()
    old = _member(state, request, member_id, owned, effects)
    new = _updated(old, event)
    member = MemberUpdate(state, settings, image, now_ms, old, new, effects, event.may_describe).apply(owned)
    effects.timers[session_timer(member_id)] = settings.session_timeout_ms
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
    )
    if request.member_epoch == 0 or _is_full(request) or not same_partitions(old.assigned, member.assigned):
        response.assignment = _assignment(member.assigned)
    effects.replies.append((event.pending_reply, response))
    return effects


def replace_static(state: GroupState, present: ConsumerMember, member_id: str, effects: Effects) -> ConsumerMember:
    """Return the static member that came back under a new member id: it gets everything that `present` had."""
    member = msgspec.structs.replace(present, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    effects.records += records.member_replaced(
        state.group_id, present.member_id, member, state.targets.get(present.member_id, {})
    )
    return member


def _member(
    state: GroupState,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: TopicPartitionIds | None,
    effects: Effects,
) -> ConsumerMember:
    """Return the member before this heartbeat: stored, new, or a copy of the static member that it replaces."""
    epoch, instance_id = request.member_epoch, request.instance_id
    if epoch == 0:
        if instance_id is not None and (present := state.static_member(instance_id)) is not None:
            if present.classic is None:
                checks.check_released(present, member_id, instance_id)
            return replace_static(state, present, member_id, effects)
        return state.members.get(member_id, ConsumerMember(member_id))
    member = checks.known_member(state, member_id, instance_id)
    checks.check_epoch(member, epoch, owned)
    return member


def _updated(member: ConsumerMember, event: ConsumerHeartbeat) -> ConsumerMember:
    """Return the member with the fields that the request has."""
    request = event.request
    fields = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "server_assignor": request.server_assignor,
        "subscribed_topic_names": (
            None if request.subscribed_topic_names is None else frozenset(request.subscribed_topic_names)
        ),
        "subscribed_topic_regex": request.subscribed_topic_regex,
    }
    changes = {name: value for name, value in fields.items() if value is not None}
    return msgspec.structs.replace(
        member, client_id=event.client_id, client_host=event.client_host, classic=None, **changes
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the request has every field, as it must after an error, or when the member joins."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> TopicPartitionIds | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: topic.partitions for topic in request.topic_partitions}


def _assignment(assigned: OwnedPartitions) -> Assignment:
    return Assignment([TopicPartitions(topic_id, sorted(assigned[topic_id])) for topic_id in sorted(assigned)])
