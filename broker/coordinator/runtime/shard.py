"""The groups of one partition of `__consumer_offsets` at work: events in, records into the log, replies and timers out.

```
submit(group, event) ─► group busy? wait in its queue
                        no: handle ─► effects ─┬─ records ─► append ─┬─ ended, none pending before ───► finish
                                               │                     └─ else pending, group is busy ──► finish, queue
                                               └─ none ──────────────────────────────────────────────► finish
finish: replay the records ─► set timers ─► give replies ─► follow-up, if there is one: `stored`, whose effects go the
        same way
```

A group handles one event at a time. Records are replayed in the order of the log, whichever group they are of: an
append that has ended stays pending until all earlier ones have ended. On a single broker a small append ends at once;
the queues are for large ones, flushes and replicas. They are bounded by the connections, which wait for one answer
each. Used on the event loop only, by `odradek.broker.coordinator.group_coordinator`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from odradek.broker.clock import Clock
from odradek.broker.coordinator.group_type import (
    Effects,
    Event,
    Group,
    MetadataChanged,
    TimerExpired,
    TimerKey,
    WorkFailed,
)
from odradek.broker.coordinator.offsets.events import OffsetEvent, Situation
from odradek.broker.coordinator.partition_state import PartitionState
from odradek.broker.coordinator.runtime.internal_topic import CoordinatorLog
from odradek.broker.coordinator.runtime.timers import GroupTimers
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = StructuredLogger("odradek.broker.coordinator.classic_group.group")

TIMER_RETRY_MS = 500
"""After which a timer expires again whose records could not be written, as in Kafka."""


class _Write:
    """Records that were given to the log, and what is to happen when they are in it (`base_offset` is their place)."""

    __slots__ = ("base_offset", "effects", "group", "group_id")

    def __init__(self, group_id: str, group: Group | None, effects: Effects, base_offset: int | None) -> None:
        self.group_id = group_id
        self.group = group
        self.effects = effects
        self.base_offset = base_offset


class Shard:
    """One loaded partition; `run` runs a function in a thread.

    After `unload` nothing comes of what is still on its way but errors.
    """

    def __init__(
        self,
        state: PartitionState,
        log: CoordinatorLog,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        run: Callable[[Callable[[], Any]], asyncio.Future[Any]],
    ) -> None:
        self.state = state
        self.log = log
        self._clock = clock
        self._loop = loop
        self._run = run
        self._queues: dict[str, deque[Any]] = {}  # of the groups that are busy
        self._writes: deque[_Write] = deque()  # that were not replayed yet, in the order of the log
        self._timers: dict[str, GroupTimers] = {}
        self._is_unloaded = False

    def start(self) -> None:
        """Let the loaded groups set their timers."""
        now_ms = self._clock.time_ms()
        for group in tuple(self.state.groups.values()):
            self._carry_out(group, group.loaded(now_ms))

    def unload(self) -> None:
        """Answer everybody who waits that the coordinator is not here any more."""
        self._is_unloaded = True
        for group in self.state.groups.values():
            for pending_reply, reply in group.unloaded().replies:
                pending_reply.complete(reply)
        for timers in self._timers.values():
            timers.cancel_all()
        moved = KafkaError(ErrorCode.NOT_COORDINATOR, "the partition moved")
        while self._writes:
            for pending_reply, _ in self._writes.popleft().effects.replies:
                pending_reply.complete(moved)
        for queue in self._queues.values():
            for event in queue:
                if isinstance(event, Event):
                    event.pending_reply.complete(
                        KafkaError(ErrorCode.NOT_COORDINATOR, "the group moves to another broker")
                    )
            queue.clear()

    def submit(self, group_id: str, event: Any) -> None:
        """Let an event happen to the group: now, or when what happens to it now is over.

        Events without a pending reply are TimerExpired, MetadataChanged, WorkFailed, and what `Effects.work` returned.
        """
        queue = self._queues.get(group_id)
        if self._is_unloaded:
            if isinstance(event, Event):
                event.pending_reply.complete(KafkaError(ErrorCode.NOT_COORDINATOR, "the partition moved"))
        elif queue is None:
            self._happen(group_id, event)
        else:
            queue.append(event)

    def _happen(self, group_id: str, event: Any) -> None:
        try:
            group, effects = self._effects(group_id, event)
        except KafkaError as error:
            if isinstance(event, Event):
                event.pending_reply.complete(error)
            return
        if isinstance(event, TimerExpired):
            effects.expired = event.key
        self._carry_out(group, effects, group_id)

    def _happen_late(self, group_id: str, event: Any) -> None:
        """Let an event happen that waited: no request is there to hear of a defect, and other events wait behind it."""
        try:
            self._happen(group_id, event)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not take the others along
            _LOG.exception("event failed", error, group=group_id)
            if isinstance(event, Event):
                event.pending_reply.complete(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _effects(self, group_id: str, event: Any) -> tuple[Group | None, Effects]:
        now_ms = self._clock.time_ms()
        group = self.state.groups.get(group_id)
        if isinstance(event, OffsetEvent):
            return group, event.effects(Situation(group_id, group, self.state.offsets, now_ms))
        if isinstance(event, MetadataChanged):
            if group is None:
                return None, Effects()
            return group, group.metadata_changed(event.topics, event.has_new_topics, now_ms)
        if isinstance(event, TimerExpired) and not self._is_due(group_id, event.key):
            return group, Effects()  # it was moved or cancelled while the event waited
        if not isinstance(event, Event):
            return group, Effects() if group is None else group.handle(event, now_ms)
        before = []
        if group is None or (group.is_empty and group.group_type != event.creates):
            if group is not None:
                before = group.tombstones()
            group = self.state.new_group(event.creates, group_id, now_ms)
            if group is None:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there are no {event.creates} groups here")
        effects = group.handle(event, now_ms)
        if before and effects.records:
            effects.records = [*before, *effects.records]
        return group, effects

    def _carry_out(self, group: Group | None, effects: Effects, group_id: str = "") -> None:
        group_id = group_id or ("" if group is None else group.group_id)
        if not effects.records:
            self._finish(group_id, group, effects)
            return
        try:
            appended = self.log.append(effects.records)
        except KafkaError as error:
            self._fail(group_id, group, effects, error)
            return
        if isinstance(appended, int) and not self._writes:
            self._finish(group_id, group, effects, appended)
            return
        write = _Write(group_id, group, effects, appended if isinstance(appended, int) else None)
        self._writes.append(write)
        self._queues.setdefault(group_id, deque())
        if not isinstance(appended, int):
            appended.add_done_callback(partial(self._appended, write))

    def _appended(self, write: _Write, appended: asyncio.Future[int]) -> None:
        if appended.cancelled() or self._is_unloaded:
            return
        error = appended.exception()
        if error is None:
            write.base_offset = appended.result()
        else:
            self._writes.remove(write)
            if not isinstance(error, KafkaError):
                _LOG.exception("append failed", error, group=write.group_id)
                error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._end(write, error)
        while self._writes and self._writes[0].base_offset is not None:
            self._end(self._writes.popleft())

    def _end(self, write: _Write, error: KafkaError | None = None) -> None:
        """Finish a write that was pending, or fail it, and let the events happen that waited for it."""
        group_id, group, effects = write.group_id, write.group, write.effects
        queue = self._queues.pop(group_id)
        try:
            if error is not None:
                self._fail(group_id, group, effects, error)
            else:
                assert write.base_offset is not None
                self._finish(group_id, group, effects, write.base_offset)
        except Exception as defect:  # noqa: BLE001 - whatever it is, it must not keep other groups waiting
            _LOG.exception("event failed", defect, group=group_id)
            for pending_reply, _ in effects.replies:
                pending_reply.complete(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        while queue and group_id not in self._queues:
            self._happen_late(group_id, queue.popleft())
        if queue:
            self._queues[group_id].extend(queue)

    def _finish(self, group_id: str, group: Group | None, effects: Effects, base_offset: int = -1) -> None:
        """Let everything else happen that the effects say, now that their records are in the log."""
        candidate = effects.become or group
        if effects.is_applied:
            if candidate is not None and (effects.records or effects.become):
                self.state.groups[group_id] = candidate
        else:
            now_ms = self._clock.time_ms()
            for record_offset, record in enumerate(effects.records, base_offset):
                self.state.replay(record, record_offset, now_ms, candidate=candidate)
        self._set_timers(group_id, effects)
        for pending_reply, reply in effects.replies:
            pending_reply.complete(reply)
        for line in effects.log_lines:
            _LOG.info(line.event, group=group_id, **line.fields)
        if effects.work is not None:
            self._run(effects.work).add_done_callback(partial(self._worked, group_id))
        if effects.follow_up is not None and group is not None:
            self._carry_out(group, group.stored(effects.follow_up, None, self._clock.time_ms()))

    def _worked(self, group_id: str, work: asyncio.Future[Any]) -> None:
        if work.cancelled() or self._is_unloaded:
            return
        error = work.exception()
        if error is not None:
            _LOG.exception("work for a group failed", error, group=group_id)
        self.submit(group_id, WorkFailed() if error is not None else work.result())

    def _fail(self, group_id: str, group: Group | None, effects: Effects, error: KafkaError) -> None:
        """Tell everybody concerned that the records could not be written."""
        _LOG.warning("records not written", group=group_id, error=str(error))
        for pending_reply, _ in effects.replies:
            pending_reply.complete(error)
        if effects.is_applied and effects.become is None:
            if group is not None:
                self.state.groups[group_id] = group
            self._set_timers(group_id, effects)
        elif effects.expired is not None:
            self._set_timers(group_id, Effects(timers={effects.expired: TIMER_RETRY_MS}))
        if effects.follow_up is not None and group is not None:
            self._carry_out(group, group.stored(effects.follow_up, error.code, self._clock.time_ms()))

    def _set_timers(self, group_id: str, effects: Effects) -> None:
        if group_id not in self.state.groups:
            timers = self._timers.pop(group_id, None)
            if timers is not None:
                timers.cancel_all()
            return
        if effects.timers:
            timers = self._timers.get(group_id)
            if timers is None:
                timers = self._timers[group_id] = GroupTimers(self._loop, partial(self._timer_expired, group_id))
            for key, delay_ms in effects.timers.items():
                if delay_ms is None:
                    timers.cancel(key)
                else:
                    timers.set(key, delay_ms)

    def _is_due(self, group_id: str, key: TimerKey) -> bool:
        timers = self._timers.get(group_id)
        return timers is not None and timers.take_due(key)

    def _timer_expired(self, group_id: str, key: TimerKey) -> None:
        self.submit(group_id, TimerExpired(key))
