"""DescribeLogDirs (API key 35): an admin client reads the replicas in a broker's log directories (KIP-113)."""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i16, i32, i64, ignorable, message, since, string


class DescribableLogDirTopic(Structure):
    topic: string = ""
    partitions: list[i32] = []


@message(key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsRequest(Message):
    """Versions 1–5, flexible from 2.

    Kafka 4.0 dropped v0 (KIP-896). v3, v4 and v5 change only the response.
    """

    topics: list[DescribableLogDirTopic] | None = []  # None for all


class DescribeLogDirsPartition(Structure):
    partition_index: i32 = 0
    partition_size: i64 = 0  # bytes of its segments
    # High watermark minus log end offset, at least 0; of a future log its lag behind the current one.
    offset_lag: i64 = 0
    is_future_key: boolean = False  # a copy in progress from another directory, which will replace the replica


class DescribeLogDirsTopic(Structure):
    name: string = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Structure):
    error_code: i16 = 0  # KAFKA_STORAGE_ERROR (56) when the directory is offline
    log_dir: string = ""  # absolute path
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[i64, since(4), ignorable] = -1  # of the volume; -1 unknown
    usable_bytes: Annotated[i64, since(4), ignorable] = -1  # free on the volume; -1 unknown
    is_cordoned: Annotated[boolean, since(5), ignorable] = False  # accepts no new replicas


@message(key=35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsResponse(Message):
    """Versions 1–5, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219). v3 adds an error for the request as a whole, v4
    the size of the volume and its free space (KIP-827), v5 whether the directory accepts no new replicas (KIP-1066).
    """

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(3), ignorable] = 0
    results: list[DescribeLogDirsResult] = []
