"""One loaded partition at work: events in, records into the log, replies and timers out.

```
submit(key, event) ─► key busy? wait in its queue
                      no: handle ─► effects ─┬─ records ─► append ─┬─ ended, none pending before ────► complete
                                             │                     └─ else pending, the key is busy ─► complete, queue
                                             └─ none ────────────────────────────────────────────────► complete
marker ─► append ─► the same order ─► replay the end of its transaction
complete: replay the records ─► set timers ─► send replies ─► start work ─► follow-up, whose effects go the same way
          ─► action, whose events are handled before those that waited
pending for append_timeout_ms: reply COORDINATOR_NOT_AVAILABLE; refuse further requests of the key until it is complete
```

- A key handles one event at a time. The shard may refuse requests meanwhile (`busy_error`).
- Records and markers are replayed in the order of the log, whichever key they belong to: an append that has ended stays
  pending until every earlier one has ended. An append that fails wrote nothing, or nothing that counts, so it fails at
  once. A marker concerns all keys; it waits for the appends before it, and no event waits for it.
- An event without records is completed at once, even if appends of other keys are pending.
- An append that takes too long stays pending. Once it is committed, it counts, although its requester got an error. So
  the state in memory is always that of the committed log.

On a single broker a small append ends at once, so the queues are for large appends, flushes and replicas. They are
bounded by the connections, each of which waits for one reply, and by the timers. Kafka's `CoordinatorContext` is the
model. Used on the event loop only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

from odradek.broker.clock import Clock
from odradek.broker.coordinator.runtime.coordinator_shard import NO_PRODUCER, CoordinatorShard, ShardObserver
from odradek.broker.coordinator.runtime.events import Effects, Event, TimerExpired, TimerKey, WorkFailed
from odradek.broker.coordinator.runtime.partition_writer import PartitionWriter
from odradek.broker.coordinator.runtime.timers import KeyTimers
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.waiting import Timer, Timers
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = StructuredLogger(__name__)

TIMER_RETRY_MS = 500
"""The delay until a timer expires again whose records could not be written, as in Kafka."""

_NOT_REPLICATED = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the records are not replicated yet")
_MOVED = KafkaError(ErrorCode.NOT_COORDINATOR, "the partition moves to another broker")

S = TypeVar("S", bound=CoordinatorShard)


class _Write:
    """The effects of one event of `key`; `base_offset` is where their records are in the log, None before they are.

    `expired` is the timer whose expiration was the event. `limit` ends the wait of the requester; then it `is_overdue`.
    """

    __slots__ = ("base_offset", "effects", "expired", "is_overdue", "key", "limit")

    def __init__(self, key: str, effects: Effects, expired: TimerKey | None = None) -> None:
        self.key = key
        self.effects = effects
        self.expired = expired
        self.base_offset: int | None = None
        self.is_overdue = False
        self.limit: Timer | None = None


class _MarkerWrite:
    """A marker on its way into the log; `base_offset` is as in `_Write`, `shown` is done when it has been replayed."""

    __slots__ = ("base_offset", "marker", "shown")

    def __init__(self, marker: TransactionMarker, shown: asyncio.Future[None]) -> None:
        self.marker = marker
        self.shown = shown
        self.base_offset: int | None = None


class LoadedPartition(Generic[S]):
    """One partition, whose state `shard` is.

    `timers` are those of its keys, and of requesters; `run` runs a function in a thread; `key_name` is for the broker's
    log.

    After `unload` everything is answered NOT_COORDINATOR, and nothing else happens.
    """

    def __init__(
        self,
        shard: S,
        writer: PartitionWriter,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        timers: Timers,
        run: Callable[[Callable[[], Any]], asyncio.Future[Any]],
        key_name: str,
        append_timeout_ms: int,
    ) -> None:
        self.shard = shard
        self._driven: CoordinatorShard = shard  # or the outermost of what observes it
        self.leader_epoch = writer.leader_epoch
        self._writer = writer
        self._clock = clock
        self._loop = loop
        self._all_timers = timers
        self._run = run
        self._key_name = key_name
        self._append_timeout_ms = append_timeout_ms
        self._queues: dict[str, deque[Any]] = {}  # events that wait, by busy key
        self._pending: deque[_Write | _MarkerWrite] = deque()  # in the order of the log
        self._overdue: set[str] = set()  # the keys with a write that is overdue
        self._timers: dict[str, KeyTimers] = {}
        self._is_unloaded = False

    @property
    def is_fenced(self) -> bool:
        """Whether another broker may lead the partition by now, so that requests must be refused."""
        return self._writer.is_fenced

    def observe(self, observers: Iterable[ShardObserver[S]]) -> None:
        """Pass events and records through these observers from now on, the innermost first. Without any, as before."""
        self._driven = self.shard
        for observer in observers:
            self._driven = observer(self._driven, self.shard)

    def start(self) -> None:
        """Carry out the effects of being loaded."""
        for key, effects in tuple(self.shard.loaded(self._clock.time_ms())):
            self._carry_out(_Write(key, effects))

    def unload(self) -> None:
        """Answer every request that waits: the coordinator is not here any more."""
        self._is_unloaded = True
        for effects in tuple(self.shard.unloaded()):
            for pending_reply, reply in effects.replies:
                pending_reply.complete(reply)
        for timers in self._timers.values():
            timers.cancel_all()
        while self._pending:
            write = self._pending.popleft()
            if isinstance(write, _MarkerWrite):
                _end_future(write.shown, _MOVED)
                continue
            if write.limit is not None:
                write.limit.cancel()
            self._refuse(write, _MOVED)
        for queue in self._queues.values():
            for event in queue:
                _complete(event, _MOVED)
            queue.clear()

    def submit(self, key: str, event: Any) -> None:
        """Handle the event: now, or when the earlier events of its key have completed.

        An event that no request waits for is any object that is not an `Event`.
        """
        queue = self._queues.get(key)
        if self._is_unloaded:
            _complete(event, _MOVED)
        elif queue is None:
            self._handle(key, event)
        elif not isinstance(event, Event):
            queue.append(event)
        elif (error := self.shard.busy_error(key, event)) is not None:
            _complete(event, error)
        elif key in self._overdue:
            _complete(event, _NOT_REPLICATED)
        else:
            queue.append(event)

    def timers_of(self, key: str) -> KeyTimers | None:
        """Return the timers of a key, if any was ever set."""
        return self._timers.get(key)

    def write_marker(self, marker: TransactionMarker) -> asyncio.Future[None] | None:
        """Append a marker, and replay it in the order of the log. Return None when that is done, or the future of it.

        Raises KafkaError, from here or from the future, as a request of the coordinator is refused, or
        INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED if the log refuses the marker.
        """
        if self._is_unloaded:
            raise _MOVED.fresh()
        appended = self._writer.append_marker(marker)
        if isinstance(appended, int) and not self._pending:
            self._replay_marker(marker)
            return None
        write = _MarkerWrite(marker, self._loop.create_future())
        if isinstance(appended, int):
            write.base_offset = appended
        else:
            appended.add_done_callback(partial(self._append_ended, write))
        self._pending.append(write)
        return write.shown

    def _handle(self, key: str, event: Any) -> None:
        expired = event.timer if isinstance(event, TimerExpired) else None
        if expired is not None and not self._is_due(key, expired):
            return  # it was set again or cancelled while the event waited
        try:
            effects = self._driven.handle(key, event, self._clock.time_ms())
        except KafkaError as error:
            _complete(event, error)
            return
        self._carry_out(_Write(key, effects, expired))

    def _handle_queued(self, key: str, event: Any) -> None:
        """Handle an event that waited. No caller is there to catch a defect, and other events wait behind it."""
        try:
            self._handle(key, event)
        except Exception as defect:  # noqa: BLE001 - whatever it is, the events behind it must be handled
            self._log_defect("event failed", key, defect)
            _complete(event, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _carry_out(self, write: _Write) -> None:
        effects = write.effects
        if not effects.records:
            self._succeed(write)
            return
        try:
            appended = self._writer.append(effects.records, effects.producer, effects.verification)
        except KafkaError as error:
            self._fail(write, error)
            return
        if isinstance(appended, int):
            write.base_offset = appended
            if not self._pending:
                self._succeed(write)
                return
        else:
            appended.add_done_callback(partial(self._append_ended, write))
            write.limit = self._all_timers.call_at(
                self._all_timers.time() + self._append_timeout_ms / 1000, self._append_overdue, write
            )
        self._pending.append(write)
        self._queues.setdefault(write.key, deque())

    def _append_overdue(self, write: _Write) -> None:
        """Answer the requesters of this key: it takes too long until their records, or earlier ones, are committed."""
        _LOG.warning("records not committed yet", **{self._key_name: write.key})
        write.is_overdue = True
        write.limit = None
        self._overdue.add(write.key)
        self._refuse(write, _NOT_REPLICATED)
        queue = self._queues[write.key]
        for event in tuple(queue):
            if isinstance(event, Event):
                queue.remove(event)
                _complete(event, _NOT_REPLICATED)

    def _append_ended(self, write: _Write | _MarkerWrite, appended: asyncio.Future[int]) -> None:
        error = None if appended.cancelled() else appended.exception()
        if appended.cancelled() or self._is_unloaded:  # the error is read before: asyncio logs one that nobody has read
            return
        if error is None:
            write.base_offset = appended.result()
        else:
            self._pending.remove(write)
            if not isinstance(error, KafkaError):
                self._log_defect("append failed", "marker" if isinstance(write, _MarkerWrite) else write.key, error)
                error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._complete_pending(write, error)
        while self._pending and self._pending[0].base_offset is not None:
            self._complete_pending(self._pending.popleft())

    def _complete_pending(self, write: _Write | _MarkerWrite, error: KafkaError | None = None) -> None:
        """Complete a write that was pending, then handle the events that waited for it."""
        if isinstance(write, _MarkerWrite):
            self._complete_marker(write, error)
            return
        if write.limit is not None:
            write.limit.cancel()
        self._overdue.discard(write.key)
        queue = self._queues.pop(write.key)
        try:
            if error is None:
                self._succeed(write)
            else:
                self._fail(write, error)
        except Exception as defect:  # noqa: BLE001 - whatever it is, other keys must not wait for ever
            self._log_defect("event failed", write.key, defect)
            self._refuse(write, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        while queue and write.key not in self._queues:
            self._handle_queued(write.key, queue.popleft())
        if queue:
            self._queues[write.key].extend(queue)

    def _complete_marker(self, write: _MarkerWrite, error: KafkaError | None) -> None:
        if error is None:
            try:
                self._replay_marker(write.marker)
            except Exception as defect:  # noqa: BLE001 - whatever it is, the writes behind it must be completed
                self._log_defect("marker failed", "marker", defect)
                error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        _end_future(write.shown, error)

    def _replay_marker(self, marker: TransactionMarker) -> None:
        self.shard.replay_end_transaction_marker(marker.producer_id, committed=marker.committed)

    def _succeed(self, write: _Write) -> None:
        """Complete an event whose records, if it has any, are in the log."""
        key, effects, shard = write.key, write.effects, self._driven
        now_ms = self._clock.time_ms()
        if effects.replay_records and write.base_offset is not None:
            producer_id = NO_PRODUCER if effects.producer is None else effects.producer.producer_id
            for record_offset, record in enumerate(effects.records, write.base_offset):
                shard.replay(record, record_offset, now_ms, producer_id)
        shard.event_completed(key, effects, None)
        self._set_timers(key, effects.timers)
        if self.is_fenced:
            self._refuse(write, _MOVED)
        elif not write.is_overdue:
            for pending_reply, reply in effects.replies:
                pending_reply.complete(reply)
        for line in effects.log_lines:
            _LOG.info(line.event, **{self._key_name: key}, **line.fields)
        if effects.work is not None:
            self._run(effects.work).add_done_callback(partial(self._work_ended, key))
        self._follow_up(write, None)
        if effects.action is not None:
            effects.action(partial(self.submit, key))

    def _fail(self, write: _Write, error: KafkaError) -> None:
        """Complete an event whose records could not be written."""
        key, effects = write.key, write.effects
        _LOG.warning("records not written", **{self._key_name: key}, error=str(error))
        self._refuse(write, error)
        self._driven.event_completed(key, effects, error)
        if effects.survive_failure:
            self._set_timers(key, effects.timers)
        elif write.expired is not None:
            self._set_timers(key, {write.expired: TIMER_RETRY_MS})
        self._follow_up(write, error.code)

    def _follow_up(self, write: _Write, error: ErrorCode | None) -> None:
        follow_up = write.effects.follow_up
        if follow_up is not None:
            now_ms = self._clock.time_ms()
            self._carry_out(_Write(write.key, self._driven.append_completed(write.key, follow_up, error, now_ms)))

    @staticmethod
    def _refuse(write: _Write, error: KafkaError) -> None:
        for pending_reply, _ in write.effects.replies:
            pending_reply.complete(error)  # does nothing if it is complete

    def _work_ended(self, key: str, work: asyncio.Future[Any]) -> None:
        defect = None if work.cancelled() else work.exception()
        if work.cancelled() or self._is_unloaded:
            return
        if defect is not None:
            self._log_defect("work failed", key, defect)
        self.submit(key, WorkFailed() if defect is not None else work.result())

    def _set_timers(self, key: str, delays_ms: dict[TimerKey, int | None]) -> None:
        timers = self._timers.get(key)
        if key not in self.shard:
            if timers is not None:
                timers.cancel_all()
                del self._timers[key]
            return
        if timers is None:
            if not delays_ms:
                return
            timers = self._timers[key] = KeyTimers(self._all_timers, partial(self._timer_expired, key))
        for timer, delay_ms in delays_ms.items():
            if delay_ms is None:
                timers.cancel(timer)
            else:
                timers.set(timer, delay_ms)

    def _is_due(self, key: str, timer: TimerKey) -> bool:
        timers = self._timers.get(key)
        return timers is not None and timers.take_due(timer)

    def _timer_expired(self, key: str, timer: TimerKey) -> None:
        self.submit(key, TimerExpired(timer))

    def _log_defect(self, event: str, key: str, defect: BaseException) -> None:
        _LOG.exception(event, defect, **{self._key_name: key})


def _complete(event: Any, error: KafkaError) -> None:
    if isinstance(event, Event):
        event.pending_reply.complete(error)


def _end_future(future: asyncio.Future[None], error: KafkaError | None) -> None:
    if future.done():  # it is cancelled when the request that waits for it ends
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
