"""Produce (0), versions 3–13: append one batch to each partition of the request.

| acks | answered |
|---|---|
| 0 | never; if a partition fails, the connection is closed, so that the client notices |
| 1 | when this broker, the leader, has appended |
| -1 | when every in-sync replica has, and min.insync.replicas are in sync; REQUEST_TIMED_OUT after the timeout |
| other | INVALID_REQUIRED_ACKS for every partition |

Each partition succeeds or fails independently. Topics have names up to version 12, ids from 13 on (KIP-516):
UNKNOWN_TOPIC_ID. Produce creates no topics; Metadata does. `storage.log` checks and writes a batch. Error messages and
the refused records (KIP-467) are in the response from version 8 on; from version 10 on (KIP-951) NOT_LEADER_OR_FOLLOWER
carries the current leader and its address. Only an administrative client may write to internal topics:
INVALID_TOPIC_EXCEPTION. A zstd batch before version 7 (KIP-110) is UNSUPPORTED_COMPRESSION_TYPE.

Before the first batch of a transaction, the coordinator checks that the partition belongs to it (versions up to 11), or
adds it (`request.transactional_produce`, with the errors of `coordinator.transactions.verification`). Transactional
batches without a transactional id fail the request with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, those of two producers
with INVALID_PRODUCER_ID_MAPPING.

A client needs the right to write to the topic, else it is TOPIC_AUTHORIZATION_FAILED (by id and without Describe
UNKNOWN_TOPIC_ID); and if a batch is transactional, whatever the request says, to its transactional id.

Most requests are answered without waiting: small appends run on the event loop, and with a single replica the high
watermark follows at once. A large append or a flush returns a future; acks=-1 with followers waits in the produce
purgatory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable
from typing import Final, NamedTuple

from odradek.broker.coordinator.transactions.transaction_coordinator import PartitionErrors
from odradek.broker.metadata.administration.topic_names import INTERNAL_TOPICS
from odradek.broker.purgatory import DelayedOperation
from odradek.broker.replication.partition import ACKS_ALL, Partition
from odradek.broker.replication.refused_batches import count_refused, has_log_start_offset
from odradek.broker.request.context import RequestContext
from odradek.broker.request.endpoints import current_leader
from odradek.broker.request.repetitions import drop_repeated_batches
from odradek.broker.request.rights import check, refusal_of_topic
from odradek.broker.request.row_errors import as_row_error
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.request.transactional_produce import TransactionalProduce
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.append.refusals import InvalidRecordsError
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import NO_ERROR, ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.messages.produce import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.protocol.records.batch_header import CODEC_BITS, FLAGS_POSITION, TRANSACTIONAL_BIT, read_batch_header

_ADMIN_CLIENT_ID: Final = "__admin_client"
_FIRST_VERSION_WITH_LEADERS: Final = 10
_FIRST_VERSION_WITH_ZSTD: Final = 7
_ZSTD: Final = int(Codec.ZSTD)
_LONG: Final = 500
"""A request with more partitions is executed in slices; a real client sends a batch for each."""
_NO_LEADER: Final = LeaderIdAndEpoch()  # shared; the encoder omits it


class _Appending(NamedTuple):
    """An append that has not ended."""

    topic: TopicProduceData
    row: PartitionProduceResponse
    partition: Partition
    leader_epoch: int
    size_bytes: int
    append: asyncio.Future[AppendInfo]


class _Unacknowledged(NamedTuple):
    """An append that has ended on this broker, but perhaps not on the other in-sync replicas."""

    topic: TopicProduceData
    row: PartitionProduceResponse
    partition: Partition
    leader_epoch: int
    next_offset: int


def handle(
    services: Services, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    if not -1 <= request.acks <= 1:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, not -1, 0 or 1")
    partitions_count = 0
    is_transactional = False
    for topic in request.topic_data:
        partitions_count += len(topic.partition_data)
        for data in topic.partition_data:
            records = data.records
            if records and len(records) > FLAGS_POSITION and records[FLAGS_POSITION] & TRANSACTIONAL_BIT:
                is_transactional = True
    if partitions_count > 1:
        drop_repeated_batches(request, partitions_count)
    work = _Produce(services, context, request)
    if is_transactional:
        verifying = work.verify()
        if verifying is not None:
            return work.append_verified(verifying, partitions_count)
    if partitions_count > _LONG:
        return work.append_in_slices()
    for topic in request.topic_data:
        rows = []
        for data in topic.partition_data:  # a comprehension is one more frame in every request
            rows.append(work.append(topic, data))  # noqa: PERF401
        work.response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, rows))
    return work.wait_for_appends() if work.appending else work.answer()


def error_response(request: ProduceRequest, code: ErrorCode, message: str) -> ProduceResponse | None:
    """With acks=0 return None: dispatch then closes the connection."""
    if request.acks == 0:
        return None
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [
                    PartitionProduceResponse(data.index, code, -1, error_message=message or None)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


class _Produce:
    """The execution of one request: the rows of its response, and the appends that they wait for."""

    __slots__ = (
        "_acks",
        "_context",
        "_failure",
        "_is_guarded",
        "_now_ms",
        "_request",
        "_services",
        "_transactional",
        "_unacknowledged",
        "appending",
        "response",
    )

    def __init__(self, services: Services, context: RequestContext, request: ProduceRequest) -> None:
        self.response = ProduceResponse([], 0, [])
        self.appending: list[_Appending] = []
        self._unacknowledged: list[_Unacknowledged] = []
        self._failure: KafkaError | None = None
        self._transactional: TransactionalProduce | None = None
        self._services = services
        self._is_guarded = services.authorizer is not None
        self._context = context
        self._request = request
        self._acks = request.acks
        self._now_ms = services.clock.time_ms()

    def verify(self) -> Awaitable[PartitionErrors] | None:
        """Begin to verify the transactional batches. Raises KafkaError if the request as a whole fails."""
        transactional_id = self._request.transactional_id
        if transactional_id is not None:  # `begin` refuses the request without one
            check(self._services, self._context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        is_refused = (lambda topic: self._refusal_of(topic) is not None) if self._is_guarded else None
        transactional = TransactionalProduce(self._services, self._request, self._context.api_version, is_refused)
        verifying = transactional.begin(self._now_ms)
        self._transactional = transactional
        return verifying

    async def append_verified(
        self, verifying: Awaitable[PartitionErrors], partitions_count: int
    ) -> ProduceResponse | None:
        """Append when the transaction coordinator has answered, and respond as `handle` does."""
        assert self._transactional is not None
        await self._transactional.finish(verifying)
        if partitions_count > _LONG:
            return await self.append_in_slices()
        for _ in self._append_all():
            pass
        return await self._wait()

    def append(self, topic: TopicProduceData, data: PartitionProduceData) -> PartitionProduceResponse:
        """Append one partition's batch and return its row, which is completed later if the append has not ended."""
        row = PartitionProduceResponse(data.index, NO_ERROR, -1, -1, -1, [], None, _NO_LEADER)
        version, records = self._context.api_version, data.records
        if self._is_guarded:
            refused = self._refusal_of(topic)
            if refused is not None:
                self._fail(topic, row, refused)
                return row
        if version >= FIRST_VERSION_WITH_TOPIC_IDS:
            partition = self._services.partitions.find_by_id(topic.topic_id, data.index)
        else:
            partition = self._services.partitions.find(topic.name, data.index)
        if isinstance(partition, KafkaError):
            self._fail(topic, row, partition)
            return row
        if (
            not records
            or (version < _FIRST_VERSION_WITH_ZSTD and _is_zstd(records))
            or (partition.topic in INTERNAL_TOPICS and self._context.client_id != _ADMIN_CLIENT_ID)
        ):
            self._fail(topic, row, self._refusal(partition, records, version))
            return row
        leader_epoch = partition.leader_epoch
        if self._transactional is not None:
            unverified = self._transactional.error_of(partition)
            if unverified is not None:
                self._fail(topic, row, unverified)
                return row
        try:
            if self._transactional is None:
                append = partition.append_as_leader(records, self._acks, self._now_ms)
            else:
                append = self._transactional.append(partition, records, self._acks, self._now_ms)
        except Exception as error:  # noqa: BLE001 - a defect fails this partition only
            self._refused(topic, row, partition, len(records), error)
        else:
            if isinstance(append, AppendInfo):
                self._appended(topic, row, partition, leader_epoch, append)
            else:
                self.appending.append(_Appending(topic, row, partition, leader_epoch, len(records), append))
        return row

    def _refusal_of(self, topic: TopicProduceData) -> KafkaError | None:
        """The error of a client without the right to write to a topic."""
        by_id = self._context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        return refusal_of_topic(self._services, self._context, Operation.WRITE, topic.name, topic.topic_id, by_id=by_id)

    def _refusal(self, partition: Partition, records: memoryview | None, version: int) -> KafkaError:
        """The error for records that are refused before the append."""
        if partition.topic in INTERNAL_TOPICS and self._context.client_id != _ADMIN_CLIENT_ID:
            return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written by brokers only")
        if not records:
            return KafkaError(ErrorCode.INVALID_RECORD, "there must be one record batch for each partition")
        return KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )

    async def append_in_slices(self) -> ProduceResponse | None:
        """Append to many partitions, and respond as `handle` does."""
        await self._services.time_slices.finish(self._append_all(), None)
        return await self._wait()

    async def _wait(self) -> ProduceResponse | None:
        if self.appending:
            return await self.wait_for_appends()
        answer = self.answer()
        return await answer if isinstance(answer, asyncio.Future) else answer

    def _append_all(self) -> Steps[None]:
        for topic in self._request.topic_data:
            rows: list[PartitionProduceResponse] = []
            for data in topic.partition_data:
                yield
                rows.append(self.append(topic, data))
            self.response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, rows))

    async def wait_for_appends(self) -> ProduceResponse | None:
        """Wait for the appends that did not end at once, then answer."""
        for topic, row, partition, leader_epoch, size_bytes, append in self.appending:
            try:
                info = await append
            except Exception as error:  # noqa: BLE001 - as in `append`
                self._refused(topic, row, partition, size_bytes, error)
            else:
                self._appended(topic, row, partition, leader_epoch, info)
                if self._acks != ACKS_ALL and partition.is_fenced:  # `acknowledgement` checks the others
                    self.refuse(topic, row, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        answer = self.answer()
        return await answer if isinstance(answer, asyncio.Future) else answer

    def answer(self) -> ProduceResponse | asyncio.Future[ProduceResponse] | None:
        """Answer when all appends have ended: now, or when the other in-sync replicas have the records."""
        if self._acks == 0:
            if self._failure is not None:
                raise self._failure
            return None
        if self._unacknowledged:
            delayed = DelayedProduce(self, self._unacknowledged)
            if not delayed.all_acknowledged():
                keys = [pending.partition for pending in self._unacknowledged]
                return self._services.produce_purgatory.park(delayed, keys, self._request.timeout_ms)
        return self.response

    def _appended(
        self,
        topic: TopicProduceData,
        row: PartitionProduceResponse,
        partition: Partition,
        leader_epoch: int,
        info: AppendInfo,
    ) -> None:
        metrics = partition.metrics
        metrics.produce_requests += 1
        metrics.messages_in += info.records_count
        metrics.bytes_in += info.size_bytes
        if info.records_converted:
            metrics.produce_message_conversions += info.records_converted
        row.base_offset = info.base_offset
        row.log_append_time_ms = info.log_append_time
        row.log_start_offset = info.log_start_offset
        if self._acks == ACKS_ALL:
            next_offset = info.last_offset + 1
            # Checked at once: a single replica has every record, and needs no object that waits for others.
            code = partition.acknowledgement(next_offset, leader_epoch)
            if code is None:
                self._unacknowledged.append(_Unacknowledged(topic, row, partition, leader_epoch, next_offset))
            elif code:
                self.refuse(topic, row, code)

    def _refused(
        self,
        topic: TopicProduceData,
        row: PartitionProduceResponse,
        partition: Partition,
        size_bytes: int,
        error: Exception,
    ) -> None:
        if not isinstance(error, KafkaError):
            error = as_row_error(self._services, partition, error)
        count_refused(self._services.metrics, partition.metrics, error, size_bytes)
        if has_log_start_offset(error):
            row.log_start_offset = partition.log.log_start_offset
        self._fail(topic, row, error)

    def _fail(self, topic: TopicProduceData, row: PartitionProduceResponse, error: KafkaError) -> None:
        self._failure = error
        self.refuse(topic, row, error.code)
        row.error_message = error.detail or None
        if isinstance(error, InvalidRecordsError):
            row.record_errors = [BatchIndexAndErrorMessage(*record) for record in error.record_errors]

    def refuse(self, topic: TopicProduceData, row: PartitionProduceResponse, code: ErrorCode) -> None:
        """Set the error code of a row (or NONE), and for NOT_LEADER_OR_FOLLOWER the leader, if the version has it."""
        row.error_code = code
        if code is not ErrorCode.NOT_LEADER_OR_FOLLOWER or self._context.api_version < _FIRST_VERSION_WITH_LEADERS:
            return
        leader = current_leader(self._services, self._context, topic.name, topic.topic_id, row.index)
        row.current_leader = LeaderIdAndEpoch(leader.node_id, leader.leader_epoch)
        endpoints = self.response.node_endpoints
        if leader.endpoint is not None and all(known.node_id != leader.node_id for known in endpoints):
            endpoints.append(NodeEndpoint(*leader.endpoint))


class DelayedProduce(DelayedOperation[ProduceResponse]):
    """A response that waits until every in-sync replica has the records of every row, or until the timeout."""

    def __init__(self, work: _Produce, unacknowledged: list[_Unacknowledged]) -> None:
        self._work = work
        self._unacknowledged = unacknowledged

    def all_acknowledged(self) -> bool:
        """Update the rows that wait; return whether none is left."""
        waiting = []
        for pending in self._unacknowledged:
            code = pending.partition.acknowledgement(pending.next_offset, pending.leader_epoch)
            if code is None:
                waiting.append(pending)
            else:
                self._work.refuse(pending.topic, pending.row, code)
        self._unacknowledged = waiting
        return not waiting

    def is_ready(self, key: Hashable) -> bool:  # noqa: ARG002 - all rows are checked
        return self.all_acknowledged()

    def answer(self) -> ProduceResponse:
        if not self.all_acknowledged():
            for pending in self._unacknowledged:
                pending.row.error_code = ErrorCode.REQUEST_TIMED_OUT
        return self._work.response


def _is_zstd(records: memoryview) -> bool:
    """Return whether `records` start with a whole batch that is compressed with zstd."""
    try:
        header = read_batch_header(records)
    except RemoteProtocolError:
        return False
    return header.attributes & CODEC_BITS == _ZSTD and header.size <= len(records)
