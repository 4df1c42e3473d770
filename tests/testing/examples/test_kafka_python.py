"""A job that uses kafka-python, tested with the fixture `kafka`."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer

from odradek.testing import Kafka


def confirm_all(bootstrap: str) -> int:
    """The program under test: confirms the orders that are there, and returns their number."""
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=bootstrap, group_id="shop", auto_offset_reset="earliest", enable_auto_commit=False
    )
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    confirmed = 0
    while not confirmed:
        for orders in consumer.poll(timeout_ms=10_000).values():
            for order in orders:
                producer.send("confirmations", key=order.key, value=b"confirmed: " + order.value)
            confirmed += len(orders)
    producer.flush()
    consumer.commit()
    consumer.close()
    producer.close()
    return confirmed


def test_all_orders_are_confirmed(kafka: Kafka) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [(b"customer 7", b"three socks"), (b"customer 8", b"a shoe")])

    assert confirm_all(kafka.bootstrap) == 2

    values = [record.value for record in kafka.records("confirmations")]
    assert values == [b"confirmed: three socks", b"confirmed: a shoe"]
    kafka.wait_for_lag_zero("shop")
