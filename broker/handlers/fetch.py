"""Fetch (1), versions 4–18: record batches of each wanted partition, as they are on the disk.

The response is sent when there are `min_bytes`, when a partition has an error or a diverging epoch, when no partition
is wanted, or after `max_wait_ms`. Until then the request is parked in the fetch purgatory, and changes of its
partitions wake it.

- Partitions are read in the order of the request or session. `max_bytes` (and the broker's fetch.max.bytes) limits the
  whole response, and each partition has a limit of its own. But the first partition with records returns at least one
  whole batch, however large, so that a consumer always makes progress (KIP-74). A limit may cut off a partition's last
  batch.
- Sessions: `replication.fetch.fetch_session` (KIP-227). Topics have names up to version 12, ids from 13 on (KIP-516).
- `read_committed` ends at the last stable offset, and adds the aborted transactions of the returned records (KIP-98).
- A stale leader epoch in the request is FENCED_LEADER_EPOCH, an unknown one UNKNOWN_LEADER_EPOCH (KIP-320):
  `Partition.check_leader`. If the last fetched epoch shows that the fetcher's log has diverged (KIP-595), the row has
  the diverging epoch and no records.
- A follower is a fetcher with a replica id at the listener that brokers use among themselves; at any other, it is a
  consumer. It reads up to the end of the log. Its fetch reports, once, when it arrives, that it has everything below
  its offset (`Partition.record_follower_fetch`). Its session is answered at once if the high watermark is above the one
  that it was sent last, and on each append. If it is below the start of the log, or above its end with an epoch that is
  unknown here, it gets both in its OFFSET_OUT_OF_RANGE row.
- Without the right to read a topic, its rows are TOPIC_AUTHORIZATION_FAILED; by id and without Describe
  UNKNOWN_TOPIC_ID (`request.fetch_rights`). A parked request is decided again when it is answered.
- From version 16 on NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH carry the current leader (KIP-951).
- A consumer whose quota is over gets no records, and the throttle time (`request.throttled_fetch`).
- Up to version 5 KAFKA_STORAGE_ERROR becomes NOT_LEADER_OR_FOLLOWER, which those clients retry.

Records are slices of segment files, which the transport sends from the file. Less than 32 KiB of a partition are read
here, because sending them separately costs more than copying them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Sequence
from typing import Final

from odradek.broker.purgatory import DelayedOperation
from odradek.broker.replication.fetch.available_bytes import AvailableBytes
from odradek.broker.replication.fetch.fetch_session import Fetch, Row, WantedPartition
from odradek.broker.replication.fetch.fetched_records import FetchedRecords
from odradek.broker.replication.partition import Partition
from odradek.broker.request.context import RequestContext
from odradek.broker.request.endpoints import current_leader
from odradek.broker.request.fetch_rights import FetchRights
from odradek.broker.request.fetch_rows import NO_EPOCH, NO_LEADER, NO_SNAPSHOT, add_bounds, error_row, release
from odradek.broker.request.row_errors import as_row_error
from odradek.broker.request.services import Services
from odradek.broker.request.throttled_fetch import with_quotas
from odradek.broker.request.time_slices import Steps
from odradek.broker.storage.log_slice import LogSlice
from odradek.protocol.errors import NO_ERROR, ErrorCode, KafkaError
from odradek.protocol.messages.fetch import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

_READ_COMMITTED: Final = 1
_READ_LIMIT: Final = 32 * 1024  # bytes; 100 partitions of 170 B: 604 µs read, 1,400 µs by sendfile
_NO_BROKER_EPOCH: Final = -1
_MAX_OFFSET: Final = 0x7FFF_FFFF_FFFF_FFFF
_LONG: Final = 256
"""A request with more partitions is answered in slices; so many take 1 ms."""
_FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
_FIRST_VERSION_WITH_LEADERS: Final = 16
_LAST_VERSION_WITHOUT_STORAGE_ERROR: Final = 5

# Kafka's handler refuses these before it reads: they do not end a wait and do not count as a failed read.
_NOT_THERE: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
# Errors that fetchers must expect. Any other error counts as a failed request, as in Kafka.
_EXPECTED: Final = (
    *_NOT_THERE,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_NO_EPOCH: Final = NO_EPOCH
_NO_LEADER: Final = NO_LEADER
_NO_SNAPSHOT: Final = NO_SNAPSHOT
_WITH_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(
    services: Services, context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    replica_id, broker_epoch = request.replica_id, _NO_BROKER_EPOCH
    if context.api_version >= _FIRST_VERSION_WITH_REPLICA_STATE:
        replica_id, broker_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    rights: FetchRights | None = None
    if replica_id >= 0 or services.authorizer is not None:
        rights = FetchRights(services, context, replica_id)
        replica_id = rights.replica_id
    owner = context.connection.principal
    try:
        fetch = services.fetch_sessions.begin(request, context.api_version, from_follower=replica_id >= 0, owner=owner)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = with_quotas(fetch, services, context, replica_id)
    reading = _Reading(services, context, request, fetch, replica_id, broker_epoch, rights)
    if len(fetch.partitions) > _LONG:
        return _answer_in_slices(services, context, request, reading)
    rows = reading.read()
    for partition in reading.found:
        partition.metrics.fetch_requests += 1
    if reading.must_answer or reading.size >= reading.min_bytes or request.max_wait_ms <= 0:
        return reading.respond(rows)
    release(rows)
    return services.fetch_purgatory.park(DelayedFetch(reading), reading.found, request.max_wait_ms)


def error_response(request: FetchRequest, code: ErrorCode, message: str) -> FetchResponse:
    """Up to version 12 every partition has the error, too: the oldest versions have no field for the request."""
    topics = [
        FetchableTopicResponse(topic.topic, topic.topic_id, [error_row(wanted, code) for wanted in topic.partitions])
        for topic in request.topics
        if topic.topic
    ]
    return FetchResponse(error_code=code, session_id=request.session_id, responses=topics)


async def _answer_in_slices(
    services: Services, context: RequestContext, request: FetchRequest, reading: _Reading
) -> FetchResponse:
    """Answer a fetch of many partitions. It is parked like any other, and read again when it is ready."""
    slices, peer = services.time_slices, context.connection
    rows: list[Row] = []
    try:
        await slices.finish(reading.read_in_steps(rows), peer)
        for partition in reading.found:
            partition.metrics.fetch_requests += 1
        if not reading.must_answer and reading.size < reading.min_bytes and request.max_wait_ms > 0:
            release(rows)
            rows.clear()
            waiting = ParkedFetch(reading)
            await services.fetch_purgatory.park(waiting, reading.found, request.max_wait_ms)
            await slices.finish(reading.read_in_steps(rows), peer)
        return reading.respond(rows)
    except BaseException:
        release(rows)
        raise


class _Reading:
    """The reads of one request; repeated when a parked request is answered.

    After `read`: `size` is the number of bytes read; `must_answer` is true if the response must not wait for more;
    `found` maps each existing partition to its part of the request, `sizes` to the number of bytes read from it. For a
    follower, `sent` maps it to the high watermark that was sent last in its session.
    """

    size: int
    must_answer: bool
    found: dict[Partition, FetchPartition]
    sizes: dict[Partition, int]

    def __init__(
        self,
        services: Services,
        context: RequestContext,
        request: FetchRequest,
        fetch: Fetch,
        replica_id: int,
        broker_epoch: int,
        rights: FetchRights | None,
    ) -> None:
        self.max_bytes = min(request.max_bytes, services.config.fetch_max_bytes, fetch.most_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.read_committed = request.isolation_level == _READ_COMMITTED
        self._services = services
        self._context = context
        self._version = context.api_version
        self._fetch = fetch
        self._rights = rights
        self.replica_id = replica_id
        self.sent: dict[Partition, int] = {}
        self._broker_epoch = broker_epoch
        self._is_recorded = False
        self._node_endpoints: dict[int, NodeEndpoint] = {}

    def read(self) -> list[Row]:
        """Read every wanted partition; the rows' slices belong to the caller."""
        self._begin()
        rows: list[Row] = []
        for wanted in self._fetch.partitions:
            rows.append((wanted, self._read_partition(wanted)))  # noqa: PERF401 - a comprehension is one more frame
        self._end()
        return rows

    def read_in_steps(self, rows: list[Row]) -> Steps[None]:
        """As `read`, into `rows`; their slices belong to the caller, also if the steps are not finished."""
        self._begin()
        for wanted in self._fetch.partitions:
            yield
            rows.append((wanted, self._read_partition(wanted)))
        self._end()

    def _begin(self) -> None:
        self.size = 0
        self.must_answer = False
        self.found = {}
        self.sizes = {}

    def _end(self) -> None:
        self._is_recorded = True
        self.must_answer = self.must_answer or not self.found

    def end_of(self, partition: Partition) -> int:
        """The end (exclusive) of what this request may read of a partition."""
        if self.replica_id >= 0:
            return partition.log.log_end_offset
        return partition.readable_end_offset(read_committed=self.read_committed)

    def respond(self, rows: Sequence[Row]) -> FetchResponse:
        """Build the response, which owns the slices from then on."""
        response = self._fetch.respond(rows)
        if response.error_code or response.throttle_time_ms:
            release(rows)
        elif self.replica_id >= 0:
            self._services.metrics.replication_bytes_out += sum(self.sizes.values())
        else:
            for partition, size in self.sizes.items():
                partition.metrics.bytes_out += size
        if self._node_endpoints:
            response.node_endpoints = list(self._node_endpoints.values())
        return response

    def _read_partition(self, wanted: WantedPartition) -> PartitionData:
        request = wanted.request
        refused = None if self._rights is None else self._rights.refusal_of(wanted)
        if refused is not None:
            return self._failed(wanted, refused)
        partitions = self._services.partitions
        if self._version >= FIRST_VERSION_WITH_TOPIC_IDS:
            partition = partitions.find_by_id(wanted.topic_id, request.partition)
        else:
            partition = partitions.find(wanted.topic, request.partition)
        if isinstance(partition, KafkaError):  # returned, not raised, because a request may name thousands
            return self._failed(wanted, partition)
        if self.replica_id >= 0:
            try:
                partition.check_follower(self.replica_id, request.current_leader_epoch)
            except KafkaError as error:
                return self._failed(wanted, error)
        self.found[partition] = request
        try:
            row = self._read(partition, request)
        except KafkaError as error:
            if error.code not in _EXPECTED:
                partition.metrics.failed_fetch_requests += 1
            row = self._failed(wanted, error)
            if self.replica_id >= 0 and error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                add_bounds(row, partition)
            return row
        except Exception as error:  # noqa: BLE001 - a defect fails this partition only
            partition.metrics.failed_fetch_requests += 1
            return self._failed(wanted, as_row_error(self._services, partition, error))
        if self.replica_id >= 0:
            self._read_by_follower(partition, wanted, row)
        return row

    def _read_by_follower(self, partition: Partition, wanted: WantedPartition, row: PartitionData) -> None:
        """Record the follower's offset when its request arrives; answer at once if it has an old high watermark."""
        request = wanted.request
        if not self._is_recorded and row.diverging_epoch.epoch < 0:
            partition.record_follower_fetch(
                self.replica_id,
                self._broker_epoch,
                request.current_leader_epoch,
                request.fetch_offset,
                request.log_start_offset,
            )
            row.high_watermark = partition.high_watermark
        partition.followers.record_answer(self.replica_id, self._broker_epoch)
        if wanted.high_watermark >= 0:
            self.sent[partition] = wanted.high_watermark
            if row.high_watermark > wanted.high_watermark:
                self.must_answer = True

    def _read(self, partition: Partition, request: FetchPartition) -> PartitionData:
        found = partition.read_for_fetch(
            request.fetch_offset,
            min(request.partition_max_bytes, self.max_bytes - self.size),
            not self.size,
            self.read_committed,
            request.current_leader_epoch,
            request.last_fetched_epoch,
            self.replica_id,
        )
        aborted = self._aborted_transactions(partition, request, found) if self.read_committed else None
        records = found.records
        if isinstance(records, LogSlice) and records.length < _READ_LIMIT:
            records = partition.log.bytes_of(records)
        size = len(records)
        self.sizes[partition] = size
        self.size += size
        diverging = _NO_EPOCH
        if found.diverging_epoch is not None:
            self.must_answer = True
            diverging = EpochEndOffset(*found.diverging_epoch)
        return PartitionData(
            request.partition,
            NO_ERROR,
            found.high_watermark,
            found.last_stable_offset,
            found.log_start_offset,
            diverging,
            _NO_LEADER,
            _NO_SNAPSHOT,
            aborted,
            -1,
            records,
        )

    @staticmethod
    def _aborted_transactions(
        partition: Partition, request: FetchPartition, found: FetchedRecords
    ) -> list[AbortedTransaction]:
        """Look up the aborted transactions of the found records; on failure release the records, and re-raise."""
        if not isinstance(found.records, LogSlice):
            return []
        try:
            aborted = partition.log.aborted_transactions_of(request.fetch_offset, found.records)
        except BaseException:
            found.records.release()
            raise
        return [AbortedTransaction(producer_id, first_offset) for producer_id, first_offset in aborted]

    def _failed(self, wanted: WantedPartition, error: KafkaError) -> PartitionData:
        code = error.code
        if code not in _NOT_THERE:
            self.must_answer = True
        if code is ErrorCode.KAFKA_STORAGE_ERROR and self._version <= _LAST_VERSION_WITHOUT_STORAGE_ERROR:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        row = error_row(wanted.request, code)
        if code not in _NOT_THERE:
            row.aborted_transactions = None
        if code in _WITH_LEADER and self._version >= _FIRST_VERSION_WITH_LEADERS:
            leader = current_leader(
                self._services, self._context, wanted.topic, wanted.topic_id, wanted.request.partition
            )
            row.current_leader = LeaderIdAndEpoch(leader.node_id, leader.leader_epoch)
            if leader.endpoint is not None:
                self._node_endpoints[leader.node_id] = NodeEndpoint(*leader.endpoint)
        return row


class DelayedFetch(DelayedOperation[FetchResponse]):
    """A fetch that waits for `min_bytes`."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._available = AvailableBytes(reading.sizes)

    def is_ready(self, key: Hashable) -> bool:
        assert isinstance(key, Partition)
        reading = self._reading
        request = reading.found[key]
        sent = reading.sent
        if sent and key.high_watermark > sent.get(key, _MAX_OFFSET):
            return True
        end = reading.end_of(key)
        if reading.min_bytes <= 1:
            return end > request.fetch_offset
        return self._available.count(key, request, end) or self._available.total >= reading.min_bytes

    def answer(self) -> FetchResponse:
        return self._reading.respond(self._reading.read())


class ParkedFetch(DelayedFetch):
    """A fetch of many partitions. `_answer_in_slices` builds its response, so this answer is empty."""

    def answer(self) -> FetchResponse:
        return FetchResponse()
