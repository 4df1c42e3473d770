"""A FastStream application, tested with a broker instead of its fake in memory: with groups and offsets."""

from __future__ import annotations

from faststream import AckPolicy
from faststream.kafka import KafkaBroker

from odradek.testing import Kafka


def shop(bootstrap: str) -> KafkaBroker:
    """The program under test."""
    broker = KafkaBroker(bootstrap)

    @broker.subscriber("orders", group_id="shop", auto_offset_reset="earliest", ack_policy=AckPolicy.ACK)
    @broker.publisher("confirmations")
    async def confirm(order: str) -> str:
        return f"confirmed: {order}"

    return broker


async def test_an_order_is_confirmed(kafka: Kafka) -> None:
    await kafka.aio.topic("orders")
    await kafka.aio.produce("orders", [b"three socks"])

    async with shop(kafka.bootstrap) as broker:
        await broker.start()
        [record] = await kafka.aio.wait_for_records("confirmations", 1)
        await kafka.aio.wait_for_lag_zero("shop")

    assert record.value == b"confirmed: three socks"
