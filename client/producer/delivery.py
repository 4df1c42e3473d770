"""What becomes of a batch whose request is over: settled, sent again, numbered again, split, or failed.

A batch *may be written* once an attempt to send it ended without an answer, or with one that a leader may also give
after the append: one other than NOT_ENOUGH_REPLICAS and those about its sequence.

| answer | verdict |
|---|---|
| no error, DUPLICATE_SEQUENCE_NUMBER (written before, answer lost) | SETTLED |
| OUT_OF_ORDER_SEQUENCE_NUMBER, and an older batch of the partition is unfinished | AGAIN, after that one |
| OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID, INVALID_PRODUCER_EPOCH else, if it may be written | UNCERTAIN |
| the same three, if not | RENUMBERED (`partition_queue`) |
| MESSAGE_TOO_LARGE, and there is more than one record | SPLIT in two, which together have the same sequences |
| another retriable code; no answer at all (TransportError) | AGAIN, after a pause |
| any other code | FAILED |

UNCERTAIN fails the batch with PossiblyPersistedError. A leader that has forgotten the batch gives the same answer as
one that never had it, and after a crash Kafka has forgotten all but the last batch of each producer. Under another
number the batch could be in the log twice, and behind its successors. Differs from Kafka: its Java client numbers it
again all the same; librdkafka gives up the whole producer.

AGAIN ends when `delivery_timeout_ms` is over, wherever the batch is then: it fails at once, and if a request carries
it, its memory comes back when that request is over.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum

from odradek.client.config import ProducerConfig
from odradek.client.errors import BrokerError, ClientError, DeliveryTimeoutError, PossiblyPersistedError
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
_NOT_WRITTEN = _SEQUENCE_LOST | {ErrorCode.NOT_ENOUGH_REPLICAS}


class BatchResult(Enum):
    """What to do with a batch."""

    COMPLETE = "settled"
    RETRY = "again"
    RENUMBER = "renumbered"
    UNCERTAIN = "uncertain"
    SPLIT = "split"
    FAIL = "failed"


def batch_result(
    code: ErrorCode, *, records_count: int, is_idempotent: bool, is_oldest: bool, may_be_written: bool
) -> BatchResult:
    """The table above. `is_oldest`: no unfinished batch of the partition is before this one."""
    if code in _DONE:
        return BatchResult.COMPLETE
    if is_idempotent and code in _SEQUENCE_LOST:
        waits_for_older = code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not is_oldest
        if waits_for_older:
            return BatchResult.RETRY
        return BatchResult.UNCERTAIN if may_be_written else BatchResult.RENUMBER
    if code is ErrorCode.MESSAGE_TOO_LARGE and records_count > 1:
        return BatchResult.SPLIT
    return BatchResult.RETRY if code.retriable else BatchResult.FAIL


class Delivery:
    """Carries the verdicts out. The batches given to it are in flight, but for `expire`, which takes any."""

    def __init__(self, config: ProducerConfig, accumulator: RecordAccumulator) -> None:
        self._config = config
        self._accumulator = accumulator
        self._loop = asyncio.get_running_loop()

    def complete(self, batch: ProducerBatch, base_offset: int = -1, log_append_time: int = -1) -> None:
        """The batch is in the log, or was sent with acks=0."""
        queue = batch.queue
        queue.in_flight.remove(batch)
        queue.backoff = None
        queue.failure = None
        queue.is_known_to_leader = True
        for older in queue.closed:
            if older.position > batch.position:
                break
            older.may_be_written = True  # the leader has passed it over: it must not be written behind this one
        batch.complete(base_offset, log_append_time)
        self._release(batch)

    def handle_error(self, batch: ProducerBatch, code: ErrorCode, error: BrokerError, *, pause: bool = True) -> None:
        """The broker answered with an error; without `pause` the next attempt may come at once."""
        queue = batch.queue
        result = batch_result(
            code,
            records_count=batch.builder.records_count,
            is_idempotent=self._config.idempotent,
            is_oldest=queue.is_oldest(batch),
            may_be_written=batch.may_be_written,
        )
        if result is BatchResult.COMPLETE:
            self.complete(batch)
            return
        queue.in_flight.remove(batch)
        if batch.finished.done():  # it was given up while its request was under way
            queue.needs_restart |= result is BatchResult.RENUMBER
            self._release(batch)
        elif result is BatchResult.FAIL:
            self._fail(batch, error)
            self._release(batch)
        elif result is BatchResult.UNCERTAIN:
            self._fail(batch, _possibly_persisted(batch, code, error.detail, error.broker))
            self._release(batch)
        elif result is BatchResult.SPLIT:
            self._split(batch)
        else:
            queue.needs_restart |= result is BatchResult.RENUMBER
            batch.may_be_written |= code not in _NOT_WRITTEN
            self._retry(batch, error, pause=pause)

    def handle_no_response(self, batch: ProducerBatch, error: ClientError) -> None:
        """Nobody knows whether the batch is in the log."""
        batch.queue.in_flight.remove(batch)
        if batch.finished.done():
            self._release(batch)
        elif error.retriable:
            batch.may_be_written = True
            self._retry(batch, error, pause=True)
        else:
            self._fail(batch, error)
            self._release(batch)

    def renumber(self, queue: PartitionQueue, producer_id: int) -> None:
        """Number what waits again (`PartitionQueue.restart_sequence`); batches that may be written fail."""
        for batch in [each for each in queue.closed if each.may_be_written]:
            queue.remove(batch)
            self._fail(
                batch, _possibly_persisted(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "an older one is missing")
            )
            self._release(batch)
        queue.restart_sequence(producer_id)

    def expire(self, batch: ProducerBatch) -> None:
        """The delivery timeout of an unfinished batch is over."""
        queue = batch.queue
        in_flight = batch in queue.in_flight
        failure = batch.failure or queue.failure
        reason = f"; the last attempt: {failure.summary}" if failure else ""
        error = DeliveryTimeoutError(
            "send records",
            f"not acknowledged within {self._config.delivery_timeout_ms} ms{reason}",
            "They may be in the log or not" if batch.was_sent else "They were not sent",
            topic=queue.topic,
            partition=queue.partition,
        )
        queue.remove(batch)
        self._fail(batch, error)
        if not in_flight:
            self._release(batch)

    def abort(self, batch: ProducerBatch, error: ClientError) -> None:
        """The producer is closed before the batch was acknowledged."""
        batch.queue.remove(batch)
        self._fail(batch, error)

    def _fail(self, batch: ProducerBatch, error: ClientError) -> None:
        records = pluralize(batch.builder.records_count, "record is", "records are")
        _LOG.warning("%s not acknowledged: %s", records, error)
        batch.fail(error)

    def _release(self, batch: ProducerBatch) -> None:
        """Finished, and carried by no request."""
        self._accumulator.finished(batch)
        self._accumulator.release_memory(batch)
        self._accumulator.update_ready(batch.queue)

    def _retry(self, batch: ProducerBatch, error: ClientError, *, pause: bool) -> None:
        queue = batch.queue
        batch.failure = queue.failure = error
        if _LOG.isEnabledFor(logging.INFO):
            records = pluralize(batch.builder.records_count, "record is", "records are")
            _LOG.info("%s sent again: %s", records, error)
        if pause and not queue.is_backing_off:  # batches that fail together pause once
            if queue.backoff is None:
                config = self._config
                queue.backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
            queue.is_backing_off = True
            self._loop.call_later(queue.backoff.next(), self._end_backoff, queue)
        queue.reenqueue(batch)
        self._accumulator.update_ready(queue)

    def _end_backoff(self, queue: PartitionQueue) -> None:
        queue.is_backing_off = False
        self._accumulator.update_ready(queue)

    def _split(self, batch: ProducerBatch) -> None:
        """Put two batches in the place of one. Their records, and with them the sequences, stay in order."""
        assert batch.records is not None
        half = len(batch.futures) // 2
        first, second = parts = (self._accumulator.split_part(batch, 0), self._accumulator.split_part(batch, half))
        header = read_batch_header(batch.records)
        for index, record in enumerate(iter_records(batch.records, 0, header)):
            split_part = first if index < half else second
            split_part.builder.append(record.timestamp, record.key, record.value, record.headers)
            split_part.timestamps.append(record.timestamp)
        first.futures, second.futures = batch.futures[:half], batch.futures[half:]
        first.charge = batch.charge // 2
        second.charge = batch.charge - first.charge
        batch.charge = 0
        for split_part in parts:
            batch.queue.reenqueue(split_part)
        batch.split_into(parts)
        self._release(batch)


def _possibly_persisted(
    batch: ProducerBatch, code: ErrorCode, detail: str | None, broker: str | None = None
) -> PossiblyPersistedError:
    return PossiblyPersistedError(
        code,
        "send records again",
        detail,
        cure="They may be in the log or not: look before you send them once more",
        broker=broker,
        topic=batch.queue.topic,
        partition=batch.queue.partition,
    )
