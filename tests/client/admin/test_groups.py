"""`Admin` and groups of real brokers: list, describe and delete them, read and change their offsets, lag."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import Consumer as LibrdkafkaConsumer

from odradek.client import Admin, BrokerError, CommittedOffset, Producer, TopicPartition
from odradek.protocol.errors import ErrorCode
from tests.client.conftest import MakeTopic

pytestmark = [pytest.mark.servers("odradek", "apache"), pytest.mark.usefixtures("ordinary_tasks")]


@pytest.fixture
async def admin(bootstrap: str) -> AsyncIterator[Admin]:
    async with Admin(bootstrap) as admin:
        yield admin


def code_of(outcome: object) -> ErrorCode:
    assert isinstance(outcome, BrokerError)
    return outcome.code


async def test_a_group_without_members_is_created_read_and_deleted(admin: Admin, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    group = f"group-{topic}"
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    offsets = {first: CommittedOffset(7, 3, "by hand"), second: CommittedOffset(5)}
    assert await admin.alter_group_offsets(group, offsets) == {first: None, second: None}
    assert (await admin.list_group_offsets({group: None})).value(group) == offsets
    assert (await admin.list_group_offsets({group: [second, (topic, 9)]})).value(group) == {
        second: CommittedOffset(5),
        TopicPartition(topic, 9): None,
    }
    listed = (await admin.list_groups())[group]
    assert (listed.state, listed.type, listed.coordinator) == ("Empty", "classic", 1)
    assert group not in await admin.list_groups(states=["Stable"])
    assert group in await admin.list_groups(types=["classic"])
    described = (await admin.describe_groups([group])).value(group)
    assert (described.state, described.members, described.coordinator) == ("Empty", (), 1)
    assert await admin.delete_group_offsets(group, [second]) == {second: None}
    assert (await admin.list_group_offsets({group: None})).value(group) == {first: offsets[first]}
    assert await admin.delete_groups([group]) == {group: None}
    assert group not in await admin.list_groups()


async def test_a_group_that_does_not_exist(admin: Admin) -> None:
    described = (await admin.describe_groups(["never-was"]))["never-was"]
    assert code_of(described) is ErrorCode.GROUP_ID_NOT_FOUND
    assert str(described).startswith("describe a group never-was at ")
    assert code_of((await admin.delete_groups(["never-was"]))["never-was"]) is ErrorCode.GROUP_ID_NOT_FOUND
    assert (await admin.list_group_offsets({"never-was": None})).value("never-was") == {}


async def test_a_classic_group_with_a_member(admin: Admin, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    group = f"group-{topic}"
    async with Producer(bootstrap) as producer:
        for number in range(10):
            await producer.send(topic, b"", partition=number % 2)
    member = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id="one",
        client_id="reader",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await member.start()
    try:
        read = 0
        while read < 10:
            read += sum(map(len, (await member.getmany(timeout_ms=1000)).values()))
        await member.commit({AiokafkaPartition(topic, 0): 3})
        described = (await admin.describe_groups([group])).value(group)
        assert (described.type, described.protocol_type, described.state) == ("classic", "consumer", "Stable")
        assert described.assignor == "roundrobin"
        [one] = described.members
        assert (one.instance_id, one.client_id, one.subscribed_topics) == ("one", "reader", (topic,))
        assert sorted(one.assignment) == [(topic, 0), (topic, 1)]
        lags = (await admin.group_lag(group)).values_or_raise()
        assert {partition: (lag.committed, lag.end, lag.lag) for partition, lag in lags.items()} == {
            (topic, 0): (3, 5, 2),
            (topic, 1): (None, 5, None),
        }
        assert code_of((await admin.delete_groups([group]))[group]) is ErrorCode.NON_EMPTY_GROUP
        refused = await admin.alter_group_offsets(group, {(topic, 0): 0})
        assert code_of(refused[TopicPartition(topic, 0)]) is ErrorCode.UNKNOWN_MEMBER_ID
        message = str(refused[TopicPartition(topic, 0)])
        assert message.endswith("UNKNOWN_MEMBER_ID. The group has members, and only they can commit: stop them first")
        kept = await admin.delete_group_offsets(group, [(topic, 0)])
        assert code_of(kept[TopicPartition(topic, 0)]) is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        assert str(kept[TopicPartition(topic, 0)]).endswith(". Stop the members that read the topic first")
    finally:
        await member.stop()


async def test_a_group_of_the_newer_protocol_with_a_member(admin: Admin, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    group = f"group-{topic}"
    member = LibrdkafkaConsumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer", "client.id": "reader"}
    )
    try:
        member.subscribe([topic])
        while len(member.assignment()) < 2:
            await asyncio.to_thread(member.poll, 0.1)
        described = (await admin.describe_groups([group])).value(group)
        assert (described.type, described.state, described.assignor) == ("consumer", "Stable", "uniform")
        assert described.epoch > 0
        [one] = described.members
        assert (one.client_id, one.subscribed_topics, one.epoch) == ("reader", (topic,), described.epoch)
        assert sorted(one.assignment) == [(topic, 0), (topic, 1)]
        assert one.target is not None
        assert sorted(one.target) == sorted(one.assignment)
    finally:
        member.close()
