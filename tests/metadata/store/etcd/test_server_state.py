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
from odradek.broker.metadata.store.etcd.messages import RANGE, STATUS
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


def _status(version: str) -> dict[str, bytes]:
    return {STATUS: bytes_field(2, version.encode()), RANGE: message_field(1, number_field(3, 7))}


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
