"""The result of a batch after its request: complete, retry, renumber, split or fail.

A batch *may be written* if a request with it is in flight, ended without a response, or with an error that a leader may
also return after the append: any error but those of `_NOT_WRITTEN`. Only an acknowledgement ends that: a leader checks
sizes, rights and records before it looks for duplicates, so a refusal of one attempt says nothing about an earlier one.

A batch that fails has the error of its last attempt if it is certainly not written, and PossiblyPersistedError, with
that error as its cause, if it may be written. In a transaction it has the error itself: a failed batch aborts the
transaction, and nothing of it becomes visible.

| error code | result |
|---|---|
| none, DUPLICATE_SEQUENCE_NUMBER (written before, response lost) | COMPLETE |
| OUT_OF_ORDER_SEQUENCE_NUMBER while an older batch of the partition is unfinished | RETRY, after that one |
| else OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID, INVALID_PRODUCER_EPOCH, if it may be written | FAIL |
| the same three, if it cannot be written | RENUMBER (`partition_queue`) |
| MESSAGE_TOO_LARGE with more than one record | SPLIT in two batches, which together have the same sequences |
| another retriable code; no response (TransportError) | RETRY, after a backoff |
| any other code | FAIL |

In a transaction RENUMBER is FAIL, because the epoch that makes new sequences valid comes from the coordinator.

A batch that may be written is not renumbered. A leader that no longer remembers it returns the same error as one that
never wrote it, and after a crash Kafka remembers only the last batch of each producer. With another sequence the batch
could be in the log twice, and after later ones. Differs from Kafka: its Java client renumbers the batch nevertheless;
librdkafka ends the producer with a fatal error.

Retries end when `delivery_timeout_ms` is over: the batch fails at once. If a request with it is still in flight, its
memory is released when that request is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum

from odradek.client.config import ProducerConfig
from odradek.client.errors import BrokerError, ClientError, DeliveryTimeoutError, PossiblyPersistedError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.producer.partition_queue import PartitionQueue, ProducerBatch
from odradek.client.producer.record_accumulator import RecordAccumulator
from odradek.protocol.errors import ErrorCode
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import read_batch_header
from odradek.protocol.records.record_iterator import iter_records

_LOG = logging.getLogger(__name__)

_DONE = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
_SEQUENCE_LOST = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH}
)
_CONCURRENT_PAUSE_SECONDS = 0.02
"""CONCURRENT_TRANSACTIONS: the markers of the transaction before are written within milliseconds."""

_NOT_WRITTEN = _SEQUENCE_LOST | {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_VERSION,
}
"""Errors that a leader returns only before an append."""


class BatchResult(Enum):
    """The decision about a batch."""

    COMPLETE = "complete"
    RETRY = "retry"
    RENUMBER = "renumber"
    SPLIT = "split"
    FAIL = "fail"


def batch_result(
    code: ErrorCode,
    *,
    records_count: int,
    is_idempotent: bool,
    is_oldest: bool,
    may_be_written: bool,
    is_transactional: bool = False,
) -> BatchResult:
    """Look up the result in the table above. `is_oldest`: no unfinished batch of the partition precedes it."""
    if code in _DONE:
        return BatchResult.COMPLETE
    if is_idempotent and code in _SEQUENCE_LOST:
        waits_for_older = code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not is_oldest
        if waits_for_older:
            return BatchResult.RETRY
        return BatchResult.FAIL if is_transactional or may_be_written else BatchResult.RENUMBER
    if code is ErrorCode.MESSAGE_TOO_LARGE and records_count > 1:
        return BatchResult.SPLIT
    return BatchResult.RETRY if code.retriable else BatchResult.FAIL


class Delivery:
    """Applies the results to batches in flight; `expire` and `abort` take any unfinished batch.

    `on_failure` is called with each batch that fails, and its error.
    """

    def __init__(self, config: ProducerConfig, accumulator: RecordAccumulator) -> None:
        self._config = config
        self._accumulator = accumulator
        self._loop = asyncio.get_running_loop()
        self.on_failure: Callable[[ProducerBatch, ClientError], None] = lambda _batch, _error: None

    def complete(self, batch: ProducerBatch, base_offset: int = -1, log_append_time: int = -1) -> None:
        """Complete a batch that is in the log, or that was sent with acks=0."""
        queue = batch.queue
        queue.in_flight.remove(batch)
        queue.backoff = None
        queue.failure = None
        queue.is_known_to_leader = True
        for older in queue.closed:
            if older.position > batch.position:
                break
            older.may_be_written = True  # sent again, it would be written after this one
        batch.complete(base_offset, log_append_time)
        self._release(batch)

    def handle_error(self, batch: ProducerBatch, code: ErrorCode, error: BrokerError, *, pause: bool = True) -> None:
        """Handle an error code of the broker; without `pause` a retry may follow at once."""
        queue = batch.queue
        result = batch_result(
            code,
            records_count=batch.builder.records_count,
            is_idempotent=self._config.idempotent,
            is_oldest=queue.is_oldest(batch),
            may_be_written=batch.may_be_written,
            is_transactional=self._config.transactional_id is not None,
        )
        if result is BatchResult.COMPLETE:
            self.complete(batch)
            return
        queue.in_flight.remove(batch)
        batch.may_be_written |= code not in _NOT_WRITTEN
        if batch.finished.done():  # it failed while its request was in flight
            queue.needs_restart |= result is BatchResult.RENUMBER
            self._release(batch)
        elif result is BatchResult.FAIL:
            self._fail(batch, error)
            self._release(batch)
        elif result is BatchResult.SPLIT:
            self._split(batch)
        else:
            queue.needs_restart |= result is BatchResult.RENUMBER
            self._retry(batch, error, pause=pause)

    def handle_no_response(self, batch: ProducerBatch, error: ClientError, *, was_sent: bool) -> None:
        """Handle a request without a response; if it was sent, the batch may be in the log or not."""
        batch.queue.in_flight.remove(batch)
        batch.may_be_written |= was_sent
        if batch.finished.done():
            self._release(batch)
        elif error.retriable:
            self._retry(batch, error, pause=True)
        else:
            self._fail(batch, error)
            self._release(batch)

    def renumber(self, queue: PartitionQueue, producer_id: int) -> None:
        """Renumber the waiting batches (`PartitionQueue.restart_sequence`); those that may be written fail."""
        for batch in [each for each in queue.closed if each.may_be_written]:
            queue.remove(batch)
            error = broker_error(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                "send records",
                "an older batch was not written",
                topic=queue.topic,
                partition=queue.partition,
            )
            self._fail(batch, error)
            self._release(batch)
        queue.restart_sequence(producer_id)

    def expire(self, batch: ProducerBatch) -> None:
        """Fail an unfinished batch whose delivery timeout is over."""
        queue = batch.queue
        in_flight = batch in queue.in_flight
        failure = batch.failure or queue.failure
        reason = f"; the last attempt: {failure.summary}" if failure else ""
        error = DeliveryTimeoutError(
            "send records",
            f"not acknowledged within {self._config.delivery_timeout_ms} ms{reason}",
            "They were not written" if batch.was_sent else "They were never sent",
            topic=queue.topic,
            partition=queue.partition,
        )
        queue.remove(batch)
        batch.may_be_written |= in_flight
        self._fail(batch, error)
        if not in_flight:
            self._release(batch)

    def discard(self, batch: ProducerBatch, error: ClientError) -> None:
        """Fail a batch of an aborted transaction, which is not in flight."""
        batch.queue.remove(batch)
        batch.fail(error)
        if batch.was_sent:
            self.on_failure(batch, error)
        self._release(batch)

    def abort(self, batch: ProducerBatch, error: ClientError) -> None:
        """Fail a batch because the producer is closed."""
        batch.may_be_written |= batch in batch.queue.in_flight
        batch.queue.remove(batch)
        self._fail(batch, error)

    def _fail(self, batch: ProducerBatch, error: ClientError) -> None:
        if batch.may_be_written and self._config.transactional_id is None:
            error = _possibly_persisted(error)
        records = pluralize(batch.builder.records_count, "record was", "records were")
        _LOG.warning("%s not acknowledged: %s", records, error)
        batch.fail(error)
        self.on_failure(batch, error)

    def _release(self, batch: ProducerBatch) -> None:
        """Remove a finished batch that is in no request."""
        self._accumulator.remove(batch)
        self._accumulator.release_memory(batch)
        self._accumulator.update_ready(batch.queue)

    def _retry(self, batch: ProducerBatch, error: ClientError, *, pause: bool) -> None:
        queue = batch.queue
        batch.failure = queue.failure = error
        if _LOG.isEnabledFor(logging.INFO):
            records = pluralize(batch.builder.records_count, "record is", "records are")
            _LOG.info("%s sent again: %s", records, error)
        if pause and not queue.is_backing_off:  # batches of one request cause one backoff
            if queue.backoff is None:
                config = self._config
                queue.backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
            queue.is_backing_off = True
            seconds = queue.backoff.next()
            if isinstance(error, BrokerError) and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                seconds = _CONCURRENT_PAUSE_SECONDS
            self._loop.call_later(seconds, self._end_backoff, queue)
        queue.reenqueue(batch)
        self._accumulator.update_ready(queue)

    def _end_backoff(self, queue: PartitionQueue) -> None:
        queue.is_backing_off = False
        self._accumulator.update_ready(queue)

    def _split(self, batch: ProducerBatch) -> None:
        """Replace a batch by two halves. Records and sequences keep their order."""
        assert batch.records is not None
        half = len(batch.futures) // 2
        first, second = parts = (self._accumulator.split_part(batch, 0), self._accumulator.split_part(batch, half))
        header = read_batch_header(batch.records)
        for index, record in enumerate(iter_records(batch.records, 0, header)):
            part = first if index < half else second
            part.builder.append(record.timestamp, record.key, record.value, record.headers)
            part.timestamps.append(record.timestamp)
        first.futures, second.futures = batch.futures[:half], batch.futures[half:]
        first.charge = batch.charge // 2
        second.charge = batch.charge - first.charge
        batch.charge = 0
        for part in parts:
            batch.queue.reenqueue(part)
        batch.split_into(parts)
        self._release(batch)


def _possibly_persisted(failure: ClientError) -> PossiblyPersistedError:
    error = PossiblyPersistedError(
        failure.tried,
        failure.cause,
        "They may be in the log or not: check the log before you send them again",
        broker=failure.broker,
        topic=failure.topic,
        partition=failure.partition,
    )
    error.__cause__ = failure
    return error
