"""Consumers of a group against a real broker: they share partitions, commit, take over, and continue."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.client import (
    Admin,
    BrokerError,
    CommittedOffset,
    ConfigurationError,
    Consumer,
    ConsumerRecord,
    MembershipError,
    NewTopic,
    Producer,
    RebalanceListener,
    TopicPartition,
)
from tests.client.conftest import MakeTopic

pytestmark = pytest.mark.servers("odradek", "apache")

OURS = pytest.mark.servers("odradek")
"""For slow tests, which were run with `--server apache` as well."""

STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
PROTOCOLS: list[dict[str, Any]] = [
    *({"partition_assignment_strategy": (name,)} for name in STRATEGIES),
    {"group_protocol": "consumer"},
    {"group_protocol": "consumer", "group_remote_assignor": "range"},
]
BOTH: list[dict[str, Any]] = [{}, {"group_protocol": "consumer"}]


def consumer_of(bootstrap: str, topic: str, **settings: Any) -> Consumer:
    return Consumer(
        bootstrap,
        group_id=f"group-{topic}",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        session_timeout_ms=6000,
        **settings,
    )


async def write(bootstrap: str, topic: str, values: Sequence[bytes], partitions: int) -> None:
    async with Producer(bootstrap) as producer:
        for number, value in enumerate(values):
            await producer.send(topic, value, partition=number % partitions)


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    while len(records) < count:
        records += await consumer.poll()
    return records


async def share(*consumers: Consumer, partitions: int) -> None:
    """Poll until the consumers share the partitions evenly."""
    even = partitions // len(consumers)
    while any(len(consumer.assignment()) != even for consumer in consumers):
        for consumer in consumers:
            await consumer.poll(timeout_ms=50)
    owned = [partition for consumer in consumers for partition in consumer.assignment()]
    assert len(set(owned)) == len(owned) == partitions


async def poll_for_ever(consumer: Consumer) -> None:
    while True:
        await consumer.poll(timeout_ms=50)


class RecordingListener(RebalanceListener):
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("assigned", [partition.partition for partition in partitions]))

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("revoked", [partition.partition for partition in partitions]))

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("lost", [partition.partition for partition in partitions]))


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("settings", BOTH)
async def test_a_single_member_reads_everything_and_the_next_one_continues(
    bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]
) -> None:
    topic = await make_topic(2)
    await write(bootstrap, topic, numbers(20), 2)
    async with consumer_of(bootstrap, topic, **settings) as consumer:
        await consumer.subscribe(topic)
        assert sorted(record.value or b"" for record in await read(consumer, 20)) == sorted(numbers(20))
        assert consumer.lag((topic, 0)) == 0
    await write(bootstrap, topic, [b"new"], 1)
    async with consumer_of(bootstrap, topic, **settings) as consumer:
        assert await consumer.committed([(topic, 0), (topic, 1), (topic, 7)]) == {
            (topic, 0): CommittedOffset(10, 0),
            (topic, 1): CommittedOffset(10, 0),
            (topic, 7): None,
        }
        await consumer.subscribe([topic])
        assert [record.value for record in await read(consumer, 1)] == [b"new"]


@pytest.mark.parametrize("settings", PROTOCOLS)
async def test_two_members_share_and_the_other_takes_over_when_one_leaves(
    bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]
) -> None:
    topic = await make_topic(4)
    await write(bootstrap, topic, numbers(40), 4)
    async with consumer_of(bootstrap, topic, **settings) as first:
        await first.subscribe(topic)
        seen = await read(first, 40)
        async with consumer_of(bootstrap, topic, **settings) as second:
            await second.subscribe(topic)
            await share(first, second, partitions=4)
            await write(bootstrap, topic, numbers(40), 4)
            for consumer in (first, second):
                seen += await read(consumer, 20)
        await share(first, partitions=4)
        await write(bootstrap, topic, numbers(40), 4)
        seen += await read(first, 40)
    assert len({(record.partition, record.offset) for record in seen}) == len(seen) == 120


@OURS
async def test_eager_members_revoke_everything_and_cooperative_ones_what_moves(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(4)
    for number, settings in enumerate(PROTOCOLS):
        listener = RecordingListener()
        async with consumer_of(bootstrap, f"{topic}-{number}", **settings) as first:
            await first.subscribe(topic, listener)
            await share(first, partitions=4)
            async with consumer_of(bootstrap, f"{topic}-{number}", **settings) as second:
                await second.subscribe(topic)
                await share(first, second, partitions=4)
        assert listener.calls[0] == ("assigned", [0, 1, 2, 3])
        _, revoked = next(call for call in listener.calls[1:] if call[0] == "revoked")
        assert len(revoked) == (4 if number < 3 else 2)


@pytest.mark.parametrize("settings", BOTH)
async def test_uncommitted_records_are_read_again_by_another_member(
    bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]
) -> None:
    topic = await make_topic(1)
    await write(bootstrap, topic, numbers(10), 1)
    consumer = consumer_of(bootstrap, topic, enable_auto_commit=False, **settings)
    await consumer.start()
    await consumer.subscribe(topic)
    await read(consumer, 10)
    await consumer.commit({(topic, 0): 4})
    await consumer.close()
    async with consumer_of(bootstrap, topic, **settings) as another:
        await another.subscribe(topic)
        assert [record.value for record in await read(another, 6)] == numbers(10)[4:]


async def test_assigned_partitions_begin_where_the_group_committed(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    await write(bootstrap, topic, numbers(20), 2)
    async with consumer_of(bootstrap, topic) as consumer:
        await consumer.commit({(topic, 0): 7})
        consumer.assign([(topic, 0), (topic, 1)])
        assert await consumer.position((topic, 0)) == 7
        assert sorted((record.partition, record.offset) for record in await read(consumer, 13)) == sorted(
            [(0, offset) for offset in range(7, 10)] + [(1, offset) for offset in range(10)]
        )


async def test_an_exception_prevents_the_commit_at_close(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1)
    await write(bootstrap, topic, numbers(10), 1)

    async def fail_at_the_first_record() -> None:
        async with consumer_of(bootstrap, topic) as consumer:
            await consumer.subscribe(topic)
            async for record in consumer:
                raise LookupError(record.offset)

    with pytest.raises(LookupError):
        await fail_at_the_first_record()
    async with consumer_of(bootstrap, topic) as consumer:
        assert await consumer.committed([(topic, 0)]) == {(topic, 0): None}


@OURS
async def test_positions_are_committed_at_intervals_between_records(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1)
    await write(bootstrap, topic, numbers(10), 1)
    async with consumer_of(bootstrap, topic, auto_commit_interval_ms=1) as consumer, Admin(bootstrap) as admin:
        await consumer.subscribe(topic)
        await read(consumer, 10)
        offsets = (await admin.list_group_offsets({f"group-{topic}": None})).value(f"group-{topic}")
        while offsets.get(TopicPartition(topic, 0)) != CommittedOffset(10, 0):
            await consumer.poll(timeout_ms=20)
            offsets = (await admin.list_group_offsets({f"group-{topic}": None})).value(f"group-{topic}")


async def test_a_pattern_matches_topics_that_are_created_later(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1)
    await write(bootstrap, topic, [b"first"], 1)
    async with (
        consumer_of(bootstrap, topic, metadata_max_age_ms=200) as consumer,
        Admin(bootstrap) as admin,
    ):
        await consumer.subscribe(re.compile(re.escape(topic) + "(-later)?"))
        assert [record.value for record in await read(consumer, 1)] == [b"first"]
        (await admin.create_topics([NewTopic(f"{topic}-later", 1), NewTopic(f"x-{topic}", 1)])).values_or_raise()
        await write(bootstrap, f"{topic}-later", [b"second"], 1)
        assert [record.value for record in await read(consumer, 1)] == [b"second"]
        assert consumer.assignment() == [(topic, 0), (f"{topic}-later", 0)]


async def test_a_pattern_goes_to_the_broker_with_the_newer_protocol(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1)
    async with Admin(bootstrap) as admin:
        (await admin.create_topics([NewTopic(f"{topic}-too", 1), NewTopic(f"x-{topic}", 1)])).values_or_raise()
    async with consumer_of(bootstrap, topic, group_protocol="consumer") as consumer:
        await consumer.subscribe(re.compile(re.escape(topic) + "(-too)?"))
        await share(consumer, partitions=2)
        assert consumer.assignment() == [(topic, 0), (f"{topic}-too", 0)]


@OURS
@pytest.mark.parametrize("settings", BOTH)
async def test_partitions_that_are_added_are_read(
    bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]
) -> None:
    topic = await make_topic(1)
    async with (
        consumer_of(bootstrap, topic, metadata_max_age_ms=200, **settings) as consumer,
        Admin(bootstrap) as admin,
    ):
        await consumer.subscribe(topic)
        await share(consumer, partitions=1)
        (await admin.create_partitions({topic: 3})).value(topic)
        await share(consumer, partitions=3)


@pytest.mark.parametrize("settings", BOTH)
async def test_a_static_member_returns_without_a_rebalance(
    bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]
) -> None:
    topic = await make_topic(2)
    listener = RecordingListener()
    async with consumer_of(bootstrap, topic, group_instance_id="first", **settings) as first:
        await first.subscribe(topic, listener)
        async with consumer_of(bootstrap, topic, group_instance_id="second", **settings) as second:
            await second.subscribe(topic)
            await share(first, second, partitions=2)
            owned = second.assignment()
        before = list(listener.calls)
        async with consumer_of(bootstrap, topic, group_instance_id="second", **settings) as second:
            await second.subscribe(topic)
            while second.assignment() != owned:
                await second.poll(timeout_ms=50)
                await first.poll(timeout_ms=50)
        assert listener.calls == before


async def test_only_one_of_two_members_with_the_same_instance_id_stays(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1)
    async with (
        consumer_of(bootstrap, topic, group_instance_id="same") as first,
        consumer_of(bootstrap, topic, group_instance_id="same") as second,
    ):
        await first.subscribe(topic)
        await share(first, partitions=1)
        await second.subscribe(topic)
        await share(second, partitions=1)
        with pytest.raises(MembershipError, match=r"group-.* at .*: FENCED_INSTANCE_ID.*give each its own"):
            await poll_for_ever(first)


@OURS
@pytest.mark.parametrize("settings", BOTH)
async def test_a_member_that_does_not_poll_leaves_and_comes_back(
    bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]
) -> None:
    topic = await make_topic(1)
    listener = RecordingListener()
    async with (
        consumer_of(bootstrap, topic, max_poll_interval_ms=300, **settings) as slow,
        consumer_of(bootstrap, topic, enable_auto_commit=False, **settings) as other,
    ):
        await slow.subscribe(topic, listener)
        await share(slow, partitions=1)
        await other.subscribe(topic)
        await share(other, partitions=1)
        with pytest.raises(BrokerError):
            await slow.commit({(topic, 0): 0})
        await slow.poll(timeout_ms=2000)
    assert ("lost", [0]) in listener.calls


@pytest.mark.parametrize("settings", BOTH)
async def test_unsubscribing_revokes_everything(
    bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]
) -> None:
    topic = await make_topic(2)
    listener = RecordingListener()
    async with consumer_of(bootstrap, topic, **settings) as consumer, Admin(bootstrap) as admin:
        await consumer.subscribe(topic, listener)
        await share(consumer, partitions=2)
        with pytest.raises(ConfigurationError, match="the group assigns them"):
            consumer.assign([(topic, 0)])
        await consumer.unsubscribe()
        assert listener.calls == [("assigned", [0, 1]), ("revoked", [0, 1])]
        assert (await admin.describe_groups([f"group-{topic}"])).value(f"group-{topic}").members == ()
        consumer.assign([(topic, 0)])
        await consumer.commit({(topic, 0): 3})
        assert await consumer.committed([(topic, 0)]) == {(topic, 0): CommittedOffset(3)}


async def test_members_of_one_group_share_records_and_each_group_gets_all(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(2)
    await write(bootstrap, topic, numbers(10), 2)
    groups = [Consumer(bootstrap, group_id=f"{topic}-{number}", auto_offset_reset="earliest") for number in range(2)]
    for consumer in groups:
        async with consumer:
            await consumer.subscribe(topic)
            assert len(await read(consumer, 10)) == 10


async def test_group_calls_without_a_group_id_raise(bootstrap: str) -> None:
    async with Consumer(bootstrap) as consumer:
        with pytest.raises(ConfigurationError, match=r"subscribe: there is no group_id\. Give the consumer one"):
            await consumer.subscribe("t")
        with pytest.raises(ConfigurationError, match="commit: there is no group_id"):
            await consumer.commit()


@OURS
@pytest.mark.parametrize("settings", [{"partition_assignment_strategy": ("cooperative-sticky",)}, *BOTH])
async def test_members_join_at_the_same_time(bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]) -> None:
    topic = await make_topic(8)
    consumers = [consumer_of(bootstrap, topic, **settings) for _ in range(4)]
    for consumer in consumers:
        await consumer.start()
        await consumer.subscribe(topic)

    async def poll(consumer: Consumer) -> None:
        while any(len(one.assignment()) != 2 for one in consumers):
            await consumer.poll(timeout_ms=50)

    await asyncio.gather(*map(poll, consumers))
    for consumer in consumers:
        await consumer.close()
