"""DeleteGroups (API key 42): an admin client deletes groups without members, offsets included (KIP-229).

The coordinators of the groups receive it.
"""

from odradek.protocol.schema import Message, Structure, i16, i32, message, string


@message(key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsRequest(Message):
    """Versions 0–2, flexible from 2.

    With v1 a client declares that it waits for the throttle time itself (KIP-219).
    """

    groups_names: list[string] = []


class DeletableGroupResult(Structure):
    group_id: string = ""
    error_code: i16 = 0  # NON_EMPTY_GROUP (68), GROUP_ID_NOT_FOUND (69), …


@message(key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsResponse(Message):
    """Versions 0–2, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219).
    """

    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = []
