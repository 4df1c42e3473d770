from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.client import Admin, Consumer, Producer
from odradek.testing.request_log import KEPT, OWN_CLIENT_ID, RequestLog


@pytest.fixture
async def log() -> AsyncIterator[RequestLog]:
    broker = Broker()
    log = RequestLog(broker)
    async with broker:
        yield log


@pytest.fixture
def broker(log: RequestLog) -> Broker:
    return log.broker


async def test_it_has_the_last_requests_with_their_clients(broker: Broker, log: RequestLog) -> None:
    async with Producer(broker.bootstrap, client_id="shop") as producer:
        await producer.send_and_wait("orders", b"socks")
    names = [line.split()[1] for line in log.lines()]
    assert names[-1] == "Produce"
    assert {"Metadata", "InitProducerId"} <= set(names)
    assert all(' "shop"' in line for line in log.lines())

    for _ in range(KEPT):
        async with Admin(broker.bootstrap, client_id="admin") as admin:
            await admin.list_topics()
    assert len(log.lines()) == KEPT
    assert all(' "admin"' in line for line in log.lines())
    log.clear()
    assert log.lines() == []


async def test_the_requests_of_the_handle_are_left_out(broker: Broker, log: RequestLog) -> None:
    async with Admin(broker.bootstrap, client_id=OWN_CLIENT_ID) as admin:
        await admin.list_topics()
    assert log.lines() == []
    assert log.changes == 0


async def test_listeners_are_called_for_answers_that_may_change_something(broker: Broker, log: RequestLog) -> None:
    called: list[int] = []
    async with Producer(broker.bootstrap) as producer:
        await producer.send_and_wait("orders", b"socks")
        log.clear()
        before = log.changes

        def listener() -> None:
            called.append(log.changes)

        log.add_listener(listener)
        async with Consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([("orders", 0)])
            assert await consumer.poll()
        log.remove_listener(listener)
        names = [line.split()[1] for line in log.lines()]
        assert "Fetch" in names
        assert called == list(range(before + 1, before + 1 + len(names) - names.count("Fetch")))
        await producer.send_and_wait("orders", b"socks")
    assert log.changes > called[-1]
