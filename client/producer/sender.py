"""The sender: makes Produce requests of ready batches, and passes their responses to `delivery`.

It is driven by events: `wakeup` is called when a batch is ready, a response or new metadata have arrived, or a
connection has opened or closed. It schedules one call of `_drain` at the next iteration of the event loop. A drain
sends one request to each connected broker with fewer than `max_in_flight` requests in flight, with the oldest batch of
each partition that it leads, and repeats that until no batch can be sent. Requests have no tasks, and only retries have
timers.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from odradek.client.config import Address, ProducerConfig
from odradek.client.errors import ClientError, ClosedError, broker_error
from odradek.client.network.cluster import Cluster
from odradek.client.network.cluster_image import STALE_METADATA
from odradek.client.network.connection import Connection
from odradek.client.producer.delivery import Delivery
from odradek.client.producer.partition_queue import MAX_EPOCH, PartitionQueue, ProducerBatch
from odradek.client.producer.producer_id import init_producer_id
from odradek.client.producer.record_accumulator import RecordAccumulator
from odradek.protocol.api import PRODUCE_KEY
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    LAST_VERSION_WITH_TOPIC_NAMES,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from odradek.client.transactions.transaction_manager import TransactionManager

_LOG = logging.getLogger(__name__)

_LAST_WITHOUT_ADDING = 11
"""From Produce 12 on a leader adds the partition to the transaction (KIP-890), which version 1 has done before."""

SentBatches = dict[tuple[str | bytes, int], ProducerBatch]
"""The batches of a request by their partition as the response names it: topic name or id, and index."""


class Sender:
    """Sends the batches of one accumulator, from `start` to `close`; in transactions if there is a manager of them."""

    def __init__(
        self,
        config: ProducerConfig,
        cluster: Cluster,
        accumulator: RecordAccumulator,
        transactions: TransactionManager | None = None,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._accumulator = accumulator
        self._delivery = Delivery(config, accumulator)
        self._loop = asyncio.get_running_loop()
        self._producer_id = -1
        self._transactions = transactions
        self._idle: asyncio.Future[None] | None = None  # set when no batch is unfinished
        if transactions is not None:
            self._delivery.on_failure = self._batch_failed
        self._renewal: asyncio.Task[None] | None = None
        self._is_scheduled = False
        self._is_closed = False
        self._required_acks = config.required_acks
        accumulator.on_ready = self.wakeup
        accumulator.on_expired = self._expire
        cluster.on_change.append(self.wakeup)

    async def start(self) -> None:
        """Get the producer id, if the producer is idempotent. Raises ClientError."""
        if self._transactions is not None:
            await self._transactions.start()
        elif self._config.idempotent:
            await self._renew_producer_id()

    async def close(self) -> None:
        """Stop sending, and fail every batch that is not acknowledged."""
        self._is_closed = True
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        error = ClosedError("send records", "the producer was closed before they were acknowledged")
        for batch in list(self._accumulator.incomplete):
            self._delivery.abort(batch, error)

    def wakeup(self) -> None:
        """Schedule a drain at the next iteration of the event loop."""
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._loop.call_soon(self._drain)

    async def wait_idle(self) -> None:
        """Wait until every batch is finished and no request with one is in flight, while batches are discarded."""
        while self._accumulator.incomplete and not self._is_closed:
            self._idle = self._loop.create_future()
            self.wakeup()
            await self._idle

    def _batch_failed(self, batch: ProducerBatch, error: ClientError) -> None:
        assert self._transactions is not None
        self._transactions.batch_failed(error, has_sequence=batch.was_sent)
        self.wakeup()

    def _discard_batches(self, transactions: TransactionManager) -> None:
        """Discard the batches of an aborted transaction; those in flight when their request is over."""
        incomplete = list(self._accumulator.incomplete)
        if incomplete:
            error = transactions.discard_error()
            for batch in incomplete:
                if batch not in batch.queue.in_flight and not batch.finished.done():
                    self._delivery.discard(batch, error)
        if self._idle is not None and not self._accumulator.incomplete and not self._idle.done():
            self._idle.set_result(None)

    def _expire(self, batch: ProducerBatch) -> None:
        """Expire a batch. If its leader cannot be reached, the reason for that is its last failure."""
        queue = batch.queue
        if batch not in queue.in_flight:
            batch.failure = self._cluster.leader_failure(queue.topic, queue.partition) or batch.failure
        self._delivery.expire(batch)

    def _drain(self) -> None:
        self._is_scheduled = False
        transactions = self._transactions
        if transactions is not None and transactions.state.discards_records and not self._is_closed:
            self._discard_batches(transactions)
            return
        while not self._is_closed:
            requests = self._collect()
            if not requests:
                return
            for connection, batches in requests.items():
                self._send(connection, batches)

    def _collect(self) -> dict[Connection, list[ProducerBatch]]:
        """Take the next batch of each ready queue whose leader can receive another request."""
        requests: dict[Connection, list[ProducerBatch]] = {}
        sizes: dict[Connection, int] = {}
        for queue in tuple(self._accumulator.ready):
            head = queue.head()
            if head is None or queue.is_backing_off:
                continue
            if self._transactions is not None and not self._transactions.may_send(queue.topic, queue.partition):
                continue
            if queue.needs_restart and not head.may_be_written and not self._restart(queue):
                continue
            connection = self._leader_connection(queue)
            if connection is None or connection.in_flight >= self._config.max_in_flight or connection.is_congested:
                continue
            size = sizes.get(connection, 0) + head.size
            if connection in requests and size > self._config.max_request_size:
                continue
            sizes[connection] = size
            requests.setdefault(connection, []).append(queue.take())
            self._accumulator.requeue(queue)
        return requests

    def _leader_connection(self, queue: PartitionQueue) -> Connection | None:
        """The connection to the leader of a queue's partition; if there is none, request metadata or connect."""
        node_id = self._cluster.leader(queue.topic, queue.partition)
        if node_id is None:
            self._cluster.request_refresh()
            return None
        connection = self._cluster.established(node_id)
        if connection is None:
            self._cluster.connect_in_background(node_id)
        return connection

    def _restart(self, queue: PartitionQueue) -> bool:
        """Renumber the batches of a queue. Returns False while that needs a new producer id."""
        if queue.producer_id == self._producer_id and queue.producer_epoch >= MAX_EPOCH:
            if self._renewal is None:
                self._renewal = asyncio.create_task(self._renew_or_pause())
                self._renewal.add_done_callback(self._renewed)
            return False
        self._delivery.renumber(queue, self._producer_id)
        return True

    async def _renew_producer_id(self) -> None:
        self._producer_id = await init_producer_id(self._cluster, self._config, self._config.max_block_ms)

    async def _renew_or_pause(self) -> None:
        try:
            await self._renew_producer_id()
        except ClientError as error:
            _LOG.warning("%s", error)
            await asyncio.sleep(self._config.retry_backoff_max_ms / 1000)  # then the next drain requests it again

    def _renewed(self, task: asyncio.Task[None]) -> None:
        self._renewal = None
        if not task.cancelled():
            task.result()
            self.wakeup()

    def _send(self, connection: Connection, batches: list[ProducerBatch]) -> None:
        try:
            version = self._version(connection, batches)
            request, sent = self._build(batches, by_id=version > LAST_VERSION_WITH_TOPIC_NAMES)
            if not self._required_acks:
                connection.send_without_response(request, version=version)
                for batch in batches:
                    self._delivery.complete(batch)
                return
            response = connection.send(request, ProduceResponse, version=version)
        except ClientError as error:
            self._handle_no_response(batches, error, was_sent=False)
        except Exception as error:  # noqa: BLE001 - the futures must get every error of a codec
            failure = ClientError("encode records", f"{type(error).__name__}: {error}")
            self._handle_no_response(batches, failure, was_sent=False)
        else:
            response.add_done_callback(partial(self._handle_response, connection, sent))

    def _version(self, connection: Connection, batches: list[ProducerBatch]) -> int:
        if self._transactions is not None:
            if not self._transactions.state.uses_version_2:
                return connection.versions.highest(PRODUCE_KEY, at_most=_LAST_WITHOUT_ADDING)
            connection.versions.highest(PRODUCE_KEY, at_least=_LAST_WITHOUT_ADDING + 1)  # raises if there is none
        version = connection.versions.highest(PRODUCE_KEY)
        topics = self._cluster.image.topics
        if version > LAST_VERSION_WITH_TOPIC_NAMES and any(
            topics[batch.queue.topic].topic_id == ZERO_UUID for batch in batches
        ):
            version = connection.versions.highest(PRODUCE_KEY, at_most=LAST_VERSION_WITH_TOPIC_NAMES)
        return version

    def _build(self, batches: list[ProducerBatch], *, by_id: bool) -> tuple[ProduceRequest, SentBatches]:
        data: dict[str, TopicProduceData] = {}
        sent: SentBatches = {}
        for batch in batches:
            queue = batch.queue
            self._encode(batch)
            topic_id = self._cluster.image.topics[queue.topic].topic_id
            topic = data.get(queue.topic)
            if topic is None:
                topic = data[queue.topic] = TopicProduceData(queue.topic, topic_id, [])
            topic.partition_data.append(PartitionProduceData(queue.partition, batch.records))
            sent[topic_id if by_id else queue.topic, queue.partition] = batch
        config = self._config
        return ProduceRequest(
            config.transactional_id, self._required_acks, config.request_timeout_ms, list(data.values())
        ), sent

    def _encode(self, batch: ProducerBatch) -> None:
        if batch.was_sent:
            return
        queue = batch.queue
        if self._transactions is not None:
            state = self._transactions.state
            if (queue.producer_id, queue.producer_epoch) != (state.producer_id, state.producer_epoch):
                queue.set_producer(state.producer_id, state.producer_epoch)
            if batch.base_sequence < 0:
                queue.assign_sequence(batch)
        elif self._producer_id >= 0:
            if queue.producer_id < 0:
                queue.producer_id, queue.producer_epoch = self._producer_id, 0
            if batch.base_sequence < 0:
                queue.assign_sequence(batch)
        batch.encode(queue.producer_id, queue.producer_epoch)

    def _handle_response(
        self, connection: Connection, sent: SentBatches, future: asyncio.Future[ProduceResponse]
    ) -> None:
        error = future.exception()
        if error is not None:
            assert isinstance(error, ClientError)
            self._handle_no_response(list(sent.values()), error, was_sent=True)
            return
        response = future.result()
        for topic in response.responses:
            for row in topic.partition_responses:
                batch = sent.pop((topic.name or topic.topic_id, row.index), None)
                if batch is None:
                    _LOG.warning("%s returned a partition that was not in the Produce request", connection.name)
                elif row.error_code:
                    self._handle_error(connection, response, batch, row)
                else:
                    self._delivery.complete(batch, row.base_offset, row.log_append_time_ms)
        if sent:
            cause = "the response does not have every partition"
            failure = ClientError("send records", cause, broker=connection.name)
            self._handle_no_response(list(sent.values()), failure, was_sent=True)
        self.wakeup()

    def _handle_no_response(self, batches: list[ProducerBatch], error: ClientError, *, was_sent: bool) -> None:
        for batch in batches:
            self._delivery.handle_no_response(batch, error, was_sent=was_sent)
        if not self._is_closed:
            self._cluster.request_refresh()
            self.wakeup()

    def _handle_error(
        self, connection: Connection, response: ProduceResponse, batch: ProducerBatch, row: PartitionProduceResponse
    ) -> None:
        queue = batch.queue
        code = ErrorCode.of(row.error_code)
        error = broker_error(
            row.error_code,
            "send records",
            _detail(row),
            broker=connection.name,
            topic=queue.topic,
            partition=queue.partition,
        )
        moved = False
        if code in STALE_METADATA and not self._is_closed:
            leader = row.current_leader
            brokers = [(node.node_id, Address(node.host, node.port)) for node in response.node_endpoints]
            moved = self._cluster.update_leader(
                queue.topic, queue.partition, leader.leader_id, leader.leader_epoch, brokers
            )
            self._cluster.request_refresh()
        self._delivery.handle_error(batch, code, error, pause=not moved)


def _detail(row: PartitionProduceResponse) -> str:
    """The broker's error message, and the first message for a single record (KIP-467) unless it says the same."""
    reason = row.error_message or ""
    of_record = row.record_errors[0].batch_index_error_message if row.record_errors else None
    return reason if not of_record or of_record in reason else "; ".join(filter(None, (reason, of_record)))
