"""A writer, a watch and a session of one store, all of which must survive what happens to the members."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self
from uuid import uuid4

from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.etcd.session import EtcdSession
from odradek.broker.metadata.store.etcd.store import EtcdStore
from odradek.broker.metadata.store.store import Put, absent

_PATIENCE = 60


class Workload:
    """Creates one key after the other: `async with Workload(store) as workload`."""

    def __init__(self, store: EtcdStore, ttl: float = 30) -> None:
        self._store = store
        self._ttl = ttl
        self._prefix = b"workload/%b/" % uuid4().hex.encode()
        self._tasks: list[asyncio.Task[None]] = []
        self._progress = asyncio.Condition()
        self.created: list[int] = []
        self.watched: list[int] = []
        self.session: EtcdSession

    async def __aenter__(self) -> Self:
        _, revision = await self._store.range(self._prefix)
        self.session = await self._store.session(self._ttl)
        self._tasks = [asyncio.ensure_future(each) for each in (self._write(), self._watch(revision))]
        for task in self._tasks:
            task.add_done_callback(self._wake)
        await self.goes_on()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Check that the watch has every change once, in order, if the test has not failed."""
        self._tasks[0].cancel()
        if error is None:
            await self._until(lambda: len(self.watched) >= len(self.created))
            assert self.watched[: len(self.created)] == self.created
            stored = [kv.mod_revision for kv in (await self._store.range(self._prefix))[0]]
            assert stored[: len(self.created)] == self.created
            assert len(stored) <= len(self.created) + 1  # the last one may have been interrupted
        self._tasks[1].cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def goes_on(self, count: int = 5) -> None:
        """Return when so many more keys have been created, and seen by the watch."""
        enough = len(self.created) + count
        await self._until(lambda: len(self.watched) >= enough and len(self.created) >= enough)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(_PATIENCE), self._progress:
            while not condition():
                for task in self._tasks:
                    if task.done() and not task.cancelled():
                        task.result()
                        raise AssertionError("the watch has ended")
                await self._progress.wait()

    async def _write(self) -> None:
        while True:
            key = self._prefix + b"%06d" % len(self.created)
            result = await commit(self._store, (absent(key),), (Put(key, uuid4().bytes),))
            assert result.ok
            await self._note(self.created, result.revision)

    async def _watch(self, after: int) -> None:
        async for batch in self._store.watch(self._prefix, after):
            for _ in batch.changes:
                await self._note(self.watched, batch.revision)

    def _wake(self, _task: object) -> None:
        async def wake() -> None:
            async with self._progress:
                self._progress.notify_all()

        self._waking = asyncio.ensure_future(wake())

    async def _note(self, revisions: list[int], revision: int) -> None:
        async with self._progress:
            revisions.append(revision)
            self._progress.notify_all()
