"""DescribeGroups (API key 15): an admin client reads the state and members of classic groups from coordinators."""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, binary, boolean, i16, i32, ignorable, message, since, string


@message(key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsRequest(Message):
    """Versions 0–6, flexible from 5.

    v3 can request the operations that the client is authorized for (KIP-430). With v2, v4 and v6 the client declares
    what it supports: waiting for the throttle time itself (KIP-219), instance ids (KIP-345), GROUP_ID_NOT_FOUND
    (KIP-1043).
    """

    groups: list[string] = []
    include_authorized_operations: Annotated[boolean, since(3)] = False


class DescribedGroupMember(Structure):
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(4), ignorable] = None
    client_id: string = ""
    client_host: string = ""
    member_metadata: binary = b""  # its subscription, in the group's chosen protocol; empty unless the group is stable
    member_assignment: binary = b""  # its partitions; empty unless the group is stable


class DescribedGroup(Structure):
    error_code: i16 = 0
    error_message: Annotated[string | None, since(6), ignorable] = None  # earlier versions have the code only
    group_id: string = ""
    group_state: string = ""  # Empty, PreparingRebalance, CompletingRebalance, Stable, Dead
    protocol_type: string = ""  # `consumer` for consumers; empty before the first member joins
    protocol_data: string = ""  # the chosen assignor; empty unless the group is stable
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[i32, since(3)] = -2147483648


@message(key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsResponse(Message):
    """Versions 0–6, flexible from 5.

    v1 adds the throttle time (KIP-124), for which the client itself waits from v2 on (KIP-219), v3 the authorized
    operations (KIP-430), v4 instance ids (KIP-345). Up to v5 an unknown group is described as Dead, without an error;
    v6 returns GROUP_ID_NOT_FOUND (69) with a text (KIP-1043).
    """

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    groups: list[DescribedGroup] = []
