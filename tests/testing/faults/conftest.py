"""A broker with faults, and connections to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.broker.testing.faults import Faults
from tests.wire import Wire

_FEW_LOGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(_FEW_LOGS) as started:
        yield started


@pytest.fixture
async def faults(broker: Broker) -> AsyncIterator[Faults]:
    made = Faults(broker)
    yield made
    made.clear()


@pytest.fixture
async def wire(broker: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", broker.port) as connected:
        yield connected


@pytest.fixture
async def other(broker: Broker) -> AsyncIterator[Wire]:
    """Another connection, of a client with another id."""
    async with Wire("127.0.0.1", broker.port, "other") as connected:
        yield connected
