"""The transactional ids of one partition of `__transaction_state`.

```
request ─► transition ─► record ─► replayed: the new state ─► reply
                                   Prepare*: markers are sent ─► MarkersWritten ─► Complete*
```

While a record of an id is being written, its requests are answered CONCURRENT_TRANSACTIONS; EndTxn before version 5
checks id and epoch before that. The answer to EndTxn is sent as soon as the decision is in the log. A partition that is
loaded with decided transactions sends their markers, all of them: it does not know which were written, and a second
marker changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from odradek.broker.coordinator.runtime.coordinator_shard import NO_PRODUCER
from odradek.broker.coordinator.runtime.events import Effects, Event, PendingReply, Reply
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.coordinator.transactions import events, transaction
from odradek.broker.coordinator.transactions.end_transaction import end
from odradek.broker.coordinator.transactions.stored_transaction import record_of, tombstone_of, transaction_of
from odradek.broker.coordinator.transactions.transaction import (
    FIRST_VERSION_WITH_EPOCH_BUMPS,
    PREPARED,
    Status,
    Transaction,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from odradek.protocol.messages.end_txn import EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdResponse

SendMarkers = Callable[[str, Transaction, Callable[[Any], None]], None]
"""Sends the markers of a decided transaction, and submits MarkersWritten or MarkersRefused when that has ended."""

CompleteAgain = Callable[[Any, Callable[[Any], None]], None]
"""Submits the event again after a while: its record could not be written."""


class TransactionShard:
    """The states by transactional id; a `CoordinatorShard`.

    `transaction_version` returns the finalized level of that feature.
    """

    def __init__(
        self, transaction_version: Callable[[], int], send_markers: SendMarkers, complete_again: CompleteAgain
    ) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.open: dict[str, None] = {}  # the ids with an open transaction, in order
        self._transaction_version = transaction_version
        self._send_markers = send_markers
        self._complete_again = complete_again

    def __contains__(self, transactional_id: str) -> bool:
        return transactional_id in self.transactions

    # ---------------------------------------------------------------------------------------------------------- events

    def handle(self, transactional_id: str, event: Any, now_ms: int) -> Effects:
        before = self.transactions.get(transactional_id)
        match event:
            case events.InitProducerId():
                return self._initialize(transactional_id, before, event, now_ms)
            case events.AddPartitions():
                return self._add(transactional_id, before, event, now_ms)
            case events.EndTransaction():
                return self._end(transactional_id, before, event, now_ms)
        if before is None:
            return Effects()
        match event:
            case events.AbortTimedOut() if before.is_timed_out(now_ms):
                after = transaction.fence(before, self._transaction_version(), event.new_producer_id, now_ms)
                effects = self._transition(transactional_id, after)
                effects.action = partial(self._abort_timed_out, event.decided, transactional_id, after)
                return effects
            case events.Expire() if before.is_expired(now_ms, event.expiration_ms):
                return Effects(records=[tombstone_of(transactional_id)])
            case events.MarkersWritten() if _is_of(event, before):
                effects = self._transition(transactional_id, transaction.complete(before, now_ms))
                effects.follow_up = event
                return effects
            case events.MarkersRefused() if _is_of(event, before):
                self.transactions[transactional_id] = replace(before, is_completing=False)
        return Effects()

    def busy_error(self, transactional_id: str, event: Event) -> KafkaError | None:
        """Return CONCURRENT_TRANSACTIONS, or what EndTxn before version 5 checks first."""
        if isinstance(event, events.EndTransaction):
            try:
                self._end_of(self.transactions.get(transactional_id), event, 0, is_busy=True)
            except KafkaError as error:
                return error
        return KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "a record of the transactional id is being written")

    def _initialize(
        self, transactional_id: str, before: Transaction | None, event: events.InitProducerId, now_ms: int
    ) -> Effects:
        version = self._transaction_version()
        after = transaction.initialize(before, event.timeout_ms, event.expected, event.new_producer_id, version, now_ms)
        reply: Reply = InitProducerIdResponse(producer_id=after.producer_id, producer_epoch=after.producer_epoch)
        if after.status is Status.PREPARE_ABORT:
            reply = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the open transaction is aborted first")
        return self._transition(transactional_id, after, event.pending_reply, reply)

    def _add(
        self, transactional_id: str, before: Transaction | None, event: events.AddPartitions, now_ms: int
    ) -> Effects:
        if before is not None and before.is_completing:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the previous transaction is being completed")
        current = transaction.check_producer(before, event.producer_id, event.producer_epoch)
        after = transaction.add_partitions(current, event.partitions, event.version, now_ms)
        if after is None:
            return Effects(replies=[(event.pending_reply, AddPartitionsToTxnResult())])
        self._check_can_store(event.version)
        return self._transition(transactional_id, after, event.pending_reply, AddPartitionsToTxnResult())

    def _end(
        self, transactional_id: str, before: Transaction | None, event: events.EndTransaction, now_ms: int
    ) -> Effects:
        after = self._end_of(before, event, now_ms)
        if after is None:
            assert before is not None
            return Effects(replies=[(event.pending_reply, _end_reply(before))])
        self._check_can_store(event.version)
        # The producer goes on with the id and epoch of the completed transaction, which may be those of a rotation.
        reply = _end_reply(transaction.complete(after, now_ms))
        return self._transition(transactional_id, after, event.pending_reply, reply)

    def _check_can_store(self, version: int) -> None:
        """Check that the producer's version of the protocol has a place in a record. Raises KafkaError.

        Records of level 0 of the feature have none (`stored_transaction`), and a producer that knows the level does
        not use version 2.
        """
        if version >= FIRST_VERSION_WITH_EPOCH_BUMPS and self._transaction_version() == 0:
            # Differs from Kafka: the next request gets the same answer. Kafka answers this one alike, because it fails
            # to write the record, and any later one of the id CONCURRENT_TRANSACTIONS until the coordinator moves.
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "transaction.version is 0")

    def _end_of(
        self, before: Transaction | None, event: events.EndTransaction, now_ms: int, *, is_busy: bool = False
    ) -> Transaction | None:
        return end(
            before,
            event.producer_id,
            event.producer_epoch,
            is_commit=event.is_commit,
            version=event.version,
            new_producer_id=event.new_producer_id,
            now_ms=now_ms,
            is_busy=is_busy,
        )

    def _abort_timed_out(
        self, decided: Callable[[], None], transactional_id: str, after: Transaction, submit: Callable[[Any], None]
    ) -> None:
        decided()
        self._send_markers(transactional_id, after, submit)

    def _transition(
        self,
        transactional_id: str,
        after: Transaction,
        pending_reply: PendingReply | None = None,
        reply: Reply | None = None,
    ) -> events.Transition:
        effects = events.Transition(
            after=after, records=[record_of(transactional_id, after, self._transaction_version())]
        )
        if pending_reply is not None and reply is not None:
            effects.replies = [(pending_reply, reply)]
        if after.status in PREPARED:
            effects.action = partial(self._send_markers, transactional_id, after)
        return effects

    # --------------------------------------------------------------------------------------------------------- records

    def replay(
        self,
        record: CoordinatorRecord,
        record_offset: int,  # noqa: ARG002 - the last record of an id is valid, wherever it is
        now_ms: int,  # noqa: ARG002
        producer_id: int = NO_PRODUCER,  # noqa: ARG002 - the topic has no transactions itself
    ) -> None:
        key: Any = record.key
        transactional_id: str = key.transactional_id
        if record.value is None:
            self.transactions.pop(transactional_id, None)
            self.open.pop(transactional_id, None)
            return
        state = self.transactions[transactional_id] = transaction_of(record.value)
        if state.status is Status.ONGOING:
            self.open.setdefault(transactional_id)
        else:
            self.open.pop(transactional_id, None)

    def replay_end_transaction_marker(self, producer_id: int, *, committed: bool) -> None:
        """Do nothing: the topic has no transactions itself."""

    def event_completed(self, key: str, effects: Effects, error: KafkaError | None) -> None:
        if error is None and isinstance(effects, events.Transition):
            self.transactions[key] = effects.after

    def append_completed(self, key: str, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:  # noqa: ARG002
        """Try again to complete a transaction, if that could not be written: all its markers are."""
        return Effects() if error is None else Effects(action=partial(self._complete_again, follow_up))

    def loaded(self, now_ms: int) -> Iterator[tuple[str, Effects]]:  # noqa: ARG002 - time-outs are checked periodically
        for transactional_id, each in self.transactions.items():
            if each.status in PREPARED:
                yield transactional_id, Effects(action=partial(self._send_markers, transactional_id, each))

    def unloaded(self) -> Iterator[Effects]:
        """Yield nothing: no request waits here. The sender of markers ends by itself."""
        yield from ()


def _is_of(event: events.MarkersWritten | events.MarkersRefused, state: Transaction) -> bool:
    """Return whether the markers are those of the decision that the state still has."""
    return (
        state.status in PREPARED
        and state.producer_id == event.producer_id
        and state.producer_epoch == event.producer_epoch
    )


def _end_reply(state: Transaction) -> EndTxnResponse:
    return EndTxnResponse(producer_id=state.producer_id, producer_epoch=state.producer_epoch)
