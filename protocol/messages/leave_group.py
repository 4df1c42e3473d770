"""LeaveGroup (API key 13)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, ignorable, message, since, string, until


class MemberIdentity(Structure):
    member_id: Annotated[string, since(3)] = ""
    group_instance_id: Annotated[string | None, since(3)] = None
    reason: Annotated[string | None, since(5), ignorable] = None


@message(key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupRequest(Message):
    """LeaveGroupRequest, versions 0–5, flexible from 4."""

    group_id: string = ""
    member_id: Annotated[string, until(2)] = ""
    members: Annotated[list[MemberIdentity], since(3)] = []


class MemberResponse(Structure):
    member_id: Annotated[string, since(3)] = ""
    group_instance_id: Annotated[string | None, since(3)] = ""
    error_code: Annotated[i16, since(3)] = 0


@message(key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupResponse(Message):
    """LeaveGroupResponse, versions 0–5, flexible from 4."""

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: i16 = 0
    members: Annotated[list[MemberResponse], since(3)] = []
