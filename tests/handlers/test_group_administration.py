from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from tests.handlers.group_members import SUBSCRIPTION, GroupMember, find_coordinator, new_group_id
from tests.handlers.requests import create
from tests.wire import Wire

NOT_REQUESTED = -0x80000000


@pytest.fixture
async def member(wire: Wire) -> GroupMember:
    """The only member of a stable group."""
    group_id = new_group_id()
    await find_coordinator(wire, group_id)
    member = GroupMember(wire, group_id, "instance")
    await member.become_only_member()
    return member


async def describe(wire: Wire, group_id: str, version: int, **fields: bool) -> DescribedGroup:
    [group] = (await wire.ask(DescribeGroupsRequest([group_id], **fields), version)).groups
    found: DescribedGroup = group
    return found


@pytest.mark.parametrize("version", range(7))
async def test_a_stable_group_is_described_with_assignments(wire: Wire, member: GroupMember, version: int) -> None:
    group = await describe(wire, member.group_id, version)

    assert (group.error_code, group.group_state, group.protocol_type) == (ErrorCode.NONE, "Stable", "consumer")
    assert (group.protocol_data, group.authorized_operations) == ("range", NOT_REQUESTED)
    [row] = group.members
    assert (row.member_id, row.client_id, row.client_host) == (member.member_id, "wire", "/127.0.0.1")
    assert (row.member_metadata, row.member_assignment) == (SUBSCRIPTION, b"all")
    assert row.group_instance_id == ("instance" if version >= 4 else None)


async def test_a_rebalancing_group_is_described_without_a_protocol(wire: Wire, member: GroupMember) -> None:
    await member.join()

    group = await describe(wire, member.group_id, 5)

    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert [row.member_metadata for row in group.members] == [b""]


@pytest.mark.parametrize("version", range(6))
async def test_an_unknown_group_is_dead(wire: Wire, member: GroupMember, version: int) -> None:
    group = await describe(wire, "nobody", version)

    assert (group.error_code, group.group_state, group.members) == (ErrorCode.NONE, "Dead", [])


async def test_an_unknown_group_is_not_found_from_version_6_on(wire: Wire, member: GroupMember) -> None:
    group = await describe(wire, "nobody", 6)

    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert group.error_message == "Group nobody not found."


async def test_authorized_operations_are_included_on_request(wire: Wire, member: GroupMember) -> None:
    group = await describe(wire, member.group_id, 5, include_authorized_operations=True)

    assert group.authorized_operations == 0b1101_0100_1000


async def listed(wire: Wire, version: int, **filters: list[str]) -> dict[str, tuple[str, str, str]]:
    response = await wire.ask(ListGroupsRequest(**filters), version)
    assert response.error_code == ErrorCode.NONE
    return {row.group_id: (row.protocol_type, row.group_state, row.group_type) for row in response.groups}


@pytest.mark.parametrize("version", range(6))
async def test_groups_are_listed(wire: Wire, member: GroupMember, version: int) -> None:
    rows = await listed(wire, version)

    state, kind = ("Stable" if version >= 4 else ""), ("classic" if version >= 5 else "")
    assert rows[member.group_id] == ("consumer", state, kind)


async def test_groups_are_listed_by_state(wire: Wire, member: GroupMember) -> None:
    assert member.group_id in await listed(wire, 4, states_filter=["stable", "Dead"])
    assert member.group_id not in await listed(wire, 4, states_filter=["Empty"])
    assert await listed(wire, 4, states_filter=["nonsense"]) == {}


async def test_groups_are_listed_by_type(wire: Wire, member: GroupMember) -> None:
    assert member.group_id in await listed(wire, 5, types_filter=["Classic"])
    assert member.group_id not in await listed(wire, 5, types_filter=["consumer"])
    assert await listed(wire, 5, types_filter=["nonsense"]) == {}


async def delete(wire: Wire, *group_ids: str, version: int = 2) -> dict[str, ErrorCode]:
    response = await wire.ask(DeleteGroupsRequest(list(group_ids)), version)
    return {row.group_id: ErrorCode(row.error_code) for row in response.results}


@pytest.mark.parametrize("version", range(3))
async def test_only_groups_without_members_are_deleted(wire: Wire, member: GroupMember, version: int) -> None:
    found = await delete(wire, member.group_id, "nobody", version=version)

    assert found == {member.group_id: ErrorCode.NON_EMPTY_GROUP, "nobody": ErrorCode.GROUP_ID_NOT_FOUND}


async def test_a_group_is_deleted_with_its_offsets(wire: Wire, member: GroupMember) -> None:
    await create(wire, "t")
    await member.commit("t", 5)
    await member.leave()

    assert await delete(wire, member.group_id) == {member.group_id: ErrorCode.NONE}

    assert member.group_id not in await listed(wire, 5)
    assert (await member.fetch()).topics == []
    assert await delete(wire, member.group_id) == {member.group_id: ErrorCode.GROUP_ID_NOT_FOUND}


@pytest.mark.parametrize("version", range(2))
async def test_a_classic_group_is_not_found_among_those_of_the_consumer_protocol(
    wire: Wire, member: GroupMember, version: int
) -> None:
    """Java's admin client sends ConsumerGroupDescribe first, and DescribeGroups after this error."""
    [group] = (await wire.ask(ConsumerGroupDescribeRequest([member.group_id]), version)).groups

    assert (group.error_code, group.members) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    assert group.error_message == f"Group {member.group_id} is not a consumer group."
