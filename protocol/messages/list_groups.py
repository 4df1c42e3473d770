"""ListGroups (API key 16)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, ignorable, message, since, string


@message(key=16, versions=(0, 5), flexible_since=3)
class ListGroupsRequest(Message):
    """ListGroupsRequest, versions 0–5, flexible from 3."""

    states_filter: Annotated[list[string], since(4)] = []
    types_filter: Annotated[list[string], since(5)] = []


class ListedGroup(Structure):
    group_id: string = ""
    protocol_type: string = ""
    group_state: Annotated[string, since(4), ignorable] = ""
    group_type: Annotated[string, since(5), ignorable] = ""


@message(key=16, versions=(0, 5), flexible_since=3)
class ListGroupsResponse(Message):
    """ListGroupsResponse, versions 0–5, flexible from 3."""

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: i16 = 0
    groups: list[ListedGroup] = []
