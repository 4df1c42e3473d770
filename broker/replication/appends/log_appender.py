"""The order of the appends to one log, on the event loop or on a thread, and the flush before an append counts.

```
append ─┬─ small, nothing queued ──► on the loop ────────┬─ no flush due ──────────────► on_appended(info) ──► info
        └─ ≥ 128 KiB or behind one ► on a writer thread ──┴─ flush due ──► disk thread ──┘
           or may roll a log of many producers
```
A small append is a write to the page cache of a few microseconds and runs at once. A large one would delay every other
client, so a writer thread executes it, and later appends to the same log queue behind it whatever their size. Three
kinds of small batches are treated as large:

- Its records must be decoded for the topic's configuration and expand to more than 64 KiB. Decompression on the event
  loop stops at that size and starts again on a writer thread.
- It is a client's, its records must be decoded, and other batches had many records decoded in the same turn of the
  event loop: a single request may have a thousand partitions.
- It may start a new segment of a log with more than a thousand producers: a roll writes a snapshot of all of them.

If flush.messages demands it, an append counts only after the fsync: then `on_appended` is called, which moves the high
watermark, and the append is acknowledged. Appends that arrive during an fsync share the next one. `on_appended` is
called in the order of the offsets.

An append belongs to the leader epoch in which it was requested. One that waits in the queue fails with
NOT_LEADER_OR_FOLLOWER if that epoch is over when its turn comes: its batch would follow those of another leader.

After a transient error of the disk (`disk_errors`) an epoch is begun, and an fsync done, again and again until it
succeeds. The appends wait meanwhile: the next fsync would commit them, even if they had been reported as failed.

The buffer of records belongs to the appender until the append has ended, even if the caller has stopped waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Final, ParamSpec, TypeVar

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.writer_thread import OnEnd, end_future
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import NO_LIMIT
from odradek.broker.storage.producers.verification_state import Verification
from odradek.protocol.errors import DecompressionLimitError, ErrorCode, KafkaError
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, RECORDS_COUNT_POSITION

P = ParamSpec("P")
T = TypeVar("T")

_CLIENT: Final = Origin.CLIENT  # saves a lookup in each append
_COUNT: Final = Struct(">i")
LARGE_APPEND_BYTES: Final = 128 * 1024
"""The size from which a writer thread costs less than it saves the other clients.

Copying 100 KiB takes as long as two small requests. With 64 KiB as the limit, 16 producers with transactions of three
batches of 100 KiB completed a fifth fewer of them, at a third more processor time (`transactions.rate`, five rounds).

