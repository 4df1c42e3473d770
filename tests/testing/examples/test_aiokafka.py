"""A service that uses aiokafka, tested on the event loop of the test: with `kafka.aio`."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from odradek.testing import Kafka


async def confirm_orders(bootstrap: str) -> None:
    """The program under test: confirms orders until it is cancelled."""
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=bootstrap, group_id="shop", auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        async for order in consumer:
            await producer.send_and_wait("confirmations", b"confirmed: " + order.value, key=order.key)
            await consumer.commit()


@pytest.mark.usefixtures("ordinary_tasks")
async def test_orders_are_confirmed(kafka: Kafka) -> None:
    await kafka.aio.topic("orders", partitions=2)
    service = asyncio.create_task(confirm_orders(kafka.bootstrap))
    await kafka.aio.wait_for_members("shop", 1)

    await kafka.aio.produce("orders", [(b"customer 7", b"three socks"), (b"customer 8", b"a shoe")])

    confirmed = await kafka.aio.wait_for_records("confirmations", 2)
    assert {record.value for record in confirmed} == {b"confirmed: three socks", b"confirmed: a shoe"}
    await kafka.aio.wait_for_lag_zero("shop")
    service.cancel()
    await asyncio.wait([service])
