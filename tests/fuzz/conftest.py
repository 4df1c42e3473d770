from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from tests.fuzz.waiting import PROPERTIES, prepare


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(PROPERTIES) as started:
        await prepare("127.0.0.1", started.port, partitions=50)
        yield started
