"""DescribeTransactions (65), version 0: the state of transactional ids that this broker coordinates (KIP-664).

Each id succeeds or fails independently: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_NOT_FOUND,
NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, and INVALID_REQUEST for the empty id. While markers are written, only the
partitions without one are listed. Topics that the client may not describe are omitted. An id that is named twice has
one row (differs from Kafka: `request.repetitions`).
"""

from __future__ import annotations

from odradek.broker.coordinator.transactions.transaction import PREPARED, TopicPartition
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows_on_topic, check
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.request.transactional_ids import check_transactional_id
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(
    services: Services, context: RequestContext, request: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse]:
    rows = []
    for transactional_id in dict.fromkeys(request.transactional_ids):
        try:
            check(services, context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
            rows.append(_describe(services, context, transactional_id))
        except KafkaError as error:
            rows.append(TransactionState(error.code, transactional_id))
        yield
    return DescribeTransactionsResponse(transaction_states=rows)


def error_response(request: DescribeTransactionsRequest, code: ErrorCode, message: str) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[TransactionState(code, each) for each in dict.fromkeys(request.transactional_ids)]
    )


def _describe(services: Services, context: RequestContext, transactional_id: str) -> TransactionState:
    check_transactional_id(transactional_id)
    state = services.transactions.shard_of(transactional_id).transactions.get(transactional_id)
    if state is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"{transactional_id} has no transactions here")
    partitions = state.partitions
    if state.status in PREPARED and state.is_completing:
        partitions = services.transactions.markers.remaining(transactional_id)
    return TransactionState(
        ErrorCode.NONE,
        transactional_id,
        state.status.label,
        state.timeout_ms,
        state.start_ms,
        state.producer_id,
        state.producer_epoch,
        [topic for topic in _topics(partitions) if allows_on_topic(services, context, Operation.DESCRIBE, topic.topic)],
    )


def _topics(partitions: frozenset[TopicPartition]) -> list[TopicData]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return [TopicData(name, indexes) for name, indexes in topics.items()]
