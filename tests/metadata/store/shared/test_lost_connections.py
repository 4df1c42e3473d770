"""Connections that end: what becomes of transactions, watches and sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.metadata.store.commit import until_reached
from odradek.broker.metadata.store.history import KEPT
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.shared import store
from odradek.broker.metadata.store.shared.messages import Done, Open, Opened, Ping
from odradek.broker.metadata.store.shared.server import StoreServer
from odradek.broker.metadata.store.shared.watch import QUEUED
from odradek.broker.metadata.store.store import (
    Change,
    CompactedError,
    LeaseLostError,
    Put,
    StoreAccessError,
    StoreFailedError,
    StoreUnreachableError,
    UnknownOutcomeError,
)
from tests.metadata.store.reading import next_change, put
from tests.metadata.store.shared.conftest import Connect, RawWorker


@pytest.fixture
async def restarted(owned: InMemoryStore, path: Path) -> AsyncIterator[StoreServer]:
    """A server to be started after the first one has ended."""
    server = StoreServer(owned, path)
    yield server
    await server.close()


async def test_a_session_ends_with_the_connection_of_its_worker(
    owned: InMemoryStore, server: StoreServer, connect: Connect
) -> None:
    worker, other = connect(), connect()
    session, kept = await worker.session(60), await other.session(60)
    await worker.txn((), (Put(b"a", b"", session.lease),))
    revision = (await other.txn((), (Put(b"b", b"", kept.lease),))).revision
    assert len(server) == 2

    await worker.close()

    assert (await next_change(other.watch(b"", revision))).changes == (Change(b"a", None),)
    assert [kv.key for kv in (await owned.range(b""))[0]] == [b"b"]
    assert session.lost.is_set()
    assert not kept.lost.is_set()


async def test_a_worker_sees_its_session_lost_when_the_server_ends(
    owned: InMemoryStore, server: StoreServer, restarted: StoreServer, connect: Connect
) -> None:
    worker = connect()
    session = await worker.session(60)
    await worker.txn((), (Put(b"a", b"", session.lease),))
    assert session.deadline() > SystemClock().boot_time() + 30

    await server.close()

    await asyncio.wait_for(session.lost.wait(), 10)
    assert session.deadline() <= SystemClock().boot_time()
    assert (await owned.range(b""))[0] == []
    await session.revoke()
    await restarted.start()
    with pytest.raises(LeaseLostError):
        await worker.txn((), (Put(b"a", b"", session.lease),))
    assert (await worker.session(60)).lease != session.lease


async def test_a_worker_that_is_silent_loses_its_session(owned: InMemoryStore, server: StoreServer, path: Path) -> None:
    async with RawWorker(path) as worker:
        worker.send(Open(1, 0.1))
        opened = await worker.answer()
        assert isinstance(opened, Opened)
        await owned.txn((), (Put(b"a", b"", opened.lease),))

        assert (await next_change(owned.watch(b"", 1))).changes == (Change(b"a", None),)

        worker.send(Ping(2))
        answers = [await worker.answer(), await worker.answer()]
        assert Done(2) in answers
        assert len(server) == 1


async def test_pings_keep_a_session(server: StoreServer, connect: Connect) -> None:
    worker = connect()
    session = await worker.session(1)
    first = session.deadline()

    while session.deadline() < first + 1:
        assert not session.lost.is_set()
        await asyncio.wait_for(worker.check(b""), 10)


async def test_a_transaction_without_an_answer_is_unknown(path: Path, connect: Connect) -> None:
    async def read_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.close()

    async with await asyncio.start_unix_server(read_and_close, path):
        worker = connect()
        with pytest.raises(UnknownOutcomeError):
            await worker.txn((), (Put(b"a", b""),))
        with pytest.raises(StoreUnreachableError):
            await worker.range(b"")
        await worker.close()


async def test_a_transaction_that_was_not_sent_was_not_applied(server: StoreServer, connect: Connect) -> None:
    worker = connect()
    await worker.check(b"")
    connection = worker._connection  # noqa: SLF001 - lost in a turn that only the test can choose
    assert connection is not None

    async def lose() -> None:
        connection.abort()

    losing = asyncio.ensure_future(lose())  # runs in the turn in which the transaction would be written
    with pytest.raises(StoreUnreachableError, match="was lost"):
        await worker.txn((), (Put(b"a", b""),))
    await losing

    assert await until_reached(lambda: worker.range(b"")) == ([], 0)


async def test_without_a_server_the_store_is_unreachable_until_one_starts(
    owned: InMemoryStore, restarted: StoreServer, connect: Connect, path: Path
) -> None:
    worker = connect()
    watch = worker.watch(b"a", 0)

    with pytest.raises(StoreUnreachableError, match=f"{path}: No such file"):
        await worker.txn((), (Put(b"a", b""),))

    await restarted.start()
    revision = await put(worker, b"a", b"1")
    assert (await next_change(watch)).revision == revision


async def test_a_socket_of_another_user_is_reported(
    path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(store, "connect", refuse)

    with pytest.raises(StoreAccessError, match="another user"):
        await connect().check(b"")


async def test_a_watch_goes_on_after_another_connection_without_gaps(
    owned: InMemoryStore, server: StoreServer, restarted: StoreServer, connect: Connect
) -> None:
    watch = connect().watch(b"a", 0)
    first = await put(owned, b"a", b"1")
    assert (await next_change(watch)).revision == first
    waiting = asyncio.ensure_future(next_change(watch))

    await server.close()
    missed = [await put(owned, b"a", b"2"), await put(owned, b"a", b"3")]
    await restarted.start()

    assert [(await waiting).revision, (await next_change(watch)).revision] == missed
    later = await put(owned, b"a", b"4")
    assert (await next_change(watch)).revision == later


async def test_progress_that_was_requested_is_requested_again(
    owned: InMemoryStore, server: StoreServer, restarted: StoreServer, connect: Connect
) -> None:
    watch = connect().watch(b"a", 0)
    await server.close()
    revision = await put(owned, b"foreign", b"")
    watch.request_progress(revision)

    await restarted.start()

    assert (await asyncio.wait_for(anext(watch), 10)).revision == revision


async def test_a_watch_that_missed_too_much_raises_compacted_error(
    owned: InMemoryStore, server: StoreServer, restarted: StoreServer, connect: Connect
) -> None:
    watch = connect().watch(b"a", 0)
    assert (await put(owned, b"a", b"")) == (await next_change(watch)).revision
    await server.close()
    for _ in range(2 * KEPT):
        await owned.txn((), (Put(b"b", b""),))

    await restarted.start()

    for _ in range(2):
        with pytest.raises(CompactedError, match="no longer kept"):
            await asyncio.wait_for(anext(watch), 10)


async def test_a_watch_that_nobody_reads_holds_a_bounded_number_of_batches(
    owned: InMemoryStore, server: StoreServer, connect: Connect
) -> None:
    worker = connect()
    watch, reader = worker.watch(b"", 0), worker.watch(b"", 0)
    revisions = [await put(owned, b"a", b"%d" % i) for i in range(3 * QUEUED + 5)]
    assert [(await next_change(reader)).revision for _ in revisions] == revisions

    assert len(watch._batches) == QUEUED  # noqa: SLF001 - what it costs
    assert [(await next_change(watch)).revision for _ in revisions] == revisions


async def test_a_store_that_has_failed_has_failed_for_its_workers(
    owned: InMemoryStore, server: StoreServer, connect: Connect
) -> None:
    worker = connect()
    watch = worker.watch(b"", 0)
    await worker.check(b"")
    owned.refuse_all()

    for call in (worker.check(b""), worker.range(b""), worker.txn((), (Put(b"a", b""),)), worker.session(1)):
        with pytest.raises(StoreFailedError, match="the broker was killed"):
            await call
    with pytest.raises(StoreFailedError, match="the broker was killed"):
        await asyncio.wait_for(anext(watch), 10)


async def test_a_watch_of_a_store_that_is_closed_fails(
    owned: InMemoryStore, server: StoreServer, connect: Connect
) -> None:
    worker = connect()
    watch = worker.watch(b"", 0)
    await worker.check(b"")

    await owned.close()

    with pytest.raises(StoreFailedError, match="closed"):
        await asyncio.wait_for(anext(watch), 10)
