"""OffsetForLeaderEpoch (23), versions 2–4: the end of an epoch in the leader's log (KIP-101, KIP-279, KIP-320).

The answer for epoch e is the largest epoch of the log that is not above e, and the offset after its last record; for
the current epoch that is the log end offset; -1 and -1 if the log has no such epoch. A consumer compares it with its
position to detect that records which it has read were truncated. A leader epoch in the request that is not the current
one is FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH. Without Describe a topic is TOPIC_AUTHORIZATION_FAILED; brokers,
with ClusterAction, need no right on it.
"""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows_on_cluster, refusal_of
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    services: Services, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    topics = []
    is_broker = allows_on_cluster(services, context, Operation.CLUSTER_ACTION)
    for topic in request.topics:
        yield
        rows = []
        refused = None
        if not is_broker:
            refused = refusal_of(services, context, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
        for partition in topic.partitions:
            if refused is not None:
                rows.append(EpochEndOffset(refused.code, partition.partition))
            else:
                rows.append(_end_offset(services, topic.topic, partition))
            yield
        topics.append(OffsetForLeaderTopicResult(topic.topic, rows))
    return OffsetForLeaderEpochResponse(topics=topics)


def error_response(request: OffsetForLeaderEpochRequest, code: ErrorCode, message: str) -> OffsetForLeaderEpochResponse:
    topics = [
        OffsetForLeaderTopicResult(topic.topic, [EpochEndOffset(code, wanted.partition) for wanted in topic.partitions])
        for topic in request.topics
    ]
    return OffsetForLeaderEpochResponse(topics=topics)


def _end_offset(services: Services, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = services.partitions.find(topic, wanted.partition)
    if isinstance(partition, KafkaError):
        return EpochEndOffset(partition.code, wanted.partition)
    try:
        found = partition.end_offset_for_epoch(wanted.leader_epoch, wanted.current_leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(error.code, wanted.partition)
    return EpochEndOffset(ErrorCode.NONE, wanted.partition, *found)
