"""The order of appends to one log, wherever they run, and what must happen before an append counts.

```
append ─┬─ small, nothing queued ──► on the loop ────────┬─ no flush due ──────────────► on_appended(info) ──► info
        └─ ≥ 64 KiB, or behind one ► on a writer thread ──┴─ flush due ──► disk thread ──┘
           or may roll a log of many producers
```
A small batch whose records the topic makes the log decode, and that expand to more than 64 KiB, is large: decompression
on the loop stops there, and begins again on a writer thread. So are further small batches of that kind when those of
one turn of the loop have many records, because a single request may have a thousand partitions.

Small appends are a page-cache write of microseconds and run at once; a big one would hold up every other client, so
it goes to a writer thread, and later appends to the same log queue behind it whatever their size. So does one that may
begin a new segment where there are more than a thousand producers: a roll writes all of them down. Where
flush.messages asks for it, an append counts (is told to `on_appended`, which moves the high watermark, and is
acknowledged) only after the fsync; appends that arrive during an fsync share the next one. `on_appended` is called in
the order of the offsets.

The buffer of records belongs to the appender until the append has ended, even when the caller has stopped waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Final, ParamSpec, TypeVar

from odradek.broker.replication.disk_threads import DiskThreads
from odradek.broker.replication.writer_thread import OnEnd, end_future
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import NO_LIMIT
from odradek.protocol.errors import DecompressionLimitError
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE

P = ParamSpec("P")
T = TypeVar("T")

_COUNT: Final = Struct(">i")
LARGE_APPEND_BYTES: Final = 64 * 1024
"""Where handing over to a thread starts to cost less than what it saves the other clients.

