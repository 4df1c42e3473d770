"""JoinGroup (API key 11)."""

from typing import Annotated

from protocol.schema import Message, Structure, binary, boolean, i16, i32, ignorable, message, nullable, since, string


class JoinGroupRequestProtocol(Structure):
    name: string = ""
    metadata: binary = b""


@message(key=11, versions=(0, 9), flexible_since=6)
class JoinGroupRequest(Message):
    """JoinGroupRequest, versions 0–9, flexible from 6."""

    group_id: string = ""
    session_timeout_ms: i32 = 0
    rebalance_timeout_ms: Annotated[i32, since(1), ignorable] = -1
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(5)] = None
    protocol_type: string = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[string | None, since(8), ignorable] = None


class JoinGroupResponseMember(Structure):
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(5), ignorable] = None
    metadata: binary = b""


@message(key=11, versions=(0, 9), flexible_since=6)
class JoinGroupResponse(Message):
    """JoinGroupResponse, versions 0–9, flexible from 6."""

    throttle_time_ms: Annotated[i32, since(2), ignorable] = 0
    error_code: i16 = 0
    generation_id: i32 = -1
    protocol_type: Annotated[string | None, since(7), ignorable] = None
    protocol_name: Annotated[string | None, nullable(7)] = ""
    leader: string = ""
    skip_assignment: Annotated[boolean, since(9)] = False
    member_id: string = ""
    members: list[JoinGroupResponseMember] = []
