"""A broker in process with one connection, and a trace of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.broker.explain import Trace
from tests.wire import Wire

FEW_LOGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(FEW_LOGS) as started:
        yield started


@pytest.fixture
async def wire(broker: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", broker.port) as connected:
        yield connected


@pytest.fixture
def trace(broker: Broker) -> Trace:
    """A trace of everything, not installed yet."""
    return Trace(broker)
