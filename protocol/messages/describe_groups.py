"""DescribeGroups (API key 15)."""

from typing import Annotated

from protocol.schema import Message, Structure, binary, boolean, i16, i32, ignorable, message, since, string


@message(key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsRequest(Message):
    """DescribeGroupsRequest, versions 0–6, flexible from 5."""

    groups: list[string] = []
    include_authorized_operations: Annotated[boolean, since(3)] = False


class DescribedGroupMember(Structure):
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(4), ignorable] = None
    client_id: string = ""
    client_host: string = ""
    member_metadata: binary = b""
    member_assignment: binary = b""


class DescribedGroup(Structure):
    error_code: i16 = 0
    error_message: Annotated[string | None, since(6)] = None
    group_id: string = ""
    group_state: string = ""
    protocol_type: string = ""
    protocol_data: string = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[i32, since(3)] = -2147483648


@message(key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsResponse(Message):
    """DescribeGroupsResponse, versions 0–6, flexible from 5."""

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    groups: list[DescribedGroup] = []
