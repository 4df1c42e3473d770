"""A Quix Streams application, tested with the fixture `kafka`.

`tests/testing/test_examples.py` runs this file in an environment of its own, since Quix Streams needs an earlier
confluent-kafka than the other examples.
"""

from __future__ import annotations

from quixstreams import Application

from odradek.testing import Kafka


def shop(bootstrap: str) -> Application:
    """The program under test."""
    application = Application(broker_address=bootstrap, consumer_group="shop", auto_offset_reset="earliest")
    orders = application.topic("orders", value_deserializer="str")
    confirmations = application.topic("confirmations", value_serializer="str")
    application.dataframe(orders).apply(lambda order: f"confirmed: {order}").to_topic(confirmations)
    return application


def test_an_order_is_confirmed(kafka: Kafka) -> None:
    kafka.topic("orders")
    kafka.produce("orders", [(b"customer 7", b"three socks")])

    shop(kafka.bootstrap).run(count=1, timeout=20)

    [record] = kafka.records("confirmations")
    assert (record.key, record.value) == (b"customer 7", b"confirmed: three socks")
    kafka.wait_for_lag_zero("shop")
