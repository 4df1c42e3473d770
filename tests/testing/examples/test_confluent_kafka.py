"""A service that uses confluent-kafka (librdkafka), tested with the fixture `kafka`."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer

from odradek.testing import Kafka


class Shop:
    """The program under test: confirms each order, and commits when the confirmation is in the log."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"group.id": "shop", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._consumer = Consumer({"bootstrap.servers": bootstrap} | settings)
        self._consumer.subscribe(["orders"])
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def handle_one(self) -> None:
        order = self._consumer.poll(10)
        assert order is not None
        self._producer.produce("confirmations", b"confirmed: " + (order.value() or b""), key=order.key())
        self._producer.flush()
        self._consumer.commit(order, asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


def test_an_order_is_confirmed(kafka: Kafka) -> None:
    kafka.topic("orders", partitions=3)
    kafka.produce("orders", [(b"customer 7", b"three socks")])
    shop = Shop(kafka.bootstrap)

    shop.handle_one()
    shop.close()

    [record] = kafka.records("confirmations")
    assert (record.key, record.value) == (b"customer 7", b"confirmed: three socks")
    kafka.wait_for_lag_zero("shop")


def test_another_instance_goes_on_with_the_orders(kafka: Kafka) -> None:
    kafka.topic("orders", partitions=2)
    kafka.produce("orders", [(b"customer %d" % number, b"socks") for number in range(8)])
    first = Shop(kafka.bootstrap)
    first.handle_one()
    first.close()

    second = Shop(kafka.bootstrap)
    second.handle_one()
    second.close()

    keys = [record.key for record in kafka.records("confirmations")]
    assert len(keys) == len(set(keys)) == 2
    kafka.wait_for_members("shop", 0)
