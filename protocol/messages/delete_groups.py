"""DeleteGroups (API key 42): an admin client deletes groups without members, offsets included (KIP-229).

It goes to the coordinator of each.
"""

from odradek.protocol.schema import Message, Structure, i16, i32, message, string


@message(key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsRequest(Message):
    """Versions 0–2, flexible from 2.

    v1 says that the client waits out a throttle by itself (KIP-219).
    """

    groups_names: list[string] = []


class DeletableGroupResult(Structure):
    group_id: string = ""
    error_code: i16 = 0  # NON_EMPTY_GROUP (68), GROUP_ID_NOT_FOUND (69), …


@message(key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsResponse(Message):
    """Versions 0–2, flexible from 2.

    From v1 on the client waits out a throttle by itself (KIP-219).
    """

    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = []
