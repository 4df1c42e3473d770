"""The metadata store on a host of its own, and the client that each broker has of it.

```
RemoteStore.txn ──► network (delayed, lost, late) ──► StoreServer: InMemoryStore ──► network ──► answer
      └ no answer in time: UnknownOutcomeError; the transaction may still arrive and be applied
```

As in `metadata.store.etcd`:

- Each attempt has half a second.
- A session is kept alive every fifth of its time to live, and ends up to half a second late. Its deadline
  counts from the time at which the last answered sign of life was sent.
- A watch that hears nothing asks again from the last revision that it received whole. After a compaction it raises
  `CompactedError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from odradek.broker.clock import Clock
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import (
    KV,
    MAX_OPERATIONS,
    Batch,
    Cmp,
    CompactedError,
    Op,
    StoreError,
    StoreUnreachableError,
    TxnResult,
    UnknownOutcomeError,
    check_operations,
)
from tests.simulation.hosts import Host
from tests.simulation.network import Network
from tests.simulation.node_loop import Call, NodeLoop

T = TypeVar("T")

_ATTEMPT_SECONDS = 0.5
_PROGRESS_SECONDS = 0.5
_SILENCE_SECONDS = 1.5
_KEEP_ALIVES_PER_TTL = 5
_EXPIRES_LATE = 0.5
_REPEATED_SHARE = 0.01
"""The share of transactions that the network delivers twice."""


class StoreServer:
    """The store, and the leases of all brokers. `on_change` is called with each batch when it is applied."""

    def __init__(self, host: Host, loop: NodeLoop, store: InMemoryStore) -> None:
        self.host = host
        self.store = store
        self.compacted = 0
        self.batches: list[Batch] = []
        self._loop = loop
        self._leases: dict[int, tuple[float, Call]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._changed = asyncio.Event()

    async def follow(self, on_change: Callable[[Batch], None]) -> None:
        """Collect the history for the watches; runs as long as the store does."""
        async for batch in self.store.watch(b"", 0):
            self.batches.append(batch)
            on_change(batch)
            self._changed.set()
            self._changed = asyncio.Event()

    def compact(self) -> None:
        """Drop the history up to now: a watch that has not received all of it must load again."""
        self.compacted = self.batches[-1].revision if self.batches else 0

    def end_lease(self, lease: int) -> None:
        """End a lease now, as if its owner had been silent."""
        self._expire(lease)

    def receive(self, name: str, arguments: tuple[Any, ...], reply: Callable[[Any, StoreError | None], None]) -> None:
        """Begin a request that has arrived."""
        task = self._loop.create_task(self._answer(getattr(self, f"do_{name}"), arguments, reply))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _answer(
        self,
        function: Callable[..., Awaitable[Any]],
        arguments: tuple[Any, ...],
        reply: Callable[[Any, StoreError | None], None],
    ) -> None:
        try:
            answer = await function(*arguments)
        except StoreError as error:
            reply(None, error)
        else:
            reply(answer, None)

    async def do_check(self) -> None:
        """Answer that the store works."""

    async def do_range(self, prefix: bytes) -> tuple[list[KV], int]:
        return await self.store.range(prefix)

    async def do_txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        return await self.store.txn(when, then)

    async def do_grant(self, ttl: float) -> int:
        lease = (await self.store.session(ttl)).lease
        self._renew(lease, ttl)
        return lease

    async def do_keep_alive(self, lease: int) -> bool:
        """Renew a lease; return False if it has ended."""
        if lease not in self._leases:
            return False
        self._renew(lease, self._leases[lease][0])
        return True

    async def do_revoke(self, lease: int) -> None:
        if lease in self._leases:
            self._leases.pop(lease)[1].cancel()
        await self.store.revoke(lease)

    async def do_poll(self, prefix: bytes, after: int) -> tuple[list[Batch], int]:
        """Return the batches above a revision, at once or when there are any, and the revision that they reach."""
        if after < self.compacted:
            raise CompactedError(f"changes up to revision {self.compacted} are no longer kept")
        if not self._above(after):
            try:
                async with asyncio.timeout(_PROGRESS_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                pass
        above = self._above(after)
        return [_under(prefix, batch) for batch in above], above[-1].revision if above else after

    def _above(self, revision: int) -> list[Batch]:
        first = len(self.batches)
        while first and self.batches[first - 1].revision > revision:
            first -= 1
        return self.batches[first:]

    def _renew(self, lease: int, ttl: float) -> None:
        if lease in self._leases:
            self._leases[lease][1].cancel()
        late = self.host.world.draw.uniform(0, _EXPIRES_LATE)
        self._leases[lease] = (ttl, self._loop.call_later(ttl + late, self._expire, lease))

    def _expire(self, lease: int) -> None:
        if lease in self._leases:
            self._leases.pop(lease)[1].cancel()
            self.host.world.note(f"lease {lease} ends")
            self.receive("revoke", (lease,), lambda _answer, _error: None)


def _under(prefix: bytes, batch: Batch) -> Batch:
    return Batch(batch.revision, tuple(change for change in batch.changes if change.key.startswith(prefix)))


class RemoteStore:
    """A `MetadataStore` for the process on one host, over the network."""

    max_operations = MAX_OPERATIONS

    def __init__(self, server: StoreServer, network: Network, host: Host, clock: Clock) -> None:
        assert host.loop is not None
        self._server = server
        self._network = network
        self._host = host
        self._loop = host.loop
        self._clock = clock
        self._sessions: dict[int, RemoteSession] = {}

    async def check(self, prefix: bytes) -> None:
        await self._read("check")

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        found: tuple[list[KV], int] = await self._read("range", prefix)
        return found

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        check_operations(when, then)
        arguments = (tuple(when), tuple(then))
        if self._host.world.draw.random() < _REPEATED_SHARE:
            self._send("txn", arguments, self._loop.create_future())
        try:
            result: TxnResult = await self.call("txn", *arguments)
        except TimeoutError:
            raise UnknownOutcomeError("no answer within the time of an attempt") from None
        return result

    def watch(self, prefix: bytes, after: int) -> RemoteWatch:
        return RemoteWatch(self, prefix, after)

    async def session(self, ttl: float) -> RemoteSession:
        sent = self._clock.boot_time()
        lease: int = await self._read("grant", ttl)
        session = self._sessions[lease] = RemoteSession(self, self._clock, self._loop, lease, ttl, sent)
        return session

    async def revoke(self, lease: int) -> None:
        await self._read("revoke", lease)
        if lease in self._sessions:
            self._sessions.pop(lease).ended()

    async def close(self) -> None:
        """Nothing to release: the process owns no connection to the store."""

    async def call(self, name: str, *arguments: Any, seconds: float = _ATTEMPT_SECONDS) -> Any:
        """Send one request, and wait for its answer. Raises TimeoutError, `StoreError`."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._send(name, arguments, answer)
        async with asyncio.timeout(seconds):
            return await answer

    async def _read(self, name: str, *arguments: Any) -> Any:
        try:
            return await self.call(name, *arguments)
        except TimeoutError:
            raise StoreUnreachableError("no answer within the time of an attempt") from None

    def _send(self, name: str, arguments: tuple[Any, ...], answer: asyncio.Future[Any]) -> None:
        if not self._loop.is_dead:
            deliver = partial(self._server.receive, name, arguments, partial(self._reply, answer))
            self._network.post(self._host, self._server.host, deliver)

    def _reply(self, answer: asyncio.Future[Any], result: Any, error: StoreError | None) -> None:
        if self._host.loop is self._loop:  # else the process is gone
            self._network.post(self._server.host, self._host, partial(_set, answer, result, error))


