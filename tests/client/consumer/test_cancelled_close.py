"""`Consumer.close()` cancelled at each of its awaits: nothing of the consumer goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.client import Admin, Consumer, NewTopic
from tests.client.reading import fill
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate
from tests.client.virtual_time import simulated

MOST_TURNS = 200


async def is_closed_within(consumer: Consumer, turns: int) -> bool:
    """Cancel a close after so many turns of the loop, unless it has ended; then no task may stay."""
    closing = asyncio.create_task(consumer.close())
    for _ in range(turns):
        await asyncio.sleep(0)
    has_ended = closing.done()
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    return has_ended


async def ends_all_tasks(before: set[asyncio.Task[Any]]) -> bool:
    for _ in range(100):
        if asyncio.all_tasks() <= before:
            return True
        await asyncio.sleep(0)
    return False


@simulated
async def test_while_a_position_is_looked_up() -> None:
    for turns in range(1, MOST_TURNS):
        network = ScriptedNetwork()
        for log in network.create("t", 2):
            fill(log, 10)
        before = asyncio.all_tasks()
        consumer = Consumer(network.bootstrap, network=network, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([("t", 0), ("t", 1)])
        consumer.seek(("t", 0), 0)
        network.brokers[1].script("ListOffsets", Gate())
        await consumer.poll(timeout_ms=50)
        has_ended = await is_closed_within(consumer, turns)
        assert await ends_all_tasks(before), turns
        if has_ended:
            return
    pytest.fail("it never ended by itself")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_in_a_group(protocol: str) -> None:
    async with Broker() as broker, Admin(broker.bootstrap) as admin:
        (await admin.create_topics([NewTopic("t", 1)])).values_or_raise()
        for turns in [*range(1, 12), *range(12, MOST_TURNS, 12)]:
            consumer = Consumer(
                broker.bootstrap, group_id=f"g-{turns}", group_protocol=protocol, heartbeat_interval_ms=50
            )
            await consumer.start()
            await consumer.subscribe("t")
            async with asyncio.timeout(20):
                while not consumer.assignment():
                    await consumer.poll(timeout_ms=50)
            await is_closed_within(consumer, turns)
            await asyncio.sleep(0.1)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not [task for task in left if "odradek/client/" in repr(task)], turns
