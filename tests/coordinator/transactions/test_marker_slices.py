"""The end of a transaction with many partitions lets other requests run between its markers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.coordinator.transactions.local_markers import LocalMarkers
from odradek.protocol.errors import ErrorCode
from tests.handlers.requests import create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire

PARTITIONS = 60


async def test_others_run_between_the_markers_of_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    write = LocalMarkers.write

    def slow_write(self: LocalMarkers, topic: str, index: int, marker: Any) -> Any:
        seen.append(index)
        time.sleep(0.001)
        return write(self, topic, index, marker)

    monkeypatch.setattr(LocalMarkers, "write", slow_write)
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", partitions=PARTITIONS)
        producer = TransactionalProducer(wire)
        await producer.start()
        assert set((await producer.add({"t": list(range(PARTITIONS))})).values()) == {ErrorCode.NONE}
        ending = asyncio.ensure_future(producer.end(commit=True))
        while len(seen) - seen.count("others") < PARTITIONS:
            await asyncio.sleep(0)
            seen.append("others")
        assert await ending == ErrorCode.NONE

    markers = [each for each in seen if each != "others"]
    assert markers == list(range(PARTITIONS))
    first, last = seen.index(0), seen.index(PARTITIONS - 1)
    assert "others" in seen[first:last]
