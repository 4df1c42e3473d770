"""The events that a coordinator's state machines handle, and the effects that they return.

```
            event, now                        effects
request ─────────────────► state machine ────────────────┬─ records ─► log ─► replay(record), append_completed
timer   ─────────────────► (pure: no I/O,                ├─ timers ──► later a TimerExpired event
work    ─────────────────►  no clock, no asyncio)        ├─ replies ─► sent when the records are in the log
result  ─────────────────►                               ├─ work ────► runs in a thread; its result is an event
                                                         └─ action ──► runs on the event loop; may submit events
```

Times are wall-clock milliseconds, delays milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.storage.producers.verification_state import Verification
from odradek.protocol.errors import KafkaError
from odradek.protocol.schema import Structure

if TYPE_CHECKING:
    import asyncio

TimerKey = tuple[str, str]
"""The kind of a timer, and the part of the state that it is for, such as a member ("" for the whole)."""

Reply = Structure | KafkaError
"""A response, or the part of one that belongs to one key; or the error that the response is made of."""


class PendingReply:
    """The reply that a request waits for. State machines only keep it, and put it into their effects."""

    __slots__ = ("_future", "_reply")

    def __init__(self) -> None:
        self._reply: Reply | None = None
        self._future: asyncio.Future[Structure] | None = None

    def complete(self, reply: Reply) -> None:
        """Set the reply. Called by the runtime, when the records of the same effects are in the log."""
        if isinstance(reply, KafkaError):
            reply = reply.fresh()
        if self._future is None:
            self._reply = reply
        elif not self._future.done():  # it is cancelled when the client disconnects
            if isinstance(reply, KafkaError):
                self._future.set_exception(reply)
            else:
                self._future.set_result(reply)

    def result(self, create_future: Callable[[], asyncio.Future[Structure]]) -> Structure | asyncio.Future[Structure]:
        """Return the reply, or the future of it. Raises KafkaError if that is the reply."""
        if self._reply is None:
            self._future = create_future()
            return self._future
        if isinstance(self._reply, KafkaError):
            raise self._reply.fresh()
        return self._reply


class Event(msgspec.Struct, frozen=True):
    """An event that a request waits for."""

    pending_reply: PendingReply


class TimerExpired(msgspec.Struct, frozen=True):
    """A timer has expired that earlier effects set, and that was not set again since."""

    timer: TimerKey


class WorkFailed(msgspec.Struct, frozen=True):
    """`Effects.work` raised an exception. The event instead of the one that it was to return."""


class ProducerIdAndEpoch(NamedTuple):
    """The producer of a client's transaction."""

    producer_id: int
    producer_epoch: int


class LogLine(msgspec.Struct, frozen=True):
    """A line for the broker's log."""

    event: str
    fields: dict[str, Any] = {}


class Effects(msgspec.Struct):
    """The effects of an event: Kafka's `CoordinatorResult`, with timers.

    - `replies`: sent when the records are in the log; all become the error if they cannot be written.
    - `records`: appended to the log as one batch, then replayed, unless `replay_records` is false: then the state
      machine changed its state before the append (Kafka's classic groups do, too).
    - `timers`: a delay in ms sets a timer or moves it, None cancels it.
    - `log_lines`: logged when the records are in the log.
    - `follow_up`: passed to `append_completed` when the append has ended, either way.
    - `work`: a function that takes long. It runs in a thread and returns the next event for this key.
    - `producer`: the records belong to its open transaction; they count when its commit marker has been written.
      `verification` is the proof that it is open (`storage.producers.verification_state`), None if none is needed.
    - `action`: a function that starts something outside, such as requests to other partitions. It runs on the event
      loop after everything else, and gets a function that submits an event to this key. What it submits before it
      returns is handled in the same turn of the loop, before events that waited.
    """

    replies: list[tuple[PendingReply, Reply]] = []
    records: list[CoordinatorRecord] = []
    timers: dict[TimerKey, int | None] = {}
    log_lines: list[LogLine] = []
    follow_up: Any = None
    replay_records: bool = True
    work: Callable[[], Any] | None = None
    producer: ProducerIdAndEpoch | None = None
    verification: Verification | None = None
    action: Callable[[Callable[[Any], None]], None] | None = None

    @property
    def survive_failure(self) -> bool:
        """Whether the change stays in the state, so that its timers are needed, if the records cannot be written."""
        return not self.replay_records
