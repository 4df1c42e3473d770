"""ListOffsets (2), versions 1–11: offsets by timestamp, or by a special timestamp of `replication.offset_lookup`.

Without Describe a topic is TOPIC_AUTHORIZATION_FAILED. A special timestamp that is unknown, or newer than the version,
is UNSUPPORTED_VERSION for its partition. A partition that is named twice is INVALID_REQUEST. `read_committed` (from
version 2 on) ends at the last stable offset. From version 4 on the request may carry a leader epoch
(FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH), and the response has that of the offset. OFFSET_NOT_AVAILABLE (see
`offset_lookup`) is LEADER_NOT_AVAILABLE up to version 4, whose clients do not know it. The timeout of version 10 is for
look-ups in tiered storage, which does not exist here.

A stored batch that cannot be decoded fails its row only, with Kafka's codes: UNKNOWN_SERVER_ERROR if it cannot be
decompressed, INVALID_RECORD if its records do not parse.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, NamedTuple

from odradek.broker.replication.offset_lookup import FIRST_VERSIONS, FoundOffset, find_offset, find_offset_on_thread
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import refusal_of
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.storage.index.timestamp_lookup import DecodingBudget
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import DecompressionLimitError, ErrorCode, KafkaError
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

_READ_COMMITTED = 1
_NEVER = 0x7FFF
_FIRST_VERSION_WITH_LEADER_EPOCH = 4
_FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
_LONG: Final = 32
"""A request with more partitions is executed in slices; looking up so many takes 1 ms."""
DECODED_BYTES: Final = 64 * 1024
"""The most bytes of records that a request decodes on the event loop, as for an append; a thread does the rest."""


_Answer = ListOffsetsResponse | Awaitable[ListOffsetsResponse]


class _Slow(NamedTuple):
    """A row that a thread fills in later, with its part of the request."""

    rows: list[ListOffsetsPartitionResponse]
    place: int
    topic: str
    wanted: ListOffsetsPartition


def handle(services: Services, context: RequestContext, request: ListOffsetsRequest) -> Steps[_Answer] | _Answer:
    work = _ListOffsets(services, context, request)
    if sum([len(topic.partitions) for topic in request.topics]) > _LONG:
        return work.answer_in_steps()
    for _ in work.look_up_all():
        pass
    return work.answer()


class _ListOffsets:
    """The execution of one request: its response, and the rows of it that a thread must look up."""

    __slots__ = ("_budget", "_context", "_request", "_services", "_slow", "_topics")

    def __init__(self, services: Services, context: RequestContext, request: ListOffsetsRequest) -> None:
        self._services = services
        self._context = context
        self._request = request
        self._budget = DecodingBudget(DECODED_BYTES)
        self._topics: list[ListOffsetsTopicResponse] = []
        self._slow: list[_Slow] = []

    def answer_in_steps(self) -> Steps[_Answer]:
        """Look up many partitions in slices."""
        yield from self.look_up_all()
        return self.answer()

    def answer(self) -> _Answer:
        """Return the response when all partitions were looked up."""
        response = ListOffsetsResponse(topics=self._topics)
        if not self._slow:
            return response
        return _answer_slow_rows(self._services, self._context, self._request, response, self._slow)

    def look_up_all(self) -> Steps[None]:
        """Make the rows of the response; those in `_slow` are not complete."""
        services, context, request = self._services, self._context, self._request
        named: set[tuple[str, int]] = set()
        named_twice: set[tuple[str, int]] = set()
        for topic in request.topics:
            for wanted in topic.partitions:
                key = (topic.name, wanted.partition_index)
                (named_twice if key in named else named).add(key)
            yield
        for topic in request.topics:
            yield
            rows: list[ListOffsetsPartitionResponse] = []
            refused = refusal_of(services, context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
            for wanted in topic.partitions:
                yield
                if refused is not None:
                    rows.append(_error_row(context.api_version, wanted, refused))
                    continue
                key = (topic.name, wanted.partition_index)
                if key in named_twice:
                    if key in named:  # one row for all
                        named.remove(key)
                        rows.append(ListOffsetsPartitionResponse(wanted.partition_index, ErrorCode.INVALID_REQUEST))
                    continue
                try:
                    row = _look_up(
                        services, context.api_version, request.isolation_level, topic.name, wanted, self._budget
                    )
                except KafkaError as error:
                    row = _error_row(context.api_version, wanted, error)
                except DecompressionLimitError:
                    self._budget.left = 0  # later look-ups are probably as slow: do not start to decode them here
                    self._slow.append(_Slow(rows, len(rows), topic.name, wanted))
                    row = ListOffsetsPartitionResponse(wanted.partition_index)
                rows.append(row)
            self._topics.append(ListOffsetsTopicResponse(topic.name, rows))


async def _answer_slow_rows(
    services: Services,
    context: RequestContext,
    request: ListOffsetsRequest,
    response: ListOffsetsResponse,
    slow: list[_Slow],
) -> ListOffsetsResponse:
    """Fill in the slow rows one after the other, so that no request occupies more than one search thread."""
    for rows, place, topic, wanted in slow:
        try:
            partition = services.partitions.get(topic, wanted.partition_index)
            found = await find_offset_on_thread(
                partition, wanted.timestamp, read_committed=request.isolation_level == _READ_COMMITTED
            )
            rows[place] = _row(context.api_version, wanted, found)
        except KafkaError as error:
            rows[place] = _error_row(context.api_version, wanted, error)
    return response


def error_response(request: ListOffsetsRequest, code: ErrorCode, message: str) -> ListOffsetsResponse:
    topics = [
        ListOffsetsTopicResponse(
            topic.name, [ListOffsetsPartitionResponse(wanted.partition_index, code) for wanted in topic.partitions]
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=topics)


def _look_up(
    services: Services,
    version: int,
    isolation_level: int,
    topic: str,
    wanted: ListOffsetsPartition,
    budget: DecodingBudget,
) -> ListOffsetsPartitionResponse:
    if wanted.timestamp < 0 and version < FIRST_VERSIONS.get(wanted.timestamp, _NEVER):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"version {version} has no timestamp {wanted.timestamp}")
    partition = services.partitions.find(topic, wanted.partition_index)
    if isinstance(partition, KafkaError):
        return ListOffsetsPartitionResponse(wanted.partition_index, partition.code)
    found = find_offset(
        partition,
        wanted.timestamp,
        read_committed=isolation_level == _READ_COMMITTED,
        current_leader_epoch=wanted.current_leader_epoch,
        budget=budget,
    )
    return _row(version, wanted, found)


def _error_row(version: int, wanted: ListOffsetsPartition, error: KafkaError) -> ListOffsetsPartitionResponse:
    code = error.code
    if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < _FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    return ListOffsetsPartitionResponse(wanted.partition_index, code)


def _row(version: int, wanted: ListOffsetsPartition, found: FoundOffset) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        wanted.partition_index,
        ErrorCode.NONE,
        found.timestamp,
        found.offset,
        found.leader_epoch if version >= _FIRST_VERSION_WITH_LEADER_EPOCH else -1,
    )
