"""Transcripts of one transactional id: the events of a script, and the effects of each.

```
# A comment. The first line says what the script shows.
feature 2                                   the finalized transaction.version
> init timeout=60000                        an event
reply 1000:0                                the reply: an id with an epoch, OK, or an error
record v1 Empty 1000:0 previous=1000        the record to append: version of the value, and the fields in the log
state Empty 1000:0                          the state after it, with the fields that are not in the log
markers commit 1000:1 version=2 t-0,t-1     the markers to send
```

| event | arguments |
|---|---|
| init | `timeout`, `expected=ID:EPOCH` |
| add ID:EPOCH PARTITIONS | `version` of the protocol, 0 (of clients of version 1, too) or 2 |
| end commit or abort, ID:EPOCH | `version` |
| verify ID:EPOCH PARTITIONS | |
| written, refused | the markers, of the last decision or of `ID:EPOCH` |
| timeouts, expire, wait MS | |
| stored | the record of an event with `hold` is in the log (or: `stored ERROR`) |
| load | makes a new shard of the last record, as a starting broker does |
| epoch N | the id is as it would be after many transactions: the next record has this epoch |

An event that needs a new producer id gets the next one: 1000, 2000, …; with `stale` it gets none. `UPDATE_SCRIPTS=1`
writes the effects into the file, to be reviewed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from odradek.broker.coordinator.runtime.events import Effects, Event, PendingReply, ProducerIdAndEpoch, Reply
from odradek.broker.coordinator.runtime.records import CoordinatorRecord, decode_record, encode_record
from odradek.broker.coordinator.transactions import events
from odradek.broker.coordinator.transactions.stored_transaction import record_of, transaction_of
from odradek.broker.coordinator.transactions.transaction import (
    NO_PRODUCER_ID,
    Status,
    TopicPartition,
    Transaction,
    check_partitions,
)
from odradek.broker.coordinator.transactions.transaction_shard import TransactionShard
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored_records.record_types import TRANSACTION_RECORDS

ID = "t"
START_MS = 1_000_000
Arguments = dict[str, str]


class TransactionTranscript:
    """One run: `play` takes the lines of a script and yields the whole transcript."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.feature = 2
        self.lines: list[str] = []
        self.new_id = 0
        self.shard = self._new_shard()
        self.held: Effects | None = None
        self.last_record: CoordinatorRecord | None = None
        self.shown: Transaction | None = None

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(lambda: self.feature, self._send_markers, self._complete_again)

    def play(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            if not line or line.startswith("#"):
                yield line
            elif line.startswith("feature"):
                yield line
                self.feature = int(line.split()[1])
            elif line.startswith(">"):
                yield line
                word, *rest = line[1:].split()
                getattr(self, f"_{word}")(*rest)
                self._show()
                yield from self.lines
                self.lines.clear()

    @property
    def state(self) -> Transaction | None:
        return self.shard.transactions.get(ID)

    # ---------------------------------------------------------------------------------------------------------- events

    def _init(self, *rest: str) -> None:
        words, arguments = _arguments(rest)
        expected = _producer(arguments["expected"]) if "expected" in arguments else None
        needs = self.state is None or self.state.is_exhausted
        new_id = self._take_id(words) if needs else NO_PRODUCER_ID
        timeout_ms = int(arguments.get("timeout", 60_000))
        self._submit(events.InitProducerId(PendingReply(), timeout_ms, expected, new_id), words)

    def _add(self, producer: str, partitions: str, *rest: str) -> None:
        words, arguments = _arguments(rest)
        version = int(arguments.get("version", self.feature // 2 * 2))
        self._submit(
            events.AddPartitions(PendingReply(), *_producer(producer), _partitions(partitions), version), words
        )

    def _end(self, end: str, producer: str, *rest: str) -> None:
        words, arguments = _arguments(rest)
        version = int(arguments.get("version", self.feature // 2 * 2))
        needs = version == 2 and self.state is not None and self.state.is_exhausted
        new_id = self._take_id(words) if needs else NO_PRODUCER_ID
        self._submit(
            events.EndTransaction(PendingReply(), *_producer(producer), end == "commit", version, new_id), words
        )

    def _verify(self, producer: str, partitions: str) -> None:
        wanted = sorted(_partitions(partitions))
        try:
            errors = check_partitions(self.state, *_producer(producer), wanted)
        except KafkaError as error:
            self.lines.append(f"reply {error.code.name}")
        else:
            self.lines += [f"reply {topic}-{index} {_reply(errors[topic, index])}" for topic, index in wanted]

    def _written(self, *rest: str) -> None:
        self._submit(events.MarkersWritten(*self._decided(rest)), list(rest))

    def _refused(self, *rest: str) -> None:
        self._submit(events.MarkersRefused(*self._decided(rest)), list(rest))

    def _decided(self, rest: tuple[str, ...]) -> ProducerIdAndEpoch:
        words, _ = _arguments(rest)
        producers = [word for word in words if ":" in word]
        if producers:
            return _producer(producers[0])
        assert self.state is not None
        return ProducerIdAndEpoch(self.state.producer_id, self.state.producer_epoch)

    def _timeouts(self, *rest: str) -> None:
        needs = self.state is not None and self.state.is_exhausted
        new_id = self._take_id(list(rest)) if needs else NO_PRODUCER_ID
        self._submit(events.AbortTimedOut(lambda: None, new_id), list(rest))

    def _expire(self, expiration_ms: str, *rest: str) -> None:
        self._submit(events.Expire(int(expiration_ms)), list(rest))

    def _wait(self, milliseconds: str) -> None:
        self.now_ms += int(milliseconds)

    def _stored(self, error: str | None = None) -> None:
        held, self.held = self.held, None
        assert held is not None
        self._end_append(held, None if error is None else KafkaError(ErrorCode[error]))

    def _load(self) -> None:
        self.shard, self.shown = self._new_shard(), None
        if self.last_record is not None:
            decoded = decode_record(TRANSACTION_RECORDS, *encode_record(self.last_record))
            assert decoded is not None
            self.shard.replay(decoded, 0, self.now_ms)
        for _, effects in self.shard.loaded(self.now_ms):
            self._happened(effects)

    def _epoch(self, epoch: str) -> None:
        assert self.state is not None
        self.last_record = record_of(ID, replace(self.state, producer_epoch=int(epoch)), self.feature)
        self.shard.replay(self.last_record, 0, self.now_ms)

    # --------------------------------------------------------------------------------------------------------- effects

    def _submit(self, event: Any, words: list[str]) -> None:
        if self.held is not None:
            assert isinstance(event, Event)
            busy = self.shard.busy_error(ID, event)
            self.lines.append(f"reply {'waits' if busy is None else busy.code.name}")
            return
        try:
            effects = self.shard.handle(ID, event, self.now_ms)
        except KafkaError as error:
            self.lines.append(f"reply {error.code.name}")
            return
        self._happened(effects, hold="hold" in words)

    def _happened(self, effects: Effects, *, hold: bool = False) -> None:
        self.lines += [_record(record) for record in effects.records]
        if hold:
            self.held = effects
        else:
            self._end_append(effects, None)

    def _end_append(self, effects: Effects, error: KafkaError | None) -> None:
        """Do what the runtime does when the append has ended."""
        if error is None:
            for record in effects.records:
                self.shard.replay(record, 0, self.now_ms)
                self.last_record = record
        self.shard.event_completed(ID, effects, error)
        for _, reply in effects.replies:
            self.lines.append(f"reply {_reply(reply if error is None else error)}")
        self._show()
        if effects.follow_up is not None:
            code = None if error is None else error.code
            self._happened(self.shard.append_completed(ID, effects.follow_up, code, self.now_ms))
        if error is None and effects.action is not None:
            effects.action(lambda event: self._submit(event, []))

    def _send_markers(self, transactional_id: str, state: Transaction, submit: Callable[[Any], None]) -> None:
        assert transactional_id == ID
        end = "commit" if state.status is Status.PREPARE_COMMIT else "abort"
        producer = f"{state.producer_id}:{state.producer_epoch}"
        self.lines.append(
            f"markers {end} {producer} version={state.client_version} {_names(state.partitions)}".rstrip()
        )

    def _complete_again(self, event: Any, submit: Callable[[Any], None]) -> None:
        self.lines.append(f"again {type(event).__name__}")

    def _show(self) -> None:
        if self.state == self.shown:
            return
        self.shown = state = self.state
        if state is None:
            self.lines.append("state none")
            return
        text = f"state {state.status.label} {state.producer_id}:{state.producer_epoch}"
        if state.last_producer_epoch >= 0:
            text += f" last={state.last_producer_epoch}"
        if state.status is Status.ONGOING:
            text += " open" if ID in self.shard.open else " not open"
        self.lines.append(text)

    def _take_id(self, words: list[str]) -> int:
        if "stale" in words:
            return NO_PRODUCER_ID
        self.new_id += 1000
        return self.new_id


def _record(record: CoordinatorRecord) -> str:
    if record.value is None:
        return "record tombstone"
    state = transaction_of(record.value)
    text = f"record v{record.value_version} {state.status.label} {state.producer_id}:{state.producer_epoch}"
    if state.previous_producer_id >= 0:
        text += f" previous={state.previous_producer_id}"
    if state.next_producer_id >= 0:
        text += f" next={state.next_producer_id}"
    if state.client_version:
        text += f" client={state.client_version}"
    if getattr(record.value, "transaction_partitions") is None:  # noqa: B009 - see `Message`
        text += " null"
    text += f" {_names(state.partitions)}" if state.partitions else ""
    start = state.start_ms if state.start_ms < 0 else state.start_ms - START_MS
    return f"{text} timeout={state.timeout_ms} start={start} update={state.update_ms - START_MS}"


def _reply(reply: Reply | None) -> str:
    if isinstance(reply, KafkaError):
        return reply.code.name
    producer_id = getattr(reply, "producer_id", None)
    return "OK" if producer_id is None else f"{producer_id}:{getattr(reply, 'producer_epoch')}"  # noqa: B009


def _names(partitions: frozenset[TopicPartition]) -> str:
    return ",".join(f"{topic}-{index}" for topic, index in sorted(partitions))


def _partitions(text: str) -> frozenset[TopicPartition]:
    pairs = [name.rsplit("-", 1) for name in text.split(",")]
    return frozenset((topic, int(index)) for topic, index in pairs)


def _producer(text: str) -> ProducerIdAndEpoch:
    producer_id, epoch = text.split(":")
    return ProducerIdAndEpoch(int(producer_id), int(epoch))


def _arguments(words: tuple[str, ...]) -> tuple[list[str], Arguments]:
    plain = [word for word in words if "=" not in word]
    return plain, dict(word.split("=", 1) for word in words if "=" in word)
