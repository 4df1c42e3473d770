"""ListGroups (API key 16): an admin client lists the groups, of all types, that a broker coordinates."""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i16, i32, ignorable, message, since, string


@message(key=16, versions=(0, 5), flexible_since=3)
class ListGroupsRequest(Message):
    """Versions 0–5, flexible from 3.

    v4 can filter by state (KIP-518), v5 by type (KIP-848). With v2 a client declares that it waits for the throttle
    time itself (KIP-219).
    """

    states_filter: Annotated[list[string], since(4)] = []  # empty for all
    types_filter: Annotated[list[string], since(5)] = []  # `classic`, `consumer`, `share`, `streams`; empty for all


class ListedGroup(Structure):
    group_id: string = ""
    protocol_type: string = ""  # `consumer` for consumers; empty for a group with offsets only
    group_state: Annotated[string, since(4), ignorable] = ""
    group_type: Annotated[string, since(5), ignorable] = ""


@message(key=16, versions=(0, 5), flexible_since=3)
class ListGroupsResponse(Message):
    """Versions 0–5, flexible from 3.

    v1 adds the throttle time (KIP-124), for which the client itself waits from v2 on (KIP-219), v4 the state (KIP-518),
    v5 the type (KIP-848).
    """

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: i16 = 0
    groups: list[ListedGroup] = []
