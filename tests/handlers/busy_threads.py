"""A broker whose disk threads are busy, for tests of requests that must be answered meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.replication.appends.disk_threads import DISK_THREADS, SEARCH_THREADS


@asynccontextmanager
async def busy_disk_threads(broker: Broker) -> AsyncIterator[None]:
    """Keep every disk thread busy until the block ends; later work starts then."""
    async with _busy([broker.services.partitions.threads.run] * DISK_THREADS):
        yield


@asynccontextmanager
async def busy_writer_threads(broker: Broker) -> AsyncIterator[None]:
    """The same of the threads that write large batches."""
    async with _busy([each.run for each in broker.services.partitions.threads.writers]):
        yield


@asynccontextmanager
async def busy_search_threads(broker: Broker) -> AsyncIterator[None]:
    """The same of the threads that search for times in large batches."""
    async with _busy([broker.services.partitions.threads.search] * SEARCH_THREADS):
        yield


@asynccontextmanager
async def _busy(runs: list[Callable[..., Any]]) -> AsyncIterator[None]:
    """Make one thread busy with each of `runs`, which run a function on a thread, until the block ends."""
    ended = threading.Event()
    busy = [asyncio.ensure_future(run(ended.wait)) for run in runs]
    await asyncio.sleep(0)  # all are queued now
    try:
        yield
    finally:
        ended.set()
        await asyncio.gather(*busy)
