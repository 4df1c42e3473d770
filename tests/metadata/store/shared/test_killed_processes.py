"""Processes that are killed: a worker, and the owner of the store."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from odradek.broker.metadata.store.commit import commit, until_reached
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.shared.server import StoreServer
from odradek.broker.metadata.store.store import Change, CompactedError, Put, absent
from tests.metadata.store.reading import keys, next_change
from tests.metadata.store.shared.conftest import Connect

pytestmark = pytest.mark.process

_WORKER = """
import asyncio, sys
from pathlib import Path
from odradek.broker.clock import SystemClock
from odradek.broker.metadata.store.shared.store import SharedStore
from odradek.broker.metadata.store.store import Put

async def main():
    store = SharedStore(Path(sys.argv[1]), SystemClock())
    session = await store.session(3600)
    await store.txn((), (Put(b"worker", b"", session.lease),))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""

_OWNER = """
import asyncio, sys
from pathlib import Path
from odradek.broker.metadata.store.shared.server import StoreServer
from odradek.broker.metadata.store.sqlite import SqliteStore

async def main():
    path = Path(sys.argv[1])
    server = StoreServer(await SqliteStore.open(path.with_name("store")), path)
    await server.start()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def _running(program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process
        process.kill()


def _wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


async def test_the_keys_of_a_killed_worker_are_gone_at_once(
    owned: InMemoryStore, server: StoreServer, path: Path
) -> None:
    """Its session would last for an hour."""
    with _running(_WORKER, path) as process:
        await asyncio.to_thread(_wait_until_ready, process)
        assert await keys(owned, b"") == [b"worker"]

        process.kill()

        assert (await next_change(owned.watch(b"", 1))).changes == (Change(b"worker", None),)
    assert len(server) == 0


async def test_what_was_committed_survives_the_kill_of_the_owner(path: Path, connect: Connect) -> None:
    """Kill it while transactions are under way, three times; no key is lost or put twice."""
    worker = connect()
    created: list[bytes] = []

    async def create() -> None:
        while True:
            key = b"key/%06d" % len(created)
            assert (await commit(worker, (absent(key),), (Put(key, b"of %d" % len(created)),))).ok
            created.append(key)

    creating = asyncio.ensure_future(create())
    with ExitStack() as stack:
        for _ in range(3):
            process = stack.enter_context(_running(_OWNER, path))
            await asyncio.to_thread(_wait_until_ready, process)
            session = await until_reached(lambda: worker.session(3600))
            leased = await commit(worker, (), (Put(b"leased", b"", session.lease),))
            watch = worker.watch(b"leased", leased.revision)
            enough = len(created) + 20
            while len(created) < enough:
                await worker.check(b"")

            process.kill()

            await asyncio.wait_for(session.lost.wait(), 30)
        again = stack.enter_context(_running(_OWNER, path))
        await asyncio.to_thread(_wait_until_ready, again)
        assert (await commit(worker, (), (Put(b"last", b""),))).ok
        creating.cancel()
        await asyncio.gather(creating, return_exceptions=True)

        with pytest.raises(CompactedError):
            await next_change(watch)
        assert await until_reached(lambda: keys(worker, b"leased")) == []
        stored = await keys(worker, b"key/")
        assert [b"key/" + key for key in stored][: len(created)] == created
        assert len(stored) <= len(created) + 1
