"""Members of the classic protocol in a group of the consumer protocol, while an application's clients are upgraded.

They join, sync and heartbeat as in a classic group, with their member epoch as the generation. There is no leader: the
broker assigns, and each member goes through the states of `member` by rejoining.

| request | meaning here |
|---|---|
| JoinGroup | a full heartbeat: subscription, owned partitions; it is answered at once, without a leader |
| SyncGroup | returns the partitions that the member may own now |
| Heartbeat | restarts the session; REBALANCE_IN_PROGRESS when the member must rejoin to take its next step |
| LeaveGroup | leaves (`departure`) |

A member must rejoin when the group has a newer target, when it must revoke partitions, and when the partitions that it
waits for are free. The first REBALANCE_IN_PROGRESS starts its join timer. Source: KIP-848, Kafka's
`classicGroupJoinToConsumerGroup` and its neighbours.
"""

from __future__ import annotations

import msgspec

from odradek.broker.coordinator.classic_group.events import Heartbeat, Join, Leave, Leaving, Sync
from odradek.broker.coordinator.classic_group.member_effects import join_error
from odradek.broker.coordinator.consumer_group import checks, consumer_protocol, departure
from odradek.broker.coordinator.consumer_group.events import join_timer, session_timer, sync_timer
from odradek.broker.coordinator.consumer_group.heartbeat import replace_static
from odradek.broker.coordinator.consumer_group.member import ConsumerMember, MemberState
from odradek.broker.coordinator.consumer_group.member_update import MemberUpdate
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.runtime.events import Effects
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.stored_records.consumer_group import ClassicMemberMetadata, ClassicProtocol
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolSubscription


def needs_member_id(event: Join) -> bool:
    """Return whether the response must be a member id, to come back with (KIP-394)."""
    return event.requires_known_member_id and not event.member_id and event.group_instance_id is None


def give_member_id(state: GroupState, event: Join, settings: ConsumerGroupSettings) -> Effects:
    """Answer MEMBER_ID_REQUIRED. Raises GROUP_MAX_SIZE_REACHED or INCONSISTENT_GROUP_PROTOCOL, as `join` would."""
    checks.check_room(state, event.new_member_id, settings)
    _subscription(state, event, event.new_member_id)
    response = join_error(ErrorCode.MEMBER_ID_REQUIRED, event.new_member_id)
    return Effects(replies=[(event.pending_reply, response)])


