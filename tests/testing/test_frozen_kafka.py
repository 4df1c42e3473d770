"""The handle of a test whose time is frozen."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime

import pytest
import time_machine
from confluent_kafka import Consumer, Producer
from freezegun import freeze_time

from odradek.testing.errors import KafkaTimeoutError
from odradek.testing.session import Session

FUTURE, PAST = datetime(2031, 1, 1), datetime(2001, 1, 1)  # noqa: DTZ001 - as tests write them


@pytest.mark.parametrize(
    "frozen",
    [
        pytest.param(freeze_time(FUTURE), id="freezegun, future"),
        pytest.param(freeze_time(PAST), id="freezegun, past"),
        pytest.param(time_machine.travel(FUTURE, tick=False), id="time-machine, future"),
        pytest.param(time_machine.travel(PAST, tick=False), id="time-machine, past"),
    ],
)
def test_a_test_with_frozen_time_uses_the_handle_and_a_client(frozen: AbstractContextManager[object]) -> None:
    session = Session.open({}, None)
    with session.isolate() as kafka, frozen:
        kafka.topic("orders")
        kafka.produce("orders", [b"a"])
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        producer.produce("orders", b"b")
        assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        assert [consumer.poll(30).value() for _ in range(2)] == [b"a", b"b"]
        consumer.commit(asynchronous=False)
        consumer.close()
        kafka.wait_for_lag_zero("g")
        kafka.clock.advance(minutes=1)
        with pytest.raises(KafkaTimeoutError):
            kafka.wait_for_records("orders", 3, timeout=0.05)
    session.close()
