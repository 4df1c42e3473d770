"""Requests leave no cyclic garbage that grows with their rows: only a full collection frees it, and all clients wait.

The usual cause: an error that was raised is kept by a frame that it passed (`KafkaError.fresh`).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc

import pytest

from odradek.broker.broker import Broker
from tests.fuzz.waiting import every_kind
from tests.fuzz.worst_requests import Worst
from tests.wire import Wire

SIZE = 30_000
MOST = 600
"""Objects: such a request has a thousand rows and more, a row of garbage some ten objects."""


@pytest.mark.fuzz
@pytest.mark.parametrize("worst", every_kind(SIZE / 1_000_000), ids=lambda worst: worst.name)
async def test_a_request_leaves_little_cyclic_garbage(broker: Broker, worst: Worst) -> None:
    async with Wire("127.0.0.1", broker.port) as wire:
        await _ask(wire, worst.frame(1000))  # loads the handler
    gc.freeze()  # what was there is not counted, nor visited
    gc.disable()
    try:
        async with Wire("127.0.0.1", broker.port) as wire:
            await _ask(wire, worst.frame(SIZE))
        await asyncio.sleep(0)
        assert gc.collect() < MOST
    finally:
        gc.enable()
        gc.unfreeze()


async def _ask(wire: Wire, frame: bytes) -> None:
    """Send a request, and receive its answer, or the end of the connection."""
    wire.writer.write(frame)
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        await wire.reader.readexactly(int.from_bytes(await wire.reader.readexactly(4)))
