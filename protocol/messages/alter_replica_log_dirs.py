"""AlterReplicaLogDirs (API key 34)."""

from protocol.schema import Message, Structure, i16, i32, message, string


class AlterReplicaLogDirTopic(Structure):
    name: string = ""
    partitions: list[i32] = []


class AlterReplicaLogDir(Structure):
    path: string = ""
    topics: list[AlterReplicaLogDirTopic] = []


@message(key=34, versions=(1, 2), flexible_since=2)
class AlterReplicaLogDirsRequest(Message):
    """AlterReplicaLogDirsRequest, versions 1–2, flexible from 2."""

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0


class AlterReplicaLogDirTopicResult(Structure):
    topic_name: string = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


@message(key=34, versions=(1, 2), flexible_since=2)
class AlterReplicaLogDirsResponse(Message):
    """AlterReplicaLogDirsResponse, versions 1–2, flexible from 2."""

    throttle_time_ms: i32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