Not lower: to wake a thread and to be woken by it costs more than to copy 16 KiB. Four connections of four requests in
flight, of 16 KiB each, have half the rate if everything from 8 KiB on is handed over, and three quarters if what comes
in one turn is handed over and written together.
"""


class LogAppender:
    """The single appender of one log. Used on the loop only; what it starts elsewhere it brings back.

    `flush_messages` is the topic property of that name; whoever changes it in the log's configuration changes it here.
    """

    __slots__ = (
        "_flushing", "_idle", "_log", "_on_appended", "_producers", "_queued", "_threads", "_unflushed", "_writer",
        "flush_messages",
    )  # fmt: skip

    def __init__(self, log: Log, threads: DiskThreads, on_appended: Callable[[AppendInfo], None]) -> None:
        self.flush_messages = log.config.flush_messages
        self._log = log
        self._producers = log.producers
        self._threads = threads
        self._writer = threads.least_busy_writer()
        self._on_appended = on_appended
        self._queued = 0
        self._flushing = False
        self._unflushed: list[tuple[AppendInfo, asyncio.Future[AppendInfo]]] = []
        self._idle: list[asyncio.Future[None]] = []

    def append_as_leader(
        self, records: memoryview, leader_epoch: int, now_ms: int
    ) -> AppendInfo | asyncio.Future[AppendInfo]:
        """Append one batch; see `Log.append_as_leader`. Returns a future if it did not end at once.

        Raises KafkaError, from here or from the future.
        """
        if (
            self._queued
            or len(records) >= LARGE_APPEND_BYTES
            or (self._producers.is_crowded and self._log.may_roll(records, LARGE_APPEND_BYTES))
        ):
            return self._append_on_thread(records, leader_epoch, now_ms)
        if self._log.decodes_records and not self._threads.may_decode_on_loop(_records_count(records)):
            return self._append_on_thread(records, leader_epoch, now_ms)
        try:
            info = self._log.append_as_leader(records, leader_epoch, now_ms, max_decompressed=LARGE_APPEND_BYTES)
        except DecompressionLimitError:
            return self._append_on_thread(records, leader_epoch, now_ms)
        if self._unflushed or (self.flush_messages != NO_LIMIT and self._flush_due()):
            return self._flush_first(info, self._threads.create_future())
        self._on_appended(info)
        return info

    def run_between_appends(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run on a writer thread what must not run beside an append: later appends queue behind it.

        It runs to its end even if the caller stops waiting.
        """
        answer: asyncio.Future[T] = self._threads.create_future()
        self._submit(partial(function, *args, **kwargs), partial(self._ran_between_appends, answer))
        return answer

    def flush_if_due(self) -> asyncio.Future[None] | None:
        """Begin to flush what flush.ms and rolled segments ask for by now, unless a flush is under way.

        Returns the flush, if one began; the caller sees to what becomes of it.
        """
        target = None if self._flushing else self._log.flush_target()
        return None if target is None else self._flush([], target)

    @property
    def is_busy(self) -> bool:
        """Whether anything is queued or being flushed."""
        return self._queued > 0 or self._flushing

    async def drained(self) -> None:
        """Wait until it is not busy; the caller sees to it that nothing new comes."""
        if self.is_busy:
            idle: asyncio.Future[None] = self._threads.create_future()
            self._idle.append(idle)
            await idle

    def _append_on_thread(self, records: memoryview, leader_epoch: int, now_ms: int) -> asyncio.Future[AppendInfo]:
        answer: asyncio.Future[AppendInfo] = self._threads.create_future()
        self._submit(
            partial(self._log.append_as_leader, records, leader_epoch, now_ms),
            partial(self._appended_on_thread, answer),
        )
        return answer

    def _submit(self, work: Callable[[], Any], on_end: OnEnd) -> None:
        if not self._queued:  # else the writer stays, and with it the order
            self._writer = self._threads.least_busy_writer()
        self._queued += 1
        self._writer.submit(work, on_end)

    def _appended_on_thread(
        self, answer: asyncio.Future[AppendInfo], info: AppendInfo | None, error: BaseException | None
    ) -> None:
        self._queued -= 1
        if info is not None:
            if self._unflushed or self._flush_due():
                self._flush_first(info, answer)
                return
            self._on_appended(info)
        end_future(answer, info, error)
        self._note_idle()

    def _ran_between_appends(self, answer: asyncio.Future[T], result: T, error: BaseException | None) -> None:
        self._queued -= 1
        end_future(answer, result, error)
        self._note_idle()

    def _flush_due(self) -> bool:
        if self.flush_messages == NO_LIMIT:
            return False
        return self._log.log_end_offset - self._log.recovery_point >= self.flush_messages

    def _flush_first(self, info: AppendInfo, answer: asyncio.Future[AppendInfo]) -> asyncio.Future[AppendInfo]:
        self._unflushed.append((info, answer))
        if not self._flushing:
            self._flush_waiting()
        return answer

    def _flush_waiting(self) -> None:
        batch, self._unflushed = self._unflushed, []
        self._flush(batch, None)

    def _flush(
        self, batch: list[tuple[AppendInfo, asyncio.Future[AppendInfo]]], up_to: int | None
    ) -> asyncio.Future[None]:
        self._flushing = True
        flushing = self._threads.run(self._log.flush, up_to)
        flushing.add_done_callback(partial(self._flushed, batch))
        return flushing

    def _flushed(
        self, batch: list[tuple[AppendInfo, asyncio.Future[AppendInfo]]], flushing: asyncio.Future[None]
    ) -> None:
        self._flushing = False
        error = flushing.exception()
        for info, answer in batch:
            if error is None:
                self._on_appended(info)
            end_future(answer, info, error)
        if self._unflushed:
            self._flush_waiting()
        self._note_idle()

    def _note_idle(self) -> None:
        if not self.is_busy:
            idle, self._idle = self._idle, []
            for waiter in idle:
                if not waiter.done():
                    waiter.set_result(None)


def _records_count(records: memoryview) -> int:
    """The number of records that the header of a batch claims, before anything of it was checked."""
    if len(records) < BATCH_HEADER_SIZE:
        return 0
    count: int = _COUNT.unpack_from(records, BATCH_HEADER_SIZE - _COUNT.size)[0]
    return max(count, 0)
