"""Connections that do not follow the rules: each loses at most itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.shared.framing import MAX_FRAME_BYTES
from odradek.broker.metadata.store.shared.messages import (
    Failed,
    Open,
    Opened,
    Range,
    Transact,
    Transacted,
    Watch,
    encode,
)
from odradek.broker.metadata.store.shared.served_connection import MOST_REQUESTS, MOST_WATCHES
from odradek.broker.metadata.store.shared.server import StoreServer
from odradek.broker.metadata.store.store import KV, Change, Put
from tests.metadata.store.reading import next_change, put
from tests.metadata.store.shared.conftest import Connect, RawWorker, frame

MIB = 1 << 20


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 4,
        (MAX_FRAME_BYTES + 1).to_bytes(4),
        frame(b""),
        frame(b"\xc1\xc1"),
        frame(encode(Range(1, b""))[:-1]),
        frame(msgspec.msgpack.encode([2, 1, b"", "more"])),
        frame(encode(Watch(1, b"", 0))) * 2,
    ],
)
async def test_a_connection_that_carries_something_else_is_closed(
    server: StoreServer, path: Path, connect: Connect, sent: bytes
) -> None:
    other = connect()
    session = await other.session(60)
    async with RawWorker(path) as worker:
        worker.writer.write(sent)

        assert await worker.is_closed()

    assert await put(other, b"a", b"") == 1
    assert not session.lost.is_set()
    assert len(server) == 1


async def test_a_request_may_arrive_byte_by_byte(server: StoreServer, path: Path) -> None:
    async with RawWorker(path) as worker:
        for byte in frame(encode(Transact(7, (), (Put(b"a", b""),), (), ()))) * 2:
            worker.writer.write(bytes([byte]))
            await worker.writer.drain()
            await asyncio.sleep(0)

        assert [await worker.answer(), await worker.answer()] == [Transacted(7, True, 1), Transacted(7, True, 2)]


async def test_half_a_frame_is_never_a_request(owned: InMemoryStore, server: StoreServer, path: Path) -> None:
    async with RawWorker(path) as worker:
        worker.writer.write(frame(encode(Transact(1, (), (Put(b"a", b""),), (), ())))[:-1])
        worker.writer.write_eof()

        assert await worker.is_closed()

    assert await owned.range(b"") == ([], 0)


async def test_the_server_checks_transactions_too(server: StoreServer, path: Path) -> None:
    async with RawWorker(path) as worker:
        worker.send(Transact(1, (), (Put(b"a", b""), Put(b"a", b"")), (), ()))

        assert await worker.answer() == Failed(1, "ValueError", "a transaction changes each key at most once")


async def test_a_hundred_workers(server: StoreServer, connect: Connect) -> None:
    workers = [connect() for _ in range(100)]
    await asyncio.gather(*(put(worker, b"%d" % i, b"") for i, worker in enumerate(workers)))

    assert len(server) == 100
    assert {len((await worker.range(b""))[0]) for worker in workers} == {100}


async def test_more_requests_than_run_at_a_time_are_all_answered(server: StoreServer, path: Path) -> None:
    async with RawWorker(path) as worker:
        for i in range(5 * MOST_REQUESTS):
            worker.send(Transact(i, (), (Put(b"a", b""),), (), ()))

        answers = [await worker.answer() for _ in range(5 * MOST_REQUESTS)]

    assert answers == [Transacted(i, True, i + 1) for i in range(5 * MOST_REQUESTS)]


async def test_the_watches_of_a_connection_have_a_bound(server: StoreServer, path: Path) -> None:
    async with RawWorker(path) as worker:
        for i in range(MOST_WATCHES + 1):
            worker.send(Watch(i, b"a", 0))

        assert await worker.is_closed()


async def test_a_worker_that_reads_nothing_costs_little_and_ends_with_its_connection(
    owned: InMemoryStore, server: StoreServer, path: Path, connect: Connect
) -> None:
    other = connect()
    async with RawWorker(path) as worker:
        worker.send(Open(1, 60))
        opened = await worker.answer()
        assert isinstance(opened, Opened)
        leased = await owned.txn((), (Put(b"leased", b"", opened.lease),))
        worker.writer.transport.pause_reading()
        worker.send(Watch(2, b"", 0))
        for i in range(50):
            await put(other, b"large/%d" % i, b"x" * MIB)
            worker.send(Range(3 + i, b"large/"))
            await worker.writer.drain()

        assert len((await other.range(b"large/"))[0]) == 50
        assert server.unsent_bytes < 8 * MIB

    assert (await next_change(other.watch(b"leased", leased.revision))).changes == (Change(b"leased", None),)


async def test_a_server_ends_although_a_worker_reads_nothing(
    owned: InMemoryStore, server: StoreServer, path: Path
) -> None:
    async with RawWorker(path) as worker:
        worker.writer.transport.pause_reading()
        for i in range(10):
            await put(owned, b"%d" % i, b"x" * MIB)
        worker.send(Range(1, b""))
        await worker.writer.drain()
        while not server.unsent_bytes:  # noqa: ASYNC110 - until the worker's memory in the kernel is full
            await asyncio.sleep(0)

        await asyncio.wait_for(server.close(), 30)

    assert len(server) == 0


async def test_a_transaction_that_exceeds_a_frame_is_refused(server: StoreServer, connect: Connect) -> None:
    worker = connect()

    with pytest.raises(ValueError, match="exceeds the most of a frame"):
        await worker.txn((), (Put(b"a", bytes(MAX_FRAME_BYTES)),))

    assert await worker.range(b"") == ([], 0)


async def test_large_values_arrive_whole(owned: InMemoryStore, server: StoreServer, connect: Connect) -> None:
    worker = connect()
    value = bytes(range(256)) * 4096 * 5
    watch = worker.watch(b"a", 0)
    revision = await put(worker, b"a", value)

    assert await worker.range(b"a") == ([KV(b"a", value, revision, revision)], revision)
    assert (await next_change(watch)).changes == (Change(b"a", KV(b"a", value, revision, revision)),)
