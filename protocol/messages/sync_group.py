"""SyncGroup (API key 14)."""

from typing import Annotated

from protocol.schema import Message, Structure, binary, i16, i32, ignorable, message, since, string


class SyncGroupRequestAssignment(Structure):
    member_id: string = ""
    assignment: binary = b""


@message(key=14, versions=(0, 5), flexible_since=4)
class SyncGroupRequest(Message):
    """SyncGroupRequest, versions 0–5, flexible from 4."""

    group_id: string = ""
    generation_id: i32 = 0
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(3)] = None
    protocol_type: Annotated[string | None, since(5), ignorable] = None
    protocol_name: Annotated[string | None, since(5), ignorable] = None
    assignments: list[SyncGroupRequestAssignment] = []


@message(key=14, versions=(0, 5), flexible_since=4)
class SyncGroupResponse(Message):
    """SyncGroupResponse, versions 0–5, flexible from 4."""

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: i16 = 0
    protocol_type: Annotated[string | None, since(5), ignorable] = None
    protocol_name: Annotated[string | None, since(5), ignorable] = None
    assignment: binary = b""