def _set(answer: asyncio.Future[Any], result: Any, error: StoreError | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)


class RemoteSession:
    """A `Session` that its owner keeps alive."""

    def __init__(self, store: RemoteStore, clock: Clock, loop: NodeLoop, lease: int, ttl: float, sent: float) -> None:
        self.lease = lease
        self.lost = asyncio.Event()
        self._store = store
        self._clock = clock
        self._ttl = ttl
        self._deadline = self._after(sent)
        self._keeping_alive = loop.create_task(self._keep_alive(), name="session")

    def deadline(self) -> float:
        return self._deadline

    async def revoke(self) -> None:
        if not self.lost.is_set():
            await self._store.revoke(self.lease)
        self.ended()

    def ended(self) -> None:
        """Note that the lease is over."""
        self.lost.set()
        self._keeping_alive.cancel()

    def _after(self, sent: float) -> float:
        return sent + self._ttl - max(0.1 * self._ttl, 0.2)

    async def _keep_alive(self) -> None:
        interval = self._ttl / _KEEP_ALIVES_PER_TTL
        pause = interval
        while True:
            await asyncio.sleep(pause)
            sent = self._clock.boot_time()
            try:
                exists = await self._store.call("keep_alive", self.lease)
            except TimeoutError:
                pause = 0.0
                continue
            if not exists:
                self.lost.set()
                return
            self._deadline = max(self._deadline, self._after(sent))
            pause = max(0.0, sent + interval - self._clock.boot_time())


class RemoteWatch:
    """A `Watch`: one request after another, each for what comes after the last answer."""

    def __init__(self, store: RemoteStore, prefix: bytes, after: int) -> None:
        self._store = store
        self._prefix = prefix
        self._reached = after
        self._batches: list[Batch] = []
        self._is_closed = False

    def __aiter__(self) -> RemoteWatch:
        return self

    async def __anext__(self) -> Batch:
        while not self._batches and not self._is_closed:
            try:
                batches, reached = await self._store.call("poll", self._prefix, self._reached, seconds=_SILENCE_SECONDS)
            except TimeoutError:
                continue
            if reached >= self._reached:
                self._reached = reached
                self._batches = batches or [Batch(reached, ())]
        if self._is_closed:
            raise StopAsyncIteration
        return self._batches.pop(0)

    def request_progress(self, revision: int) -> None:
        """Nothing: each answer has all changes up to the revision of the store."""

    def close(self) -> None:
        self._is_closed = True
