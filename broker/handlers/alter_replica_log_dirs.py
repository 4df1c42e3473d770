"""AlterReplicaLogDirs (34), versions 1–2: move partitions' logs to other log directories (KIP-113).

| directory | partition | answer |
|---|---|---|
| not one of this broker's | any | LOG_DIR_NOT_FOUND |
| has failed | any | KAFKA_STORAGE_ERROR |
| works | not on this broker | UNKNOWN_TOPIC_OR_PARTITION; REPLICA_NOT_AVAILABLE if it exists on another broker |
| has the log | on this broker | NONE |
| works, and does not have the log | on this broker | KAFKA_STORAGE_ERROR |

Differs from Kafka in the last line: Kafka copies the log while it is in use, which is not built here.
"""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(
    services: Services, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> Steps[AlterReplicaLogDirsResponse]:
    paths: dict[str, dict[int, str]] = {}  # a partition that is named twice has one row, as in Kafka; the last counts
    for wanted in request.dirs:
        for topic in wanted.topics:
            yield
            paths.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, wanted.path))
    results = []
    for name, path_of in paths.items():
        rows = []
        for index, path in path_of.items():
            rows.append(AlterReplicaLogDirPartitionResult(index, _move(services, name, index, path)))
            yield
        results.append(AlterReplicaLogDirTopicResult(name, rows))
    return AlterReplicaLogDirsResponse(results=results)


def error_response(request: AlterReplicaLogDirsRequest, code: ErrorCode, message: str) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic.name, [AlterReplicaLogDirPartitionResult(index, code) for index in topic.partitions]
            )
            for wanted in request.dirs
            for topic in wanted.topics
        ]
    )


def _move(services: Services, topic: str, index: int, path: str) -> ErrorCode:
    target = _log_dir(services, path)
    if target is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if target.failure.error is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = services.partitions.find(topic, index)
    if isinstance(partition, KafkaError):
        if partition.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return ErrorCode.REPLICA_NOT_AVAILABLE  # the code that Kafka uses for this in this API
        return partition.code
    return ErrorCode.NONE if (topic, index) in target.logs else ErrorCode.KAFKA_STORAGE_ERROR


def _log_dir(services: Services, path: str) -> LogDir | None:
    """This broker's log directory at `path`, or None."""
    for log_dir in services.partitions.log_dirs:
        if str(log_dir.path.absolute()) == path:
            return log_dir
    return None
