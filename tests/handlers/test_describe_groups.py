from __future__ import annotations

import pytest

from odradek.broker.handlers.describe_groups import error_response
from odradek.protocol.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from tests.handlers.group_members import SUBSCRIPTION, GroupMember
from tests.wire import Wire

NOT_REQUESTED = -0x80000000


async def describe(wire: Wire, group_id: str, version: int, **fields: bool) -> DescribedGroup:
    [group] = (await wire.ask(DescribeGroupsRequest([group_id], **fields), version)).groups
    found: DescribedGroup = group
    return found


@pytest.mark.parametrize("version", range(7))
async def test_a_stable_group_is_described_with_assignments(wire: Wire, only_member: GroupMember, version: int) -> None:
    group = await describe(wire, only_member.group_id, version)

    assert (group.error_code, group.group_state, group.protocol_type) == (ErrorCode.NONE, "Stable", "consumer")
    assert (group.protocol_data, group.authorized_operations) == ("range", NOT_REQUESTED)
    [row] = group.members
    assert (row.member_id, row.client_id, row.client_host) == (only_member.member_id, "wire", "/127.0.0.1")
    assert (row.member_metadata, row.member_assignment) == (SUBSCRIPTION, b"all")
    assert row.group_instance_id == ("instance" if version >= 4 else None)


async def test_a_rebalancing_group_is_described_without_a_protocol(wire: Wire, only_member: GroupMember) -> None:
    await only_member.join()

    group = await describe(wire, only_member.group_id, 5)

    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert [row.member_metadata for row in group.members] == [b""]


@pytest.mark.parametrize("version", range(6))
async def test_an_unknown_group_is_dead(wire: Wire, only_member: GroupMember, version: int) -> None:
    group = await describe(wire, "nobody", version)

    assert (group.error_code, group.group_state, group.members) == (ErrorCode.NONE, "Dead", [])


async def test_an_unknown_group_is_not_found_from_version_6_on(wire: Wire, only_member: GroupMember) -> None:
    group = await describe(wire, "nobody", 6)

    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert group.error_message == "Group nobody not found."


async def test_authorized_operations_are_included_on_request(wire: Wire, only_member: GroupMember) -> None:
    group = await describe(wire, only_member.group_id, 5, include_authorized_operations=True)

    assert group.authorized_operations == 0b1101_0100_1000


@pytest.mark.parametrize("version", range(7))
def test_a_refused_request_is_answered_in_every_version(version: int) -> None:
    refusal = error_response(DescribeGroupsRequest(["g"]), ErrorCode.POLICY_VIOLATION, "no")

    [group] = decode(DescribeGroupsResponse, version, encode(refusal, version)).groups

    assert (group.group_id, group.error_code) == ("g", ErrorCode.POLICY_VIOLATION)
    assert group.error_message == ("no" if version == 6 else None)
