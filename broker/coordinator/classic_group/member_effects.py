"""Effects on a single member of a classic group: its responses, its session, its removal."""

from __future__ import annotations

from odradek.broker.coordinator.classic_group.members import Member
from odradek.broker.coordinator.classic_group.state import ClassicGroupState, session_timer
from odradek.broker.coordinator.runtime.events import Effects
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.sync_group import SyncGroupResponse


def join_response(state: ClassicGroupState, member: Member, *, with_members: bool) -> JoinGroupResponse:
    """Return the current generation; `with_members`, the leader gets the metadata of all members."""
    rows = []
    if with_members and state.members.leader == member.member_id:
        rows = [
            JoinGroupResponseMember(each.member_id, each.group_instance_id, each.metadata(state.protocol_name))
            for each in state.members
        ]
    return JoinGroupResponse(
        generation_id=state.generation_id,
        protocol_type=state.protocol_type,
        protocol_name=state.protocol_name,
        leader=state.members.leader or "",
        member_id=member.member_id,
        members=rows,
    )


def join_error(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    """Return the response to a JoinGroup that fails; the client comes back with `member_id`, "" for none."""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)


def sync_response(state: ClassicGroupState, member: Member) -> SyncGroupResponse:
    """Return the member's assignment."""
    return SyncGroupResponse(
        protocol_type=state.protocol_type, protocol_name=state.protocol_name, assignment=member.assignment
    )


def restart_session(member: Member, effects: Effects) -> None:
    """Give the member a whole session timeout from now on."""
    effects.timers[session_timer(member.member_id)] = member.session_timeout_ms


def refuse_parked(state: ClassicGroupState, member: Member, error: ErrorCode, effects: Effects) -> None:
    """Answer the requests of the member that are parked."""
    is_member = member.member_id in state.members
    joining = state.members.take_joining(member) if is_member else member.joining
    syncing, member.syncing = member.syncing, None
    if joining is not None:
        member_id = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else member.member_id
        effects.replies.append((joining, join_error(error, member_id)))
    if syncing is not None:
        effects.replies.append((syncing, SyncGroupResponse(error_code=error)))


def remove_member(state: ClassicGroupState, member_id: str, effects: Effects) -> None:
    """Remove a member, or an id that was given out. Its parked requests are refused; it may join again."""
    member = state.members.get(member_id)
    if member is not None:
        refuse_parked(state, member, ErrorCode.UNKNOWN_MEMBER_ID, effects)
    state.members.remove(member_id)
    effects.timers[session_timer(member_id)] = None


def clear_assignments(state: ClassicGroupState, error: ErrorCode, effects: Effects) -> None:
    """Delete all assignments and answer the parked syncs with `error`."""
    for member in state.members:
        member.assignment = b""
        syncing, member.syncing = member.syncing, None
        if syncing is not None:
            effects.replies.append((syncing, SyncGroupResponse(error_code=error)))
            restart_session(member, effects)
