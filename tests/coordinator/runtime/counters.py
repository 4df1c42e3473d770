"""A coordinator of counters, one for each key, in an internal topic of its own: as small as one can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from odradek.broker.coordinator.runtime.coordinator_shard import NO_PRODUCER
from odradek.broker.coordinator.runtime.events import Effects, Event, TimerExpired, TimerKey, WorkFailed
from odradek.broker.coordinator.runtime.internal_topic import InternalTopic
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Message, binary, i32, message, string
from odradek.protocol.stored_records.record_types import StoredRecord

REMINDER: TimerKey = ("reminder", "")


@message(versions=(0, 0))
class CounterKey(Message):
    """Record type 0."""

    name: string = ""


@message(versions=(0, 0))
class CounterValue(Message):
    """The count; also the reply to `Add`. `padding` makes a record large."""

    count: i32 = 0
    padding: binary = b""


TOPIC = InternalTopic(
    "__counters",
    {0: StoredRecord(CounterKey, CounterValue)},
    partitions_count=1,
    replication_factor=1,
    configs={"cleanup.policy": "compact", "max.message.bytes": "300000"},
)


def counter_record(name: str, count: int | None, padding: bytes = b"") -> CoordinatorRecord:
    """Return the record of a count; None for the tombstone."""
    return CoordinatorRecord(0, CounterKey(name), None if count is None else CounterValue(count, padding))


class Add(Event, frozen=True):
    """Adds `amount` and replies with the sum; 0 only reads. `effects` are more fields of the effects."""

    amount: int
    padding: bytes = b""
    effects: Mapping[str, Any] = MappingProxyType({})


class Delete(Event, frozen=True):
    """Deletes the counter."""


class Break(Event, frozen=True):
    """Is a defect: raises an exception that is no KafkaError."""


class Computed(msgspec.Struct, frozen=True):
    """The result of work in a thread."""

    amount: int


class Counters:
    """The counters of one partition, and what the runtime called: `replayed` has the records in order."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.replayed: list[tuple[str, int | None]] = []
        self.expired: list[TimerKey] = []
        self.on_expired: Callable[[], None] = lambda: None
        self.completed: list[tuple[str, ErrorCode | None]] = []
        self.append_ends: list[tuple[Any, ErrorCode | None]] = []
        self.failed_works = 0
        self.refuse_when_busy: KafkaError | None = None
        self._pending: dict[int, list[CoordinatorRecord]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.counts

    def handle(self, key: str, event: Any, now_ms: int) -> Effects:
        match event:
            case Add():
                count = self.counts.get(key, 0) + event.amount
                if count < 0:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "a counter is never negative")
                records = [counter_record(key, count, event.padding)] if event.amount else []
                return Effects(replies=[(event.pending_reply, CounterValue(count))], records=records, **event.effects)
            case Delete():
                return Effects(replies=[(event.pending_reply, CounterValue(0))], records=[counter_record(key, None)])
            case TimerExpired():
                self.expired.append(event.timer)
                self.on_expired()
                return Effects(records=[counter_record(key, self.counts[key] + 1000)])
            case Computed():
                return Effects(records=[counter_record(key, self.counts[key] + event.amount)])
            case WorkFailed():
                self.failed_works += 1
                return Effects()
        raise ZeroDivisionError

    def busy_error(self, key: str, event: Event) -> KafkaError | None:
        return self.refuse_when_busy

    def replay(
        self, record: CoordinatorRecord, record_offset: int, now_ms: int, producer_id: int = NO_PRODUCER
    ) -> None:
        if producer_id != NO_PRODUCER:
            self._pending.setdefault(producer_id, []).append(record)
            return
        name, count = getattr(record.key, "name"), getattr(record.value, "count", None)  # noqa: B009 - see `Message`
        if count is None:
            self.counts.pop(name, None)
        elif count < 0:
            raise ValueError("a counter is never negative")
        else:
            self.counts[name] = count
        self.replayed.append((name, count))

    def replay_end_transaction_marker(self, producer_id: int, *, committed: bool) -> None:
        for record in self._pending.pop(producer_id, []):
            if committed:
                self.replay(record, 0, 0)

    def event_completed(self, key: str, effects: Effects, error: KafkaError | None) -> None:
        self.completed.append((key, None if error is None else error.code))

    def append_completed(self, key: str, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        self.append_ends.append((follow_up, error))
        return Effects(records=[counter_record(key, self.counts[key] + 100)]) if error is None else Effects()

    def loaded(self, now_ms: int) -> Iterator[tuple[str, Effects]]:
        for key in self.counts:
            yield key, Effects(timers={REMINDER: 60_000})

    def unloaded(self) -> Iterator[Effects]:
        yield from ()
