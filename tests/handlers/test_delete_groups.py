from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.handlers.group_members import GroupMember
from tests.handlers.requests import create
from tests.handlers.test_list_groups import listed
from tests.wire import Wire


async def delete(wire: Wire, *group_ids: str, version: int = 2) -> dict[str, ErrorCode]:
    response = await wire.ask(DeleteGroupsRequest(list(group_ids)), version)
    return {row.group_id: ErrorCode(row.error_code) for row in response.results}


@pytest.mark.parametrize("version", range(3))
async def test_only_groups_without_members_are_deleted(wire: Wire, only_member: GroupMember, version: int) -> None:
    found = await delete(wire, only_member.group_id, "nobody", version=version)

    assert found == {only_member.group_id: ErrorCode.NON_EMPTY_GROUP, "nobody": ErrorCode.GROUP_ID_NOT_FOUND}


async def test_a_group_is_deleted_with_its_offsets(wire: Wire, only_member: GroupMember) -> None:
    await create(wire, "t")
    await only_member.commit("t", 5)
    await only_member.leave()

    assert await delete(wire, only_member.group_id) == {only_member.group_id: ErrorCode.NONE}

    assert only_member.group_id not in await listed(wire, 5)
    assert (await only_member.fetch()).topics == []
    assert await delete(wire, only_member.group_id) == {only_member.group_id: ErrorCode.GROUP_ID_NOT_FOUND}
