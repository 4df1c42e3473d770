"""A broker whose clients must authenticate, of which nothing may be left at the end of a test."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable

import pytest

from tests.effort import event_loops
from tests.security.raw.guarded import Guard, Guarded, open_sockets


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return event_loops()


@pytest.fixture
async def guard(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Guard]:
    """Start brokers: `await guard(property_name="value")`."""
    caplog.set_level(logging.WARNING)
    sockets = open_sockets()
    running: list[Guarded] = []

    async def start(**properties: str) -> Guarded:
        running.append(Guarded(**properties))
        await running[-1].start()
        return running[-1]

    yield start
    for guarded in running:
        for client in guarded.clients:
            client.close()
        await guarded.is_empty()
        await guarded.broker.close()
    gc.collect()
    end = asyncio.get_running_loop().time() + 20  # a thread closes its socket a little later
    while open_sockets() > sockets and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert open_sockets() <= sockets
    assert not [record for record in caplog.records if record.exc_info or record.levelno > logging.WARNING]


@pytest.fixture
async def guarded(guard: Guard) -> Guarded:
    """A broker with the default limits."""
    return await guard()
