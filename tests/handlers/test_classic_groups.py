from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.handlers.group_members import SUBSCRIPTION, GroupMember, find_coordinator, new_group_id
from tests.handlers.requests import create
from tests.wire import Wire

_numbers = itertools.count()


@pytest.fixture
async def group_id(wire: Wire) -> str:
    """A new group with a coordinator."""
    group_id = new_group_id()
    await find_coordinator(wire, group_id)
    return group_id


@pytest.fixture
async def other_wire(wire: Wire) -> AsyncIterator[Wire]:
    async with Wire(wire.host, wire.port, "other") as connected:
        yield connected


@pytest.mark.parametrize("version", range(10))
async def test_the_first_member_leads_and_gets_the_members(wire: Wire, group_id: str, version: int) -> None:
    member = GroupMember(wire, group_id)

    joined = await member.join(version)

    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert joined.member_id.startswith("wire-")
    assert len(joined.member_id) == len("wire-") + 36
    assert joined.leader == joined.member_id
    assert joined.protocol_name == "range"
    assert [(each.member_id, each.metadata) for each in joined.members] == [(joined.member_id, SUBSCRIPTION)]
    assert joined.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(4))
async def test_old_clients_join_without_a_member_id(wire: Wire, group_id: str, version: int) -> None:
    joined = await GroupMember(wire, group_id).try_to_join(version)

    assert joined.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(4, 10))
async def test_a_join_without_a_member_id_returns_one(wire: Wire, group_id: str, version: int) -> None:
    joined = await GroupMember(wire, group_id).try_to_join(version)

    assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert joined.member_id.startswith("wire-")
    assert joined.protocol_name == (None if version >= 7 else "")
    assert (joined.leader, joined.generation_id) == ("", -1)


@pytest.mark.parametrize("version", range(6))
async def test_the_leader_assigns(wire: Wire, group_id: str, version: int) -> None:
    member = GroupMember(wire, group_id)
    await member.join()
    fields = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}

    synced = await member.sync({member.member_id: b"mine"}, version, **fields)

    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"mine")
    assert synced.protocol_name == ("range" if version >= 5 else None)
    assert await member.heartbeat() == ErrorCode.NONE


async def test_two_members_share(wire: Wire, other_wire: Wire, group_id: str) -> None:
    leader, follower = GroupMember(wire, group_id), GroupMember(other_wire, group_id)
    await leader.become_only_member()
    joining = asyncio.create_task(follower.join())
    await leader.until_rebalance()
    rejoined = await leader.join()
    joined = await joining
    assert rejoined.generation_id == joined.generation_id == 2
    assert rejoined.leader == joined.leader == leader.member_id
    assert {each.member_id for each in rejoined.members} == {leader.member_id, follower.member_id}
    assert joined.members == []

    syncing = asyncio.create_task(follower.sync())
    await leader.sync({leader.member_id: b"a", follower.member_id: b"b"})

    assert (await syncing).assignment == b"b"


async def test_a_member_that_leaves_is_removed_at_once(wire: Wire, other_wire: Wire, group_id: str) -> None:
    leader, follower = GroupMember(wire, group_id), GroupMember(other_wire, group_id)
    await leader.become_only_member()
    joining = asyncio.create_task(follower.join())
    await leader.until_rebalance()

    left = await leader.leave()

    assert [row.error_code for row in left.members] == [ErrorCode.NONE]
    joined = await joining
    assert (joined.error_code, joined.leader) == (ErrorCode.NONE, follower.member_id)


@pytest.mark.parametrize("version", range(2, 10))
async def test_a_member_commits(wire: Wire, group_id: str, version: int) -> None:
    member = GroupMember(wire, group_id)
    topic = await an_existing_topic(wire)
    await member.become_only_member()

    assert await member.commit(topic, 41, version) == ErrorCode.NONE

    assert await member.committed(topic) == 41


async def an_existing_topic(wire: Wire) -> str:
    name = f"topic-{next(_numbers)}"
    await create(wire, name)
    return name


@pytest.mark.usefixtures("only_here")
async def test_a_member_with_too_many_protocols_is_refused(wire: Wire) -> None:
    protocols = [JoinGroupRequestProtocol(f"p{index}", b"") for index in range(1001)]
    request = JoinGroupRequest("g", 6000, 6000, "", None, "consumer", protocols)

    assert (await wire.ask(request, 7)).error_code == ErrorCode.INVALID_REQUEST
