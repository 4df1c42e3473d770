"""DescribeLogDirs (35), versions 1–5: the log directories, and the size of each partition's log in them (KIP-113).

Null topics request every log; a log that does not exist is omitted, and so is a topic without logs. A directory that
has failed is KAFKA_STORAGE_ERROR, without logs. The lag is 0 for a partition that is served, -1 for a log without a
topic. There are no future replicas, because logs are never moved between directories.

Version 3 adds an error of the whole request, version 4 (KIP-827) the size and the free space of the file system,
version 5 (KIP-1066) whether the directory refuses new partitions, which it never does.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import TimeSlice
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

_UNKNOWN = -1


async def handle(
    services: Services, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    time_slice = services.time_slices.begin(context.connection)
    return DescribeLogDirsResponse(
        results=[await _describe(services, time_slice, log_dir, request) for log_dir in services.partitions.log_dirs]
    )


def error_response(request: DescribeLogDirsRequest, code: ErrorCode, message: str) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=code)


async def _describe(
    services: Services, time_slice: TimeSlice, log_dir: LogDir, request: DescribeLogDirsRequest
) -> DescribeLogDirsResult:
    path = str(log_dir.path.absolute())
    try:
        volume = await services.partitions.volume_of(log_dir)
    except KafkaError as error:
        return DescribeLogDirsResult(error.code, path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for topic, index in _wanted(log_dir, request):
        await time_slice.step()
        log = log_dir.logs.get((topic, index))
        if log is not None:
            lag = _lag(services, topic, index)
            topics.setdefault(topic, []).append(DescribeLogDirsPartition(index, log.size_bytes, lag))
    return DescribeLogDirsResult(
        ErrorCode.NONE, path, [DescribeLogDirsTopic(*topic) for topic in topics.items()], *volume
    )


def _wanted(log_dir: LogDir, request: DescribeLogDirsRequest) -> Iterable[tuple[str, int]]:
    if request.topics is None:
        return tuple(log_dir.logs)  # a copy, because threads add logs
    return dict.fromkeys((topic.topic, index) for topic in request.topics for index in topic.partitions)


def _lag(services: Services, topic: str, index: int) -> int:
    """The number of records that the log is behind the high watermark; 0 for the leader."""
    partition = services.partitions.find(topic, index)
    if isinstance(partition, KafkaError):
        return _UNKNOWN
    return max(partition.high_watermark - partition.log.log_end_offset, 0)
