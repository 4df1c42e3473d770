"""DeleteGroups (API key 42)."""

from protocol.schema import Message, Structure, i16, i32, message, string


@message(key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsRequest(Message):
    """DeleteGroupsRequest, versions 0–2, flexible from 2."""

    groups_names: list[string] = []


class DeletableGroupResult(Structure):
    group_id: string = ""
    error_code: i16 = 0


@message(key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsResponse(Message):
    """DeleteGroupsResponse, versions 0–2, flexible from 2."""

    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = []
