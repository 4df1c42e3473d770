"""A loaded partition whose log and event loop are doubles: a test says when an append ends and time passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from odradek.broker.coordinator.runtime.events import PendingReply, ProducerIdAndEpoch
from odradek.broker.coordinator.runtime.loaded_partition import LoadedPartition
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.storage.producers.verification_state import Verification
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.counters import Add, Break, Counters, CounterValue, Delete

TIMEOUT_MS = 5000
PRODUCER = ProducerIdAndEpoch(7, 0)
COMMIT = TransactionMarker(7, 0, committed=True, coordinator_epoch=0, transaction_version=1)
ABORT = COMMIT._replace(committed=False)
BUSY = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "busy")
DISK_FULL = KafkaError(ErrorCode.NOT_COORDINATOR, "the disk is full")


class ScriptedWriter:
    """A log whose appends end at once, or when a test says so if `is_slow`."""

    leader_epoch = 0

    def __init__(self) -> None:
        self.is_slow = False
        self.is_fenced = False
        self.appends: list[asyncio.Future[int]] = []
        self.end_offset = 0

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: ProducerIdAndEpoch | None = None,
        verification: Verification | None = None,
    ) -> int | asyncio.Future[int]:
        return self._append(len(records))

    def append_marker(self, marker: TransactionMarker) -> int | asyncio.Future[int]:
        return self._append(1)

    def _append(self, count: int) -> int | asyncio.Future[int]:
        self.end_offset += count
        if not self.is_slow:
            return self.end_offset - count
        self.appends.append(asyncio.get_running_loop().create_future())
        return self.appends[-1]


class StillLoop:
    """The timers of an event loop whose time passes by `advance`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._calls: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> asyncio.Handle:
        call = when, callback, args
        self._calls.append(call)
        return cast("asyncio.Handle", type("Handle", (), {"cancel": lambda _: self._calls.remove(call)})())

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for call in [call for call in self._calls if call[0] <= self.now]:
            self._calls.remove(call)
            call[1](*call[2])


class Bench:
    """A loaded partition of counters. `replies` are those given so far, a KafkaError by its code."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.writer = ScriptedWriter()
        self.loop = StillLoop()
        self.partition = LoadedPartition(
            self.counters,
            cast("Any", self.writer),
            ManualClock(0),
            cast("Any", self.loop),
            cast("Any", self.loop),
            self._run,
            "counter",
            append_timeout_ms=TIMEOUT_MS,
        )
        self._answers: list[asyncio.Future[Any]] = []

    @property
    def replies(self) -> list[int | ErrorCode | None]:
        return [_outcome(answer) for answer in self._answers]

    def add(self, key: str, amount: int, **effects: Any) -> None:
        pending = PendingReply()
        self.partition.submit(key, Add(pending, amount, effects=effects))
        self._answers.append(_answer(pending))

    def add_in_transaction(self, key: str, amount: int) -> None:
        self.add(key, amount, producer=PRODUCER)

    def submit(self, key: str, event: type[Delete | Break]) -> None:
        pending = PendingReply()
        self.partition.submit(key, event(pending))
        self._answers.append(_answer(pending))

    async def end_append(self, error: Exception | None = None, index: int = 0) -> None:
        append = self.writer.appends.pop(index)
        if error is None:
            append.set_result(0)
        else:
            append.set_exception(error)
        await asyncio.sleep(0)  # the callbacks of a future run in the loop's next turn

    @staticmethod
    def _run(work: Callable[[], Any]) -> asyncio.Future[Any]:
        done = asyncio.get_running_loop().create_future()
        try:
            done.set_result(work())
        except ArithmeticError as error:
            done.set_exception(error)
        return done


def _answer(pending: PendingReply) -> asyncio.Future[Any]:
    """Return the future of the reply, done already if the reply is there."""
    create_future = asyncio.get_running_loop().create_future
    try:
        answer = pending.result(create_future)
    except KafkaError as error:
        failed = create_future()
        failed.set_exception(error)
        return failed
    if isinstance(answer, asyncio.Future):
        return answer
    done = create_future()
    done.set_result(answer)
    return done


def _outcome(answer: asyncio.Future[Any]) -> int | ErrorCode | None:
    if not answer.done():
        return None
    error = answer.exception()
    if error is not None:
        assert isinstance(error, KafkaError)
        return error.code
    reply = answer.result()
    assert isinstance(reply, CounterValue)
    return reply.count
