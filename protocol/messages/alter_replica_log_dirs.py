"""AlterReplicaLogDirs (API key 34): an admin client moves replicas between the log directories of a broker (KIP-113).

The broker that holds the replicas receives it, responds at once, and copies in the background.
"""

from odradek.protocol.schema import Message, Structure, i16, i32, message, string


class AlterReplicaLogDirTopic(Structure):
    name: string = ""
    partitions: list[i32] = []


class AlterReplicaLogDir(Structure):
    path: string = ""  # as in `log.dirs`
    topics: list[AlterReplicaLogDirTopic] = []


@message(key=34, versions=(1, 2), flexible_since=2)
class AlterReplicaLogDirsRequest(Message):
    """Versions 1–2, flexible from 2.

    Kafka 4.0 dropped v0 (KIP-896).
    """

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0  # LOG_DIR_NOT_FOUND (57), KAFKA_STORAGE_ERROR (56), REPLICA_NOT_AVAILABLE (9), …


class AlterReplicaLogDirTopicResult(Structure):
    topic_name: string = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


@message(key=34, versions=(1, 2), flexible_since=2)
class AlterReplicaLogDirsResponse(Message):
    """Versions 1–2, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219).
    """

    throttle_time_ms: i32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
