"""Sends the markers of decided transactions to the leaders of their partitions, until all have them.

| the partition | then |
|---|---|
| is led here | the marker is written at once, in the same turn of the event loop if the append ends at once |
| is led by another broker | WriteTxnMarkers; markers that wait while a request is under way share the next one |
| has no leader, or its leader fails or refuses | again, after a back-off |
| does not exist any more | it counts as written |
| refuses the marker: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED | the metadata store is asked who
coordinates the transaction. Another broker: the sending ends. This one: see below |

A sending also ends when this broker no longer coordinates the transactional id in the same leader epoch: the next
coordinator sends all markers again, which changes nothing where one is already. A coordinator that is only fenced goes
on: what it decided is committed, and partitions refuse its markers if another coordinator has written later ones.

A partition that refuses the marker of the coordinator has seen an epoch that no coordinator gave out: anybody can write
markers where there are no access rules, and a log directory may come from another cluster. Of the coordinator's epoch:
the marker is sent again with `LAST_COORDINATOR_EPOCH`, which no partition refuses, and which makes it forget the epoch.
Of the producer's: the partition counts as done, because there this transaction ended when that epoch began.
Differs from Kafka: its coordinator gives up until it moves, so the transactional id stays in Prepare, and consumers of
committed records stop at its transaction.

Bounds: one sending for each decided transaction, one request at a time for each broker, `_MOST_MARKERS` in a request.
The markers of a transaction with many partitions are written in slices of time, as a large request is.
Kafka's `TransactionMarkerChannelManager` is the model. Used on the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

from odradek.broker.coordinator.transactions.local_markers import LocalMarkers
from odradek.broker.coordinator.transactions.other_brokers import OtherBrokers
from odradek.broker.coordinator.transactions.transaction import NO_PARTITIONS, TopicPartition
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.broker.waiting import Timer, Timers
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.records.control_records import LAST_COORDINATOR_EPOCH

_LOG = StructuredLogger(__name__)

_FIRST_BACKOFF_SECONDS = 0.02
_LAST_BACKOFF_SECONDS = 1.0
_SLICE_SECONDS = 0.002
_MOST_MARKERS = 2000
"""Partitions in one request."""

_DONE = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
"""The second is of a partition whose format has no transactions, so that it has no record of one either."""
_REFUSED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class Turns(Protocol):
    """How long work shares the event loop with requests (`request.time_slices`)."""

    monotonic: Callable[[], float]

    def call(self, callback: Callable[[], object]) -> None:
        """Call `callback`, which runs for one slice at most, in its turn."""
        ...


class _Sending:
    """The markers of one decided transaction; `remaining` are the partitions without one.

    `is_current` returns whether this broker still coordinates it, `confirm` the same from the metadata store; `ended`
    gets whether all markers are written. `refused` are the partitions that wait for `confirm`, with their errors.
    """

    __slots__ = ("confirm", "ended", "is_current", "is_over", "refused", "remaining", "transactional_id")

    def __init__(
        self,
        transactional_id: str,
        remaining: set[TopicPartition],
        is_current: Callable[[], bool],
        confirm: Callable[[], Awaitable[bool]],
        ended: Callable[[bool], None],
    ) -> None:
        self.transactional_id = transactional_id
        self.remaining = remaining
        self.refused: list[tuple[_Delivery, ErrorCode]] = []
        self.is_current = is_current
        self.confirm = confirm
        self.ended = ended
        self.is_over = False


class _Delivery(NamedTuple):
    """One marker for one partition. `attempt` counts from 0."""

    sending: _Sending
    marker: TransactionMarker
    partition: TopicPartition
    attempt: int


class MarkerSender:
    """Sends the markers of one coordinator. `stop` must be called once; nothing is sent after it."""

    def __init__(
        self,
        node_id: int,
        metadata: Metadata,
        local: LocalMarkers,
        others: OtherBrokers | None,
        tasks: BackgroundTasks,
        timers: Timers,
        turns: Turns,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._local = local
        self._others = others
        self._tasks = tasks
        self._retries = timers
        self._turns = turns
        self._sendings: dict[str, _Sending] = {}
        self._queues: dict[int, list[_Delivery]] = {}  # by node; a node is here while a task sends to it
        self._timers: dict[int, Timer] = {}
        self._last_timer = 0
        self._is_stopped = False
        self.unknown_destinations = 0
        """Markers that wait because their partition has no leader."""
        self.log_append_retries = 0
        """Completed transactions whose last record could not be written yet."""

    def send(
        self,
        transactional_id: str,
        marker: TransactionMarker,
        partitions: Iterable[TopicPartition],
        is_current: Callable[[], bool],
        confirm: Callable[[], Awaitable[bool]],
        ended: Callable[[bool], None],
    ) -> None:
        """Send the marker to the partitions; an earlier sending of the id ends.

        `is_current` returns whether this broker coordinates the id, as far as it knows; `confirm` reads that from the
        metadata store, or raises KafkaError. `ended(True)` is called when all have it, before the return if possible;
        `ended(False)` when one refuses it, and another broker is the coordinator.
        """
        self._cancel(transactional_id)
        sending = _Sending(transactional_id, set(partitions), is_current, confirm, ended)
        self._sendings[transactional_id] = sending
        if not sending.remaining:
            self._end(sending, True)
        self._deliver_first(sending, marker, iter(sorted(sending.remaining)))

    def remaining(self, transactional_id: str) -> frozenset[TopicPartition]:
        """Return the partitions of a decided transaction that lack the marker."""
        sending = self._sendings.get(transactional_id)
        return NO_PARTITIONS if sending is None else frozenset(sending.remaining)

    def call_again(self, event: Any, submit: Callable[[Any], None]) -> None:
        """Submit the event of written markers again after a while: its record could not be written."""
        self.log_append_retries += 1
        self._later(_LAST_BACKOFF_SECONDS, partial(self._submit_again, event, submit))

    def stop(self) -> None:
        self._is_stopped = True
        self.forget()

    def forget(self) -> None:
        """End all sendings: the transactions that need them begin new ones when they are loaded again."""
        for sending in self._sendings.values():
            sending.is_over = True
        self._sendings.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.unknown_destinations = self.log_append_retries = 0

    def _deliver_first(self, sending: _Sending, marker: TransactionMarker, left: Iterator[TopicPartition]) -> None:
        """Try each partition for the first time; other requests are served between slices of many."""
        ends_at = self._turns.monotonic() + _SLICE_SECONDS
        for partition in left:
            self._deliver(_Delivery(sending, marker, partition, 0))
            if sending.is_over:
                return
            if self._turns.monotonic() >= ends_at:
                self._turns.call(partial(self._deliver_first, sending, marker, left))
                return

    # -------------------------------------------------------------------------------------------------- one marker

    def _deliver(self, delivery: _Delivery) -> None:
        sending, _, (topic, index), _ = delivery
        if sending.is_over:
            return
        if not sending.is_current():
            self._cancel(sending.transactional_id)
            return
        image = self._metadata.image.topics.get(topic)
        partition = None if image is None else image.partition(index)
        if partition is None:
            self._answered(delivery, ErrorCode.NONE)
        elif partition.leader == self._node_id:
            self._write_here(delivery)
        elif partition.leader < 0 or self._others is None:
            self.unknown_destinations += 1
            self._retry(delivery, is_unknown=True)
        else:
            self._enqueue(partition.leader, delivery)

    def _write_here(self, delivery: _Delivery) -> None:
        topic, index = delivery.partition
        written = self._local.write(topic, index, delivery.marker)
        if isinstance(written, asyncio.Future):
            written.add_done_callback(partial(self._written_here, delivery))
        else:
            self._answered(delivery, written)

    def _written_here(self, delivery: _Delivery, written: asyncio.Future[ErrorCode]) -> None:
        if written.cancelled():
            self._answered(delivery, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        error = written.exception()
        if error is not None:
            _LOG.exception("marker not written", error, partition=delivery.partition)
        self._answered(delivery, ErrorCode.UNKNOWN_SERVER_ERROR if error is not None else written.result())

    def _answered(self, delivery: _Delivery, code: ErrorCode) -> None:
        sending = delivery.sending
        if sending.is_over:
            return
        if code in _DONE:
            sending.remaining.discard(delivery.partition)
            if not sending.remaining:
                self._end(sending, True)
        elif code in _REFUSED:
            topic, index = delivery.partition
            _LOG.warning("marker refused", id=sending.transactional_id, topic=topic, partition=index, error=code.name)
            sending.refused.append((delivery, code))
            if len(sending.refused) == 1:
                self._tasks.start("refused markers", self._confirm(sending))
        else:
            self._retry(delivery)

    async def _confirm(self, sending: _Sending) -> None:
        """Go on with the partitions that refuse their markers, if this broker is the coordinator."""
        try:
            is_coordinator = await sending.confirm()
        except KafkaError as error:
            _LOG.warning("coordinator not confirmed", id=sending.transactional_id, error=str(error))
            is_coordinator = None
        refused, sending.refused = sending.refused, []
        if is_coordinator is False and not sending.is_over:
            self._end(sending, False)
        for delivery, code in refused:
            if is_coordinator is None:
                self._retry(delivery)
            elif code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                forced = delivery.marker._replace(coordinator_epoch=LAST_COORDINATOR_EPOCH)
                self._deliver(delivery._replace(marker=forced))
            else:
                self._answered(delivery, ErrorCode.NONE)

    def _end(self, sending: _Sending, all_written: bool) -> None:
        self._cancel(sending.transactional_id)
        sending.ended(all_written)

    def _cancel(self, transactional_id: str) -> None:
        sending = self._sendings.pop(transactional_id, None)
        if sending is not None:
            sending.is_over = True

    # ------------------------------------------------------------------------------------------------- later attempts

    def _retry(self, delivery: _Delivery, *, is_unknown: bool = False) -> None:
        seconds = min(_FIRST_BACKOFF_SECONDS * 2 ** min(delivery.attempt, 10), _LAST_BACKOFF_SECONDS)
        self._later(seconds, partial(self._again, delivery._replace(attempt=delivery.attempt + 1), is_unknown))

    def _again(self, delivery: _Delivery, was_unknown: bool) -> None:
        self.unknown_destinations -= was_unknown
        self._deliver(delivery)

    def _submit_again(self, event: Any, submit: Callable[[Any], None]) -> None:
        self.log_append_retries -= 1
        submit(event)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        if not self._is_stopped:
            self._last_timer += 1
            self._timers[self._last_timer] = self._retries.call_later(seconds, self._run_due, self._last_timer, call)

    def _run_due(self, timer: int, call: Callable[[], None]) -> None:
        del self._timers[timer]
        call()

    # --------------------------------------------------------------------------------------------------- other brokers

    def _enqueue(self, node_id: int, delivery: _Delivery) -> None:
        queue = self._queues.get(node_id)
        if queue is not None:
            queue.append(delivery)
            return
        self._queues[node_id] = [delivery]
        self._tasks.start(f"markers for broker {node_id}", self._send_queue(node_id))

    async def _send_queue(self, node_id: int) -> None:
        """Send what is queued for a broker, until nothing is. Markers of the same turn share a request."""
        await asyncio.sleep(0)
        queue = self._queues[node_id]
        try:
            while queue and not self._is_stopped:
                batch = _take_batch(queue)
                if batch:
                    await self._send_batch(node_id, batch)
        finally:
            del self._queues[node_id]

    async def _send_batch(self, node_id: int, batch: list[_Delivery]) -> None:
        assert self._others is not None
        try:
            codes = _codes(await self._others.write_markers(node_id, _request(batch)))
        except KafkaError as error:
            _LOG.warning("markers not sent", broker=node_id, markers=len(batch), error=str(error))
            codes = {}
        for delivery in batch:
            key = (delivery.marker.producer_id, *delivery.partition)
            self._answered(delivery, codes.get(key, ErrorCode.NETWORK_EXCEPTION))


def _take_batch(queue: list[_Delivery]) -> list[_Delivery]:
    """Remove the deliveries of the next request from the queue.

    A response names markers by producer id, so a request has one marker of each producer.
    """
    batch: list[_Delivery] = []
    rest: list[_Delivery] = []
    markers: dict[int, TransactionMarker] = {}
    for delivery in queue:
        if delivery.sending.is_over:
            continue
        is_only = markers.setdefault(delivery.marker.producer_id, delivery.marker) == delivery.marker
        (batch if is_only and len(batch) < _MOST_MARKERS else rest).append(delivery)
    queue[:] = rest
    return batch


def _request(batch: list[_Delivery]) -> WriteTxnMarkersRequest:
    topics: dict[TransactionMarker, dict[str, list[int]]] = {}
    for delivery in batch:
        topic, index = delivery.partition
        topics.setdefault(delivery.marker, {}).setdefault(topic, []).append(index)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.committed,
                topics=[WritableTxnMarkerTopic(name, indexes) for name, indexes in by_name.items()],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for marker, by_name in topics.items()
        ]
    )


def _codes(response: WriteTxnMarkersResponse) -> dict[tuple[int, str, int], ErrorCode]:
    codes = {}
    for marker in response.markers:
        for topic in marker.topics:
            for row in topic.partitions:
                codes[marker.producer_id, topic.name, row.partition_index] = _known(row.error_code)
    return codes


def _known(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
