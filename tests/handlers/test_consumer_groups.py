from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.handlers.consumer_group_script import perform
from tests.handlers.group_members import find_coordinator
from tests.handlers.requests import create
from tests.wire import Wire

RECORDED = Path(__file__).parent / "recorded" / "consumer-groups.txt"


async def test_a_script_of_requests_is_answered_as_apache_kafka_answers_it(wire: Wire) -> None:
    assert await perform(wire) == RECORDED.read_text().splitlines()


async def beat(wire: Wire, epoch: int, version: int = 1, member_id: str = "m1", **fields: Any) -> Any:
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], **fields}
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)
    return await wire.ask(request, version)


async def test_the_broker_chooses_member_ids_in_version_0_only(wire: Wire) -> None:
    await create(wire, "t")
    await find_coordinator(wire, "g")

    refused = await beat(wire, 0, 1, "", subscribed_topic_names=["t"])
    joined = await beat(wire, 0, 0, "", subscribed_topic_names=["t"])

    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert len(joined.member_id) == 22
    assert (await beat(wire, joined.member_epoch, 0, joined.member_id)).error_code == ErrorCode.NONE
    assert (await beat(wire, -1, 0, joined.member_id)).error_code == ErrorCode.NONE


async def test_a_group_survives_a_restart(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 3)
        await find_coordinator(wire, "g")
        before = await beat(wire, 0, subscribed_topic_regex="t+")
        before = await _until_assigned(wire, before.member_epoch)
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await find_coordinator(wire, "g")
        after = await beat(wire, before.member_epoch)
        (group,) = (await wire.ask(ConsumerGroupDescribeRequest(["g"]), 1)).groups

    assert (after.error_code, after.member_epoch) == (ErrorCode.NONE, before.member_epoch)
    assert group.group_state == "Stable"
    assert group.members[0].subscribed_topic_regex == "t+"
    assert [each.partitions for each in group.members[0].assignment.topic_partitions] == [[0, 1, 2]]


async def _until_assigned(wire: Wire, epoch: int) -> Any:
    """Heartbeat as members do, until the expression that was resolved in the background has made an assignment."""
    async with asyncio.timeout(30):
        while True:
            response = await beat(wire, epoch)
            epoch = response.member_epoch
            if response.assignment is not None and response.assignment.topic_partitions:
                return response


async def test_a_deleted_topic_is_taken_from_the_member_that_reads_it(wire: Wire, broker: Any) -> None:
    await create(wire, "gone", 2)
    await find_coordinator(wire, "g")
    joined = await beat(wire, 0, subscribed_topic_names=["gone"])
    request = DeleteTopicsRequest([DeleteTopicState("gone")], timeout_ms=30_000)
    assert (await wire.ask(request, 6)).responses[0].error_code == ErrorCode.NONE

    async with asyncio.timeout(30):
        revoked = await beat(wire, joined.member_epoch)
        while revoked.assignment is None:  # the last assignment may be less than a second old
            revoked = await beat(wire, joined.member_epoch)
    left = await beat(wire, joined.member_epoch, topic_partitions=[])

    assert revoked.assignment.topic_partitions == []
    assert (revoked.member_epoch, left.member_epoch) == (joined.member_epoch, joined.member_epoch + 1)
    await beat(wire, -1)


async def test_new_partitions_are_assigned(wire: Wire) -> None:
    await create(wire, "early", 1)
    await find_coordinator(wire, "g")
    joined = await beat(wire, 0, subscribed_topic_names=["early", "late"])
    late = await create(wire, "late", 2)

    grown = await _until_assigned(wire, joined.member_epoch)

    assert TopicPartitions(late, [0, 1]) in grown.assignment.topic_partitions
    await beat(wire, -1)


@pytest.mark.usefixtures("only_here")  # Apache Kafka says the code alone
async def test_the_empty_group_id_is_refused(wire: Wire) -> None:
    await find_coordinator(wire, "g")

    (group,) = (await wire.ask(ConsumerGroupDescribeRequest([""]), 1)).groups

    assert (group.error_code, group.error_message) == (ErrorCode.INVALID_GROUP_ID, "the group id is empty")


async def test_a_member_with_too_many_subscribed_names_is_refused(only_here: None, wire: Wire) -> None:
    names = [f"t{index}" for index in range(10_001)]
    request = ConsumerGroupHeartbeatRequest(
        "g", "A" * 22, 0, rebalance_timeout_ms=1000, subscribed_topic_names=names, topic_partitions=[]
    )

    assert (await wire.ask(request, 1)).error_code == ErrorCode.INVALID_REQUEST
