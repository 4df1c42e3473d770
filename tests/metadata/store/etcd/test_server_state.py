"""Servers that are old, full, or not what they should be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from uuid import uuid4

import grpc.aio
import pytest

from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.etcd.messages import LEASE_GRANT, LEASE_KEEP_ALIVE, RANGE, STATUS
from odradek.broker.metadata.store.etcd.store import EtcdStore
from odradek.broker.metadata.store.etcd.wire import bytes_field, message_field, number_field
from odradek.broker.metadata.store.store import Put, StoreError, StoreFailedError, StoreFullError, absent
from tests.metadata.store.etcd.conftest import Open
from tests.peers import etcd

Answer = Callable[[bytes, grpc.aio.ServicerContext], bytes]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[dict[str, bytes]], object]]:
    """Starts a server of the test's own that answers calls with fixed bytes; returns its address."""
    async with AsyncExitStack() as stack:

        async def serve(answers: dict[str, bytes]) -> str:
            def handler(details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
                if details.method not in answers:
                    return None

                async def answer(_request: bytes, _context: grpc.aio.ServicerContext) -> bytes:
                    return answers[details.method]

                return grpc.unary_unary_rpc_method_handler(answer)

            class Handlers(grpc.GenericRpcHandler):
                def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
                    return handler(details)

            server = grpc.aio.server()
            server.add_generic_rpc_handlers((Handlers(),))
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            stack.push_async_callback(server.stop, None)
            return f"127.0.0.1:{port}"

        yield serve


def _status(version: str, size: int = 0, quota: int = 0) -> dict[str, bytes]:
    status = bytes_field(2, version.encode()) + number_field(3, size) + number_field(12, quota)
    return {STATUS: status, RANGE: message_field(1, number_field(3, 7))}


async def test_the_size_of_the_database_is_known_after_the_check(
    serve: Callable[..., object], open_store: Open
) -> None:
    store = open_store(await serve(_status("3.6.16", 20_480, 2 << 30)))
    assert (store.counts.size_bytes, store.counts.quota_bytes) == (0, 0)

    await store.check_server(b"a")

    assert (store.counts.size_bytes, store.counts.quota_bytes) == (20_480, 2 << 30)


async def test_the_size_of_the_database_is_read_again_while_there_is_a_session(
    serve: Callable[..., object], open_store: Open
) -> None:
    lease = number_field(2, 77) + number_field(3, 60)
    answers = {**_status("3.6.16", 1, 9), LEASE_GRANT: lease, LEASE_KEEP_ALIVE: lease}
    store = open_store(await serve(answers), status_interval=0.001, heartbeat=3600)
    for session in (1, 2):
        await store.session(60 + session)

    async def until(is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not is_so():  # noqa: ASYNC110 - it is the store's own state
                await asyncio.sleep(0)

    await until(lambda: (store.counts.size_bytes, store.counts.quota_bytes) == (1, 9))
    answers[STATUS] = b"<html>"
    attempts = store.counts.attempts
    await until(lambda: store.counts.attempts > attempts + 2)
    assert (store.counts.size_bytes, store.counts.quota_bytes) == (1, 9)
    answers |= _status("3.6.16", 5, 9)
    await until(lambda: store.counts.size_bytes == 5)
    await store.close()
    assert "etcd's size" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_the_version_of_the_server_is_returned(
    serve: Callable[..., object], open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(await serve(_status("3.6.16")))

    with caplog.at_level(logging.WARNING):
        assert await store.check_server(b"a") == "3.6.16"

    assert not caplog.records


async def test_an_old_version_is_a_warning(
    serve: Callable[..., object], open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(await serve(_status("3.5.30")))

    with caplog.at_level(logging.WARNING):
        assert await store.check_server(b"a") == "3.5.30"

    [record] = caplog.records
    assert record.getMessage() == "etcd is old: update it to version 3.6 or later version=3.5.30"


@pytest.mark.parametrize("version", ["3.4.23", "2.3.8"])
async def test_a_version_that_loses_data_is_refused(
    serve: Callable[..., object], open_store: Open, version: str
) -> None:
    store = open_store(await serve(_status(version)))

    with pytest.raises(StoreFailedError, match=f"version {version}; version 3.6 or later is needed"):
        await store.check_server(b"a")


@pytest.mark.parametrize("version", ["", "latest"])
async def test_a_server_without_a_version_is_an_error(
    serve: Callable[..., object], open_store: Open, version: str
) -> None:
    store = open_store(await serve(_status(version)))

    with pytest.raises(StoreError, match="cannot be read"):
        await store.check_server(b"a")


async def test_an_answer_that_is_no_message_is_an_error(serve: Callable[..., object], open_store: Open) -> None:
    store = open_store(await serve({RANGE: b"<html>"}))

    with pytest.raises(StoreError, match="field"):
        await store.range(b"a")


async def test_a_server_of_something_else_is_an_error(serve: Callable[..., object], open_store: Open) -> None:
    store = open_store(await serve({}))

    with pytest.raises(StoreError):
        await store.range(b"a")


@pytest.fixture
def small() -> Iterator[etcd.Cluster]:
    with etcd.running(1, "--quota-backend-bytes=1000000") as cluster:
        yield cluster


async def _fill(store: EtcdStore) -> list[bytes]:
    """Put large values until the store is full; return their keys."""
    stored: list[bytes] = []
    try:
        for _ in range(1000):  # the size that etcd compares with its quota is updated a while later
            key = uuid4().bytes
            await commit(store, (absent(key),), (Put(key, b"x" * 100_000),))
            stored.append(key)
    except StoreFullError:
        return stored
    raise AssertionError("the store has no quota")


@etcd.MARKS[0]
@etcd.MARKS[1]
async def test_etcd_reports_its_quota_and_the_size_that_it_compares_with_it(
    small: etcd.Cluster, one: etcd.Cluster, open_store: Open
) -> None:
    full, default = open_store(*small.endpoints), open_store(*one.endpoints)
    await _fill(full)
    for store in (full, default):
        await store.check_server(b"a")
    assert full.counts.quota_bytes == 1_000_000 <= full.counts.size_bytes
    assert default.counts.quota_bytes == 2 << 30  # etcd's default
    assert 0 < default.counts.size_bytes < default.counts.quota_bytes


@etcd.MARKS[0]
@etcd.MARKS[1]
async def test_a_full_store_refuses_writes_and_serves_the_rest(
    small: etcd.Cluster, open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(*small.endpoints, heartbeat=0.05)
    session = await store.session(60)
    first = await store.txn((), (Put(b"leased", b"", session.lease),))
    watch = store.watch(b"", first.revision)

    with caplog.at_level(logging.ERROR):
        stored = await _fill(store)
        with pytest.raises(StoreFullError):
            await store.session(2)

    kvs, revision = await store.range(b"")
    assert {kv.key for kv in kvs} == {b"leased", *stored}
    watch.request_progress(revision)
    while (await asyncio.wait_for(anext(watch), 30)).revision < revision:
        pass
    deadline = session.deadline()
    while session.deadline() == deadline:
        await store.range(b"leased")
    assert not session.lost.is_set()
    assert store.counts.full >= 2
    assert "defragment" in caplog.records[0].getMessage()
    await session.revoke()
    assert not (await store.range(b"leased"))[0]