def join(
    state: GroupState,
    event: Join,
    settings: ConsumerGroupSettings,
    image: MetadataImage,
    now_ms: int,
    downgrade: departure.Downgrade,
) -> Effects:
    """Add the member. If it replaces the last member of the consumer protocol, the group is downgraded.

    Raises GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    member_id = event.member_id or event.new_member_id
    checks.check_room(state, member_id, settings)
    subscription = _subscription(state, event, member_id)
    effects = Effects()
    old = _joining_member(state, event, member_id, effects)
    new = _updated(old, event, subscription)
    owned = consumer_protocol.topic_partition_ids(subscription.owned_partitions, image)
    member = MemberUpdate(state, settings, image, now_ms, old, new, effects, event.may_describe).apply(owned)
    state.must_rejoin.discard(member_id)
    effects.timers[join_timer(member_id)] = None
    effects.timers[session_timer(member_id)] = event.session_timeout_ms
    effects.timers[sync_timer(member_id)] = event.rebalance_timeout_ms
    response = JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=consumer_protocol.NAME,
        protocol_name=event.protocols[0][0],
        member_id=member_id,
    )
    effects.replies.append((event.pending_reply, response))
    replaced = state.static_member(event.group_instance_id)
    if replaced is not None and replaced.classic is None:
        # Differs from Kafka: there it rebalances only if it reads other topics. Here every downgrade does.
        downgraded = downgrade(state.after(effects.records), ())
        if downgraded is not None:
            downgraded.records = [*effects.records, *downgraded.records]
            downgraded.replies += effects.replies
            return downgraded
    return effects


def sync(state: GroupState, event: Sync, image: MetadataImage) -> Effects:
    """Answer with the assignment.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION or INCONSISTENT_GROUP_PROTOCOL.
    """
    member, classic = _classic_member(state, event.member_id, event.group_instance_id)
    _check_generation(member, event.generation_id)
    protocol = classic.supported_protocols[0]
    if event.protocol_type not in (None, consumer_protocol.NAME) or event.protocol_name not in (None, protocol.name):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member.member_id} has joined with {consumer_protocol.NAME} {protocol.name}.",
        )
    effects = Effects()
    if state.target_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_rejoin(state, member, effects)
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    else:
        effects.timers[sync_timer(member.member_id)] = None
        effects.timers[session_timer(member.member_id)] = classic.session_timeout_ms
        response = SyncGroupResponse(
            protocol_type=event.protocol_type,
            protocol_name=event.protocol_name,
            assignment=consumer_protocol.write_assignment(member.assigned, image, protocol.metadata),
        )
    effects.replies.append((event.pending_reply, response))
    return effects


def heartbeat(state: GroupState, event: Heartbeat) -> Effects:
    """Restart the session. Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION."""
    member, classic = _classic_member(state, event.member_id, event.group_instance_id)
    _check_generation(member, event.generation_id)
    effects = Effects(timers={session_timer(member.member_id): classic.session_timeout_ms})
    is_rejoin_due = (
        member.member_epoch < state.target_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(state, member))
    )
    if is_rejoin_due:
        _expect_rejoin(state, member, effects)
    code = ErrorCode.REBALANCE_IN_PROGRESS if is_rejoin_due else ErrorCode.NONE
    effects.replies.append((event.pending_reply, HeartbeatResponse(error_code=code)))
    return effects


def leave(state: GroupState, event: Leave, image: MetadataImage, downgrade: departure.Downgrade) -> Effects:
    """Remove the members, of either protocol: an administrator may; the response has a row for each."""
    rows = []
    gone: dict[str, ConsumerMember] = {}
    for leaving in event.members:
        code = ErrorCode.NONE
        try:
            member = _leaving_member(state, leaving)
            gone[member.member_id] = member
        except KafkaError as error:
            code = error.code
        rows.append(MemberResponse(leaving.member_id, leaving.group_instance_id, code))
    effects = departure.fence(state, tuple(gone.values()), image, "it left", downgrade) if gone else Effects()
    effects.replies.append((event.pending_reply, LeaveGroupResponse(members=rows)))
    return effects


def _subscription(state: GroupState, event: Join, member_id: str) -> ConsumerProtocolSubscription:
    """Return the subscription of the first protocol; those of the others have the same topics."""
    classic = [member.classic for member in state.members.values() if member.classic is not None]
    supported = [{protocol.name for protocol in each.supported_protocols} for each in classic]
    is_supported = any(all(name in names for names in supported) for name, _ in event.protocols)
    if event.protocol_type == consumer_protocol.NAME and is_supported:
        try:
            return consumer_protocol.read_subscription(event.protocols[0][1])
        except RemoteProtocolError:
            # Differs from Kafka: an unreadable subscription is refused like an unsupported protocol.
            pass
    detail = f"Member {member_id}'s protocols are not supported."
    raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, detail)


def _joining_member(state: GroupState, event: Join, member_id: str, effects: Effects) -> ConsumerMember:
    instance_id = event.group_instance_id
    if instance_id is None:
        return state.members.get(member_id, ConsumerMember(member_id))
    if event.member_id:
        return checks.known_static_member(state, member_id, instance_id)
    present = state.static_member(instance_id)
    return ConsumerMember(member_id) if present is None else replace_static(state, present, member_id, effects)


def _updated(member: ConsumerMember, event: Join, subscription: ConsumerProtocolSubscription) -> ConsumerMember:
    protocols = [ClassicProtocol(name, metadata) for name, metadata in event.protocols]
    return msgspec.structs.replace(
        member,
        instance_id=member.instance_id if event.group_instance_id is None else event.group_instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicMemberMetadata(event.session_timeout_ms, protocols),
    )


def _classic_member(
    state: GroupState, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    member = checks.known_member(state, member_id, instance_id)
    if member.classic is None:
        detail = f"Member {member.member_id} does not use the classic protocol."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, detail)
    return member, member.classic


def _leaving_member(state: GroupState, leaving: Leaving) -> ConsumerMember:
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if instance_id is not None and not member_id:
        # An admin removes a static member, whatever its member id.
        member_id = state.static_member_ids.get(instance_id, "")
    return checks.known_member(state, member_id, instance_id)


def _check_generation(member: ConsumerMember, generation_id: int) -> None:
    if generation_id != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch {member.member_epoch} of "
            f"member {member.member_id}.",
        )


def _expect_rejoin(state: GroupState, member: ConsumerMember, effects: Effects) -> None:
    if member.member_id not in state.must_rejoin:
        state.must_rejoin.add(member.member_id)
        effects.timers[join_timer(member.member_id)] = member.rebalance_timeout_ms


def _waits_for_others(state: GroupState, member: ConsumerMember) -> bool:
    target = state.target_of(member.member_id, member.instance_id).partitions
    return any(
        number not in member.assigned.get(topic_id, {}) and state.is_owned(topic_id, number)
        for topic_id, numbers in target.items()
        for number in numbers
    )
