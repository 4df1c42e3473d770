"""Partitions that were added to a topic, and are assigned before the client has metadata of them."""

from __future__ import annotations

import asyncio
from typing import Any

from odradek.broker.broker import Broker
from odradek.client import Admin, Consumer, NewTopic, Producer
from tests.client.reading import fill, read
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.virtual_time import simulated

PROPERTIES = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
}


@simulated
async def test_an_assigned_partition_that_was_added_is_read_without_an_error() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        assert await consumer.poll(timeout_ms=1000) == []
        added = network.logs["t", 1] = Log("t", 1, 1)
        fill(added, 3)
        consumer.assign([("t", 0), ("t", 1)])
        assert [record.partition for record in await read(consumer, 3)] == [1, 1, 1]


async def test_a_member_reads_an_added_partition_that_the_broker_assigns_without_an_error() -> None:
    settings: dict[str, Any] = {"group_id": "g", "group_protocol": "consumer", "auto_offset_reset": "earliest"}
    async with Broker(PROPERTIES) as broker, Admin(broker.bootstrap) as admin:
        (await admin.create_topics([NewTopic("t", 1)])).values_or_raise()
        async with Consumer(broker.bootstrap, **settings) as consumer, asyncio.timeout(60):
            await consumer.subscribe("t")
            while not consumer.assignment():
                await consumer.poll(timeout_ms=50)
            (await admin.create_partitions({"t": 2})).values_or_raise()
            async with Producer(broker.bootstrap) as producer:
                await producer.send_and_wait("t", b"", partition=1)
            records = []
            while not records:
                records = await consumer.poll(timeout_ms=50)
    assert [record.partition for record in records] == [1]
