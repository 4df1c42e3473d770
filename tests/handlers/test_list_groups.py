from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListGroupsRequest
from tests.handlers.group_members import GroupMember
from tests.wire import Wire


async def listed(wire: Wire, version: int, **filters: list[str]) -> dict[str, tuple[str, str, str]]:
    response = await wire.ask(ListGroupsRequest(**filters), version)
    assert response.error_code == ErrorCode.NONE
    return {row.group_id: (row.protocol_type, row.group_state, row.group_type) for row in response.groups}


@pytest.mark.parametrize("version", range(6))
async def test_groups_are_listed(wire: Wire, only_member: GroupMember, version: int) -> None:
    rows = await listed(wire, version)

    state, kind = ("Stable" if version >= 4 else ""), ("classic" if version >= 5 else "")
    assert rows[only_member.group_id] == ("consumer", state, kind)


async def test_groups_are_listed_by_state(wire: Wire, only_member: GroupMember) -> None:
    assert only_member.group_id in await listed(wire, 4, states_filter=["stable", "Dead"])
    assert only_member.group_id not in await listed(wire, 4, states_filter=["Empty"])
    assert await listed(wire, 4, states_filter=["nonsense"]) == {}


async def test_groups_are_listed_by_type(wire: Wire, only_member: GroupMember) -> None:
    assert only_member.group_id in await listed(wire, 5, types_filter=["Classic"])
    assert only_member.group_id not in await listed(wire, 5, types_filter=["consumer"])
    assert await listed(wire, 5, types_filter=["nonsense"]) == {}
