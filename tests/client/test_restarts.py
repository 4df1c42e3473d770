"""A broker that stops, dies or freezes under a producer and a consumer: they notice nothing but the time."""

from __future__ import annotations

import asyncio
import signal

import pytest

from client import Consumer, Producer, RecordMetadata
from tests.peers.server import Server

pytestmark = pytest.mark.crash

COUNT = 3000


async def write(producer: Producer, first: int) -> list[asyncio.Future[RecordMetadata]]:
    return [await producer.send("t", b"%d" % number, partition=number % 2) for number in range(first, first + COUNT)]


async def read(consumer: Consumer, found: dict[int, list[bytes | None]], total: int) -> None:
    while sum(map(len, found.values())) < total:
        record = await anext(consumer)
        found[record.partition].append(record.value)


@pytest.mark.parametrize("how", ["stopped", "killed", "frozen"])
async def test_nothing_is_lost_or_doubled_or_out_of_order(server: Server, how: str) -> None:
    await asyncio.to_thread(server.start)
    found: dict[int, list[bytes | None]] = {0: [], 1: []}
    async with (
        Producer(server.bootstrap, batch_size=1000, request_timeout_ms=3000) as producer,
        Consumer(server.bootstrap, auto_offset_reset="earliest", request_timeout_ms=3000) as consumer,
    ):
        first = await write(producer, 0)
        await producer.flush()
        consumer.assign(await consumer.partitions_for("t"))
        await read(consumer, found, COUNT)
        second = asyncio.create_task(write(producer, COUNT))
        await asyncio.sleep(0)
        if how == "frozen":
            server.process.send_signal(signal.SIGSTOP)
            reading = asyncio.create_task(read(consumer, found, 2 * COUNT))
            await asyncio.wait([reading], timeout=5)
            server.process.send_signal(signal.SIGCONT)
        else:
            await asyncio.to_thread(server.stop if how == "stopped" else server.kill)
            reading = asyncio.create_task(read(consumer, found, 2 * COUNT))
            await asyncio.to_thread(server.start)
        await producer.flush()
        acknowledged = [await future for future in (*first, *await second)]
        assert len(acknowledged) == 2 * COUNT
        await reading
    for partition in (0, 1):
        assert found[partition] == [b"%d" % number for number in range(partition, 2 * COUNT, 2)]
