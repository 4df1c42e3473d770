"""A broker whose disk does not get round to new work: for tests of what is answered meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.broker import Broker
from broker.replication.disk_threads import DISK_THREADS, SEARCH_THREADS


@asynccontextmanager
async def busy_disk_threads(broker: Broker) -> AsyncIterator[None]:
    """Every disk thread is busy until the block ends, however it ends; what is handed over meanwhile begins then."""
    ended = threading.Event()
    busy = [broker.services.partitions._threads.run(ended.wait) for _ in range(DISK_THREADS)]
    try:
        yield
    finally:
        ended.set()
        await asyncio.gather(*busy)


@asynccontextmanager
async def busy_writer_threads(broker: Broker) -> AsyncIterator[None]:
    """The same of the threads that write large batches."""
    ended = threading.Event()
    busy = [asyncio.ensure_future(each.run(ended.wait)) for each in broker.services.partitions._threads._writers]
    await asyncio.sleep(0)  # they are queued now
    try:
        yield
    finally:
        ended.set()
        await asyncio.gather(*busy)


@asynccontextmanager
async def busy_search_threads(broker: Broker) -> AsyncIterator[None]:
    """The same of the threads that search for times in large batches."""
    ended = threading.Event()
    busy = [broker.services.partitions._threads.search(ended.wait) for _ in range(SEARCH_THREADS)]
    try:
        yield
    finally:
        ended.set()
        await asyncio.gather(*busy)
