"""Heartbeat (API key 12): a member of a classic group keeps its session alive, and is notified of rebalances.

The coordinator receives it. REBALANCE_IN_PROGRESS (27): join again. ILLEGAL_GENERATION (22) or UNKNOWN_MEMBER_ID (25):
the group has removed this member.
"""

from typing import Annotated

from odradek.protocol.schema import Message, i16, i32, ignorable, message, since, string


@message(key=12, versions=(0, 4), flexible_since=4)
class HeartbeatRequest(Message):
    """Versions 0–4, flexible from 4.

    v3 adds the instance id of static members (KIP-345); with v2 a client declares that it waits for the throttle time
    itself (KIP-219).
    """

    group_id: string = ""
    generation_id: i32 = 0
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(3)] = None


@message(key=12, versions=(0, 4), flexible_since=4)
class HeartbeatResponse(Message):
    """Versions 0–4, flexible from 4.

    v1 adds the throttle time (KIP-124), for which the client itself waits from v2 on (KIP-219). v3 may return
    FENCED_INSTANCE_ID (82) to a static member that was replaced (KIP-345).
    """

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: i16 = 0
