"""A topic that does not exist is a warning, once, where it is assigned or subscribed to."""

from __future__ import annotations

import asyncio
import re

import pytest

from odradek.client import Admin, Consumer, NewTopic
from tests.client.reading import fill, read
from tests.client.scripted_network import ScriptedNetwork
from tests.client.virtual_time import simulated


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "odradek.client.consumer.missing_topics"]


@simulated
async def test_a_missing_assigned_topic_is_one_warning_and_is_read_when_it_exists(
    caplog: pytest.LogCaptureFixture,
) -> None:
    network = ScriptedNetwork()
    network.create("there")
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("there", 0), ("typo", 0)])
        assert await consumer.poll(timeout_ms=10_000) == []
        assert warnings(caplog) == [
            (
                "find a topic on typo at broker1:9092 (broker 1): UNKNOWN_TOPIC_OR_PARTITION. "
                "Check the names of topic and partition, or create the topic. "
                "The consumer reads it as soon as it exists"
            )
        ]
        fill(network.create("typo")[0], 10)
        assert len(await read(consumer, 10)) == 10
        for log in network.partitions("typo"):
            del network.logs[log.topic, log.partition]
        await consumer.poll(timeout_ms=10_000)
        assert len(warnings(caplog)) == 2  # it was deleted, so there is a second warning


@simulated
async def test_a_missing_assigned_partition_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    network = ScriptedNetwork()
    network.create("t", 2)
    async with Consumer(network.bootstrap, network=network, metadata_max_age_ms=1000) as consumer:
        consumer.assign([("t", 1), ("t", 2)])
        consumer.seek(("t", 2), 0)
        await consumer.poll(timeout_ms=10_000)
    [warning] = warnings(caplog)
    assert warning.startswith("find a partition on t-2: UNKNOWN_TOPIC_OR_PARTITION (the topic has 2 partitions)")


@simulated
async def test_a_topic_that_is_no_longer_assigned_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Consumer(network.bootstrap, network=network, metadata_max_age_ms=1000) as consumer:
        consumer.assign([("typo", 0)])
        consumer.assign([("t", 0)])
        await consumer.poll(timeout_ms=10_000)
    assert warnings(caplog) == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_missing_subscribed_topic_is_one_warning(
    bootstrap: str, topic: str, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        Admin(bootstrap) as admin,
        Consumer(
            bootstrap,
            group_id=topic,
            group_protocol=protocol,  # type: ignore[arg-type]
            metadata_max_age_ms=100,
            heartbeat_interval_ms=100,
        ) as consumer,
    ):
        await consumer.subscribe(topic)
        while not warnings(caplog):
            await consumer.poll(timeout_ms=100)
        await consumer.poll(timeout_ms=500)
        assert len(warnings(caplog)) == 1
        assert warnings(caplog)[0].startswith(f"find a topic on {topic} at 127.0.0.1")
        (await admin.create_topics([NewTopic(topic, 2)])).values_or_raise()
        async with asyncio.timeout(30):
            while len(consumer.assignment()) < 2:
                await consumer.poll(timeout_ms=100)
        assert len(warnings(caplog)) == 1


async def test_a_pattern_that_matches_nothing_is_no_warning(
    bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Consumer(bootstrap, group_id=topic, metadata_max_age_ms=100) as consumer:
        await consumer.subscribe(re.compile(f"{topic}.*"))
        await consumer.poll(timeout_ms=500)
    assert warnings(caplog) == []
