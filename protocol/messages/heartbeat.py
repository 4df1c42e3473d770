"""Heartbeat (API key 12)."""

from typing import Annotated

from protocol.schema import Message, i16, i32, ignorable, message, since, string


@message(key=12, versions=(0, 4), flexible_since=4)
class HeartbeatRequest(Message):
    """HeartbeatRequest, versions 0–4, flexible from 4."""

    group_id: string = ""
    generation_id: i32 = 0
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(3)] = None


@message(key=12, versions=(0, 4), flexible_since=4)
class HeartbeatResponse(Message):
    """HeartbeatResponse, versions 0–4, flexible from 4."""

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: i16 = 0
