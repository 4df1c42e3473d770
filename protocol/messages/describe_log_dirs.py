"""DescribeLogDirs (API key 35)."""

from typing import Annotated

from protocol.schema import Message, Structure, boolean, i16, i32, i64, ignorable, message, since, string


class DescribableLogDirTopic(Structure):
    topic: string = ""
    partitions: list[i32] = []


@message(key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsRequest(Message):
    """DescribeLogDirsRequest, versions 1–5, flexible from 2."""

    topics: list[DescribableLogDirTopic] | None = []


class DescribeLogDirsPartition(Structure):
    partition_index: i32 = 0
    partition_size: i64 = 0
    offset_lag: i64 = 0
    is_future_key: boolean = False


class DescribeLogDirsTopic(Structure):
    name: string = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Structure):
    error_code: i16 = 0
    log_dir: string = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[i64, since(4), ignorable] = -1
    usable_bytes: Annotated[i64, since(4), ignorable] = -1
    is_cordoned: Annotated[boolean, since(5), ignorable] = False


@message(key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsResponse(Message):
    """DescribeLogDirsResponse, versions 1–5, flexible from 2."""

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(3), ignorable] = 0
    results: list[DescribeLogDirsResult] = []