A lower limit is slower, because waking a thread and being woken by it costs more than copying 16 KiB. Four connections
with four requests of 16 KiB in flight reach half the rate if appends from 8 KiB on run on a thread, and three quarters
of it if the appends of one turn run there together.
"""


MOST_DECODED_BYTES: Final = 64 * 1024
"""The most bytes that are decompressed on the event loop: each record in them takes half a microsecond more."""


class LogAppender:
    """The single appender of one log. Used on the event loop only; the ends of work on threads are handled there, too.

    `flush_messages` is the topic property of that name; a change of the log's configuration must set it here as well.
    `leader_epoch` is the epoch that this broker leads, or -1; writer threads read it.
    """

    __slots__ = (
        "_flushing", "_has_resigned", "_idle", "_is_pausing", "_log", "_on_appended", "_producers", "_queued",
        "_threads", "_uncounted", "_unflushed", "_writer", "flush_messages", "leader_epoch",
    )  # fmt: skip

    def __init__(self, log: Log, threads: DiskThreads, on_appended: Callable[[AppendInfo], None]) -> None:
        self.flush_messages = log.config.flush_messages
        self.leader_epoch = -1
        self._log = log
        self._producers = log.producers
        self._threads = threads
        self._writer = threads.least_busy_writer()
        self._on_appended = on_appended
        self._queued = 0
        self._flushing = False
        self._is_pausing = False  # until an fsync is tried again
        self._has_resigned = False
        self._uncounted = 0  # appends that wait for an fsync
        self._unflushed: list[tuple[AppendInfo, asyncio.Future[AppendInfo]]] = []
        self._idle: list[asyncio.Future[None]] = []

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
        verification: Verification | None = None,
    ) -> AppendInfo | asyncio.Future[AppendInfo]:
        """Append one batch; see `Log.append_as_leader`. Returns a future if the append did not end at once.

        The call or the future raises KafkaError.
        """
        if (
            self._queued
            or len(records) >= LARGE_APPEND_BYTES
            or (self._producers.is_crowded and self._log.may_roll(records, LARGE_APPEND_BYTES))
        ):
            return self._append_on_thread(records, leader_epoch, now_ms, origin, transaction_version, verification)
        if (
            self._log.decodes_records
            and origin is _CLIENT
            and not self._threads.may_decode_on_loop(_records_count(records))
        ):
            return self._append_on_thread(records, leader_epoch, now_ms, origin, transaction_version, verification)
        try:
            info = self._log.append_as_leader(
                records, leader_epoch, now_ms, origin, transaction_version, verification, MOST_DECODED_BYTES
            )
        except DecompressionLimitError:
            return self._append_on_thread(records, leader_epoch, now_ms, origin, transaction_version, verification)
        if self._uncounted or (self.flush_messages != NO_LIMIT and self._flush_due()):
            return self._flush_first(info, self._threads.create_future())
        self._on_appended(info)
        return info

    async def append_as_follower(self, records: memoryview, last_epoch: int) -> AppendInfo | None:
        """Append the leader's batches (see `Log.append_as_follower`); return when they count. Raises KafkaError."""
        if self._queued or len(records) >= LARGE_APPEND_BYTES:
            info = await self.run_between_appends(self._log.append_as_follower, records, last_epoch)
        else:
            info = self._log.append_as_follower(records, last_epoch)
        await self.sync_if_demanded()
        return info

    async def sync_if_demanded(self) -> None:
        """Sync the log if flush.messages demands it: a follower promises only what counts. Raises KafkaError."""
        if self._flush_due():
            await self._threads.run(self._log.flush)

    def begin_epoch(self, leader_epoch: int, has_followers: bool, on_begun: Callable[[int, int], None]) -> None:
        """Begin a leader epoch behind everything that is queued, and call `on_begun(leader_epoch, start_offset)`.

        It is called at once if nothing is queued, later after a transient error of the disk, and never if the disk has
        failed or the epoch is over by then.
        """
        self.leader_epoch = leader_epoch
        self._begin(leader_epoch, has_followers, on_begun)

    def _begin(self, leader_epoch: int, has_followers: bool, on_begun: Callable[[int, int], None]) -> None:
        if self._is_over(leader_epoch):
            return
        begin = partial(self._begin_epoch, leader_epoch, has_followers)
        on_end = partial(self._epoch_began, leader_epoch, has_followers, on_begun)
        if self._queued:
            self._submit(begin, partial(self._epoch_began_on_thread, on_end))
            return
        try:
            start_offset = begin()
        except KafkaError as error:
            on_end(0, error)
        else:
            on_end(start_offset, None)

    def count_end(self, on_counted: Callable[[int], None]) -> None:
        """Call `on_counted(end)` when everything up to the present end of the log counts; never if the disk fails.

        That is at once, or after an fsync if flush.messages demands one; never if the epoch is over by then.
        """
        end = self._log.log_end_offset
        if self._uncounted == 0 and not self._flush_due():
            on_counted(end)
            return
        on_end = partial(self._end_synced, self.leader_epoch, on_counted, end)
        self._threads.run(self._log.flush, end).add_done_callback(on_end)

    def _end_synced(
        self, leader_epoch: int, on_counted: Callable[[int], None], end: int, flushing: asyncio.Future[None]
    ) -> None:
        if flushing.cancelled() or self._is_over(leader_epoch):
            return
        error = flushing.exception()
        if error is None:
            on_counted(end)
        elif isinstance(error, TransientDiskError):
            self._threads.retry_later(partial(self._count_end_again, leader_epoch, on_counted))

    def _count_end_again(self, leader_epoch: int, on_counted: Callable[[int], None]) -> None:
        if not self._is_over(leader_epoch):
            self.count_end(on_counted)

    def resign(self) -> None:
        """Begin no epoch any more, and report no append: the log is about to be removed."""
        self._has_resigned = True
        self._on_appended = _ignore  # otherwise the partition and its appender were a cycle that outlives the log

    def _is_over(self, leader_epoch: int) -> bool:
        return self._has_resigned or leader_epoch != self.leader_epoch

    def run_between_appends(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run a function on a writer thread, between appends: later appends queue behind it.

        It runs to its end even if the caller stops waiting.
        """
        answer: asyncio.Future[T] = self._threads.create_future()
        self._submit(partial(function, *args, **kwargs), partial(self._ran_between_appends, answer))
        return answer

    def flush_if_due(self) -> asyncio.Future[None] | None:
        """Start a flush if flush.ms or a rolled segment demands one and none is running.

        Returns the future of the flush, if one was started; the caller handles its outcome.
        """
        target = None if self._flushing else self._log.flush_target()
        return None if target is None else self._flush([], target)

    @property
    def waits_for_flush(self) -> bool:
        """Return whether an append waits for an fsync before it counts."""
        return self._uncounted > 0

    @property
    def is_busy(self) -> bool:
        """Return whether an append is queued or a flush is running."""
        return self._queued > 0 or self._flushing

    async def drained(self) -> None:
        """Wait until it is not busy; the caller ensures that no new append comes.

        An fsync that pauses after a transient error is tried once more; then its appends fail.
        """
        if self.is_busy:
            idle: asyncio.Future[None] = self._threads.create_future()
            self._idle.append(idle)
            self._end_pause()
            await idle

    def _begin_epoch(self, leader_epoch: int, has_followers: bool) -> int:
        if has_followers:  # they compare their logs with the end of this one before it is used otherwise
            self._log.check_end()
        return self._log.begin_epoch(leader_epoch)

    def _epoch_began_on_thread(self, on_end: OnEnd, start_offset: int, error: BaseException | None) -> None:
        self._queued -= 1
        on_end(start_offset, error)
        self._wake_if_idle()

    def _epoch_began(
        self,
        leader_epoch: int,
        has_followers: bool,
        on_begun: Callable[[int, int], None],
        start_offset: int,
        error: BaseException | None,
    ) -> None:
        if error is None:
            on_begun(leader_epoch, start_offset)
        elif isinstance(error, TransientDiskError):
            self._threads.retry_later(partial(self._begin, leader_epoch, has_followers, on_begun))
        # After any other error the partition goes offline with its log directory.

    def _append_on_thread(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: Origin,
        transaction_version: int,
        verification: Verification | None,
    ) -> asyncio.Future[AppendInfo]:
        answer: asyncio.Future[AppendInfo] = self._threads.create_future()
        self._submit(
            partial(self._append_in_epoch, records, leader_epoch, now_ms, origin, transaction_version, verification),
            partial(self._appended_on_thread, answer),
        )
        return answer

    def _append_in_epoch(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: Origin,
        transaction_version: int,
        verification: Verification | None,
    ) -> AppendInfo:
        """Append on the writer thread, unless the epoch of the request is over."""
        if leader_epoch != self.leader_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"leader epoch {leader_epoch} is over")
        return self._log.append_as_leader(records, leader_epoch, now_ms, origin, transaction_version, verification)

    def _submit(self, work: Callable[[], Any], on_end: OnEnd) -> None:
        if not self._queued:  # else keep the writer, which keeps the order
            self._writer = self._threads.least_busy_writer()
        self._queued += 1
        self._writer.submit(work, on_end)

    def _appended_on_thread(
        self, answer: asyncio.Future[AppendInfo], info: AppendInfo | None, error: BaseException | None
    ) -> None:
        self._queued -= 1
        if info is not None:
            if self._uncounted or self._flush_due():
                self._flush_first(info, answer)
                return
            self._on_appended(info)
        end_future(answer, info, error)
        self._wake_if_idle()

    def _ran_between_appends(self, answer: asyncio.Future[T], result: T, error: BaseException | None) -> None:
        self._queued -= 1
        end_future(answer, result, error)
        self._wake_if_idle()

    def _flush_due(self) -> bool:
        if self.flush_messages == NO_LIMIT:
            return False
        return self._log.log_end_offset - self._log.recovery_point >= self.flush_messages

    def _flush_first(self, info: AppendInfo, answer: asyncio.Future[AppendInfo]) -> asyncio.Future[AppendInfo]:
        self._uncounted += 1
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
        error = flushing.exception()
        if batch and isinstance(error, TransientDiskError) and not self._idle:
            self._unflushed = batch + self._unflushed
            self._is_pausing = True
            self._threads.retry_later(self._end_pause)
            return
        for info, answer in batch:
            if error is None:
                self._on_appended(info)
            end_future(answer, info, error)
        # Last, so that an append made by `on_appended` waits behind the rest of the batch.
        self._flushing = False
        self._uncounted -= len(batch)
        if self._unflushed:
            self._flush_waiting()
        self._wake_if_idle()

    def _end_pause(self) -> None:
        if self._is_pausing:
            self._is_pausing = False
            self._flush_waiting()

    def _wake_if_idle(self) -> None:
        if not self.is_busy:
            idle, self._idle = self._idle, []
            for waiter in idle:
                if not waiter.done():
                    waiter.set_result(None)


def _ignore(_: AppendInfo) -> None:
    """Nobody waits for an append to a log that is about to be removed."""


def _records_count(records: memoryview) -> int:
    """The number of records in the header of a batch, which is not validated yet."""
    if len(records) < BATCH_HEADER_SIZE:
        return 0
    count: int = _COUNT.unpack_from(records, RECORDS_COUNT_POSITION)[0]
    return max(count, 0)
