"""Fetch (1), versions 4–18: record batches from each partition that is asked for, as they are on the disk.

The answer goes out when there are `min_bytes`, when a partition has an error or a diverging epoch, when nothing is
asked for, or when `max_wait_ms` have passed: until then the request is parked in the fetch purgatory and woken by
what happens to its partitions.

- Partitions are read in the order of the request or session. `max_bytes` (and the broker's fetch.max.bytes) bounds the
  whole, a partition's own limit its part; but the first partition with anything to read gives at least one whole batch,
  however large, so that a consumer always gets on (KIP-74). A partition's last batch may be cut off by a limit.
- Sessions: `replication.fetch_session` (KIP-227). Topics go by name up to version 12, by id from 13 on (KIP-516).
- `read_committed` ends at the last stable offset and lists the aborted transactions of what was read (KIP-98).
- A fetcher that names its leader epoch is told FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH if it is another (KIP-320);
  one that names the epoch it fetched last, where its log has left ours (KIP-595), and then nothing is read.
- From version 16 on NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH carry the leader that we know of (KIP-951).
- Up to version 5 KAFKA_STORAGE_ERROR is told as NOT_LEADER_OR_FOLLOWER, which those clients know how to retry.

Records are slices of segment files, which the transport sends from the file; less than 32 KiB of a partition are read
here, since to send them apart costs more than the copy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Sequence
from typing import Final

from odradek.broker.purgatory import DelayedOperation
from odradek.broker.replication.fetch_session import Fetch, Row, WantedPartition
from odradek.broker.replication.partition import FetchedRecords, Partition
from odradek.broker.request.context import RequestContext
from odradek.broker.request.endpoints import current_leader
from odradek.broker.request.row_errors import as_row_error
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.storage.log_slice import LogSlice
from odradek.protocol.errors import NO_ERROR, ErrorCode, KafkaError
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)

_READ_COMMITTED: Final = 1
_READ_LIMIT: Final = 32 * 1024  # bytes; 100 partitions of 170 B: 604 µs read, 1,400 µs by sendfile
_LONG: Final = 256
"""Partitions of a request that is answered in slices when it has more: a turn of 1 ms."""
_FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
_FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
_FIRST_VERSION_WITH_LEADERS: Final = 16
_LAST_VERSION_WITHOUT_STORAGE_ERROR: Final = 5

# Kafka's handler refuses these before it reads: they neither end a wait nor stand for a read that failed.
_NOT_THERE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
# What fetchers are meant to run into; any other error is, as in Kafka, a request that failed.
_EXPECTED: Final = (
    *_NOT_THERE,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_TELL_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

# The encoder leaves these out; shared, because a fetch of a thousand partitions would make three thousand of them.
_NO_EPOCH: Final = EpochEndOffset()
_NO_LEADER: Final = LeaderIdAndEpoch()
_NO_SNAPSHOT: Final = SnapshotId()


def handle(
    services: Services, context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    replica_id = request.replica_id
    if context.api_version >= _FIRST_VERSION_WITH_REPLICA_STATE:
        replica_id = request.replica_state.replica_id
    try:
        fetch = services.fetch_sessions.begin(request, context.api_version, from_follower=replica_id >= 0)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    reading = _Reading(services, context, request, fetch, replica_id)
    if len(fetch.partitions) > _LONG:
        return _answer_in_slices(services, context, request, reading)
    rows = reading.read()
    for partition in reading.found:
        partition.metrics.fetch_requests += 1
    if reading.must_answer or reading.size >= reading.min_bytes or request.max_wait_ms <= 0:
        return reading.respond(rows)
    _release(rows)
    return services.fetch_purgatory.park(DelayedFetch(reading), reading.found, request.max_wait_ms)


def error_response(request: FetchRequest, code: ErrorCode, message: str) -> FetchResponse:
    """Up to version 12 every partition carries the error too: the oldest have no place for one of the request."""
    topics = [
        FetchableTopicResponse(topic.topic, topic.topic_id, [_error_row(wanted, code) for wanted in topic.partitions])
        for topic in request.topics
        if topic.topic
    ]
    return FetchResponse(error_code=code, session_id=request.session_id, responses=topics)


async def _answer_in_slices(
    services: Services, context: RequestContext, request: FetchRequest, reading: _Reading
) -> FetchResponse:
    """Answer a fetch of many partitions. It is parked as any other, and read again when it is ready."""
    slices, peer = services.time_slices, context.connection
    rows: list[Row] = []
    try:
        await slices.finish(reading.read_in_steps(rows), peer)
        for partition in reading.found:
            partition.metrics.fetch_requests += 1
        if not reading.must_answer and reading.size < reading.min_bytes and request.max_wait_ms > 0:
            _release(rows)
            rows.clear()
            waiting = ParkedFetch(reading)
            await services.fetch_purgatory.park(waiting, reading.found, request.max_wait_ms)
            await slices.finish(reading.read_in_steps(rows), peer)
        return reading.respond(rows)
    except BaseException:
        _release(rows)
        raise


class _Reading:
    """One request's reads: may be done again, when a parked request is answered.

    After `read`: `size` is the number of bytes read, `must_answer` whether the answer must not wait for more; `found`
    has each partition that was found with what is wanted of it, `sizes` how many bytes it gave.
    """

    size: int
    must_answer: bool
    found: dict[Partition, FetchPartition]
    sizes: dict[Partition, int]

    def __init__(
        self, services: Services, context: RequestContext, request: FetchRequest, fetch: Fetch, replica_id: int
    ) -> None:
        self.max_bytes = min(request.max_bytes, services.config.fetch_max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.read_committed = request.isolation_level == _READ_COMMITTED
        self._services = services
        self._context = context
        self._version = context.api_version
        self._fetch = fetch
        self._replica_id = replica_id
        self._node_endpoints: dict[int, NodeEndpoint] = {}

    def read(self) -> list[Row]:
        """Read every wanted partition; the rows' slices belong to the caller."""
        self._begin()
        rows: list[Row] = []
        for wanted in self._fetch.partitions:
            rows.append((wanted, self._read_partition(wanted)))  # noqa: PERF401 - a frame less than a comprehension
        if not self.found:
            self.must_answer = True
        return rows

    def read_in_steps(self, rows: list[Row]) -> Steps[None]:
        """As `read`, into `rows`; the slices are the caller's, also of what is left off."""
        self._begin()
        for wanted in self._fetch.partitions:
            yield
            rows.append((wanted, self._read_partition(wanted)))
        if not self.found:
            self.must_answer = True

    def _begin(self) -> None:
        self.size = 0
        self.must_answer = False
        self.found = {}
        self.sizes = {}

    def respond(self, rows: Sequence[Row]) -> FetchResponse:
        """Make the response and leave the slices to it."""
        response = self._fetch.respond(rows)
        if response.error_code:
            _release(rows)
        else:
            for partition, size in self.sizes.items():
                partition.metrics.bytes_out += size
        if self._node_endpoints:
            response.node_endpoints = list(self._node_endpoints.values())
        return response

    def _read_partition(self, wanted: WantedPartition) -> PartitionData:
        request = wanted.request
        partitions = self._services.partitions
        if self._version >= _FIRST_VERSION_WITH_TOPIC_IDS:
            partition = partitions.find_by_id(wanted.topic_id, request.partition)
        else:
            partition = partitions.find(wanted.topic, request.partition)
        if isinstance(partition, KafkaError):  # returned, because a request may name thousands
            return self._failed(wanted, partition)
        if self._replica_id >= 0:
            try:
                partition.check_follower(self._replica_id, request.current_leader_epoch)
            except KafkaError as error:
                return self._failed(wanted, error)
        self.found[partition] = request
        try:
            return self._read(partition, request)
        except KafkaError as error:
            if error.code not in _EXPECTED:
                partition.metrics.failed_fetch_requests += 1
            return self._failed(wanted, error)
        except Exception as error:  # noqa: BLE001 - a defect may fail this partition, but not the others
            partition.metrics.failed_fetch_requests += 1
            return self._failed(wanted, as_row_error(self._services, partition, error))

    def _read(self, partition: Partition, request: FetchPartition) -> PartitionData:
        found = partition.read_for_fetch(
            request.fetch_offset,
            min(request.partition_max_bytes, self.max_bytes - self.size),
            not self.size,
            self.read_committed,
            request.current_leader_epoch,
            request.last_fetched_epoch,
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
        """Look them up. If that fails, the records are let go of: nobody will send them."""
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
        row = _error_row(wanted.request, code)
        if code not in _NOT_THERE:
            row.aborted_transactions = None
        if code in _TELL_LEADER and self._version >= _FIRST_VERSION_WITH_LEADERS:
            leader = current_leader(
                self._services, self._context, wanted.topic, wanted.topic_id, wanted.request.partition
            )
            row.current_leader = LeaderIdAndEpoch(leader.node_id, leader.leader_epoch)
            if leader.endpoint is not None:
                self._node_endpoints[leader.node_id] = NodeEndpoint(*leader.endpoint)
        return row


class DelayedFetch(DelayedOperation[FetchResponse]):
    """A fetch that waits for `min_bytes`; what a partition has is looked up again when something happens to it."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._available: dict[Partition, int] = dict(reading.sizes)

    def is_ready(self, key: Hashable) -> bool:
        assert isinstance(key, Partition)
        reading = self._reading
        request = reading.found[key]
        if reading.min_bytes <= 1:
            return key.readable_end_offset(read_committed=reading.read_committed) > request.fetch_offset
        try:
            found = key.read_for_fetch(
                request.fetch_offset,
                request.partition_max_bytes,
                True,
                reading.read_committed,
                request.current_leader_epoch,
                request.last_fetched_epoch,
            )
        except KafkaError:
            return True
        if isinstance(found.records, LogSlice):
            found.records.release()
        self._available[key] = len(found.records)
        return found.diverging_epoch is not None or sum(self._available.values()) >= reading.min_bytes

    def answer(self) -> FetchResponse:
        return self._reading.respond(self._reading.read())


class ParkedFetch(DelayedFetch):
    """A fetch of many partitions: its answer is made elsewhere, in slices."""

    def answer(self) -> FetchResponse:
        return FetchResponse()


def _error_row(wanted: FetchPartition, code: ErrorCode) -> PartitionData:
    return PartitionData(wanted.partition, code, -1, -1, -1, _NO_EPOCH, _NO_LEADER, _NO_SNAPSHOT, records=b"")


def _release(rows: Sequence[Row]) -> None:
    for _, data in rows:
        if isinstance(data.records, LogSlice):
            data.records.release()
