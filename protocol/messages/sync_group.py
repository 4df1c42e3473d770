"""SyncGroup (API key 14): the leader of a group sends the assignment, and every member receives its own.

It follows JoinGroup. The group's coordinator responds when it has the leader's request. After REBALANCE_IN_PROGRESS
(27) the member joins again.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, binary, i16, i32, ignorable, message, since, string


class SyncGroupRequestAssignment(Structure):
    member_id: string = ""
    assignment: binary = b""  # opaque to the broker; for consumers a `ConsumerProtocolAssignment`


@message(key=14, versions=(0, 5), flexible_since=4)
class SyncGroupRequest(Message):
    """Versions 0–5, flexible from 4.

    v3 adds the instance id of static members (KIP-345). v5 adds the protocol type and name that JoinGroup returned;
    INCONSISTENT_GROUP_PROTOCOL (23) if they are not the group's (KIP-559). With v2 a client declares that it waits for
    the throttle time itself (KIP-219).
    """

    group_id: string = ""
    generation_id: i32 = 0
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(3)] = None
    protocol_type: Annotated[string | None, since(5), ignorable] = None
    protocol_name: Annotated[string | None, since(5), ignorable] = None
    assignments: list[SyncGroupRequestAssignment] = []  # from the leader; empty from others


@message(key=14, versions=(0, 5), flexible_since=4)
class SyncGroupResponse(Message):
    """Versions 0–5, flexible from 4.

    v1 adds the throttle time (KIP-124), for which the client itself waits from v2 on (KIP-219). v5 adds protocol type
    and name (KIP-559).
    """

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: i16 = 0
    protocol_type: Annotated[string | None, since(5), ignorable] = None
    protocol_name: Annotated[string | None, since(5), ignorable] = None
    assignment: binary = b""  # empty with an error
