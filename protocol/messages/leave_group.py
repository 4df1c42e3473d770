"""LeaveGroup (API key 13): a member leaves a classic group at once, not only when its session times out.

The coordinator receives it. Admin clients send it to remove static members.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i16, i32, ignorable, message, since, string, until


class MemberIdentity(Structure):
    member_id: Annotated[string, since(3)] = ""  # may be empty with an instance id
    group_instance_id: Annotated[string | None, since(3)] = None
    reason: Annotated[string | None, since(5), ignorable] = None  # for the broker's log


@message(key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupRequest(Message):
    """Versions 0–5, flexible from 4.

    v0–2 name one member. v3 names several, by member or instance id (KIP-345). v5 adds reasons (KIP-800). With v2 a
    client declares that it waits for the throttle time itself (KIP-219).
    """

    group_id: string = ""
    member_id: Annotated[string, until(2)] = ""
    members: Annotated[list[MemberIdentity], since(3)] = []


class MemberResponse(Structure):
    member_id: Annotated[string, since(3)] = ""
    group_instance_id: Annotated[string | None, since(3)] = ""
    error_code: Annotated[i16, since(3)] = 0


@message(key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupResponse(Message):
    """Versions 0–5, flexible from 4.

    v1 adds the throttle time (KIP-124), for which the client itself waits from v2 on (KIP-219). v3 has an error for
    each member (KIP-345).
    """

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: i16 = 0
    members: Annotated[list[MemberResponse], since(3)] = []
