"""AddPartitionsToTxn (24), versions 0–5: add partitions to transactions, or check whether they are in them.

| versions | from | content |
|---|---|---|
| 0–3 | producers | one transaction; all its partitions are added, or none (KIP-98) |
| 4–5 | other brokers | several transactions, each added to or only verified (KIP-890) |

| rows | error |
|---|---|
| versions 0–3, without the right to write to the transactional id | TRANSACTIONAL_ID_AUTHORIZATION_FAILED for all |
| versions 0–3, without the right to write to the topic | TOPIC_AUTHORIZATION_FAILED, for the others as below |
| versions 4–5, without ClusterAction | CLUSTER_AUTHORIZATION_FAILED for the whole request |
| an empty transactional id | INVALID_REQUEST for all |
| unknown partitions | UNKNOWN_TOPIC_OR_PARTITION, for the others OPERATION_NOT_ATTEMPTED |
| to verify, and not in the transaction | TRANSACTION_ABORTABLE |
| to add, under `transaction.version` 0 | UNSUPPORTED_VERSION for the whole request |

A row of an error that concerns the transaction is repeated for each of its partitions. PRODUCER_FENCED is
INVALID_PRODUCER_EPOCH below version 2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping

from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.coordinator.transactions.events import AddPartitions
from odradek.broker.coordinator.transactions.transaction import TopicPartition
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import check, check_on_cluster, refusal_of
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.request.transactional_ids import check_transactional_id, submit
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.schema import Structure

_FIRST_VERSION_WITH_FENCED_CODE = 2
_FIRST_VERSION_OF_BROKERS = 4

Answer = AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]
Errors = Mapping[TopicPartition, KafkaError | None]


def handle(services: Services, context: RequestContext, request: AddPartitionsToTxnRequest) -> Steps[Answer]:
    if context.api_version >= _FIRST_VERSION_OF_BROKERS:
        check_on_cluster(services, context, Operation.CLUSTER_ACTION)
        return _handle_brokers(services, context, request.transactions)
    return _handle_producer(services, context, request)


def error_response(request: AddPartitionsToTxnRequest, code: ErrorCode, message: str) -> AddPartitionsToTxnResponse:
    if not request.v3_and_below_topics:
        return AddPartitionsToTxnResponse(error_code=code)
    results = [
        AddPartitionsToTxnTopicResult(
            topic.name, [AddPartitionsToTxnPartitionResult(index, code) for index in topic.partitions]
        )
        for topic in request.v3_and_below_topics
    ]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def _handle_producer(services: Services, context: RequestContext, request: AddPartitionsToTxnRequest) -> Steps[Answer]:
    transactional_id, topics = request.v3_and_below_transactional_id, request.v3_and_below_topics
    check(services, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    check_transactional_id(transactional_id)
    known, unknown = yield from _look_up(services, topics)
    refused = yield from _refused(services, context, topics)
    if unknown or refused:
        errors: dict[TopicPartition, KafkaError | None] = {}
        for key, error in _errors_of_unknown(known, unknown).items():
            yield
            errors[key] = refused.get(key[0], error)
        rows = yield from _rows(topics, errors)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)
    event = AddPartitions(
        PendingReply(),
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        frozenset(known),
        version=0,
    )
    has_fenced_code = context.api_version >= _FIRST_VERSION_WITH_FENCED_CODE
    reply = submit(services, transactional_id, event, has_fenced_code=has_fenced_code)
    response = AddPartitionsToTxnResponse()
    response.results_by_topic_v3_and_below = yield from _rows(topics, {})
    return response if isinstance(reply, Structure) else _wait(reply, response)


def _refused(
    services: Services, context: RequestContext, topics: list[AddPartitionsToTxnTopic]
) -> Steps[dict[str, KafkaError]]:
    """Return the errors of the topics that the client may not write to."""
    refused = {}
    for topic in topics:
        yield
        error = refusal_of(services, context, Operation.WRITE, ResourceType.TOPIC, topic.name)
        if error is not None:
            refused[topic.name] = error
    return refused


async def _wait(reply: Awaitable[Structure], response: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
    await reply
    return response


def _handle_brokers(
    services: Services, context: RequestContext, transactions: list[AddPartitionsToTxnTransaction]
) -> Steps[Answer]:
    response = AddPartitionsToTxnResponse(results_by_transaction=[])
    waiting: list[tuple[AddPartitionsToTxnTransaction, AddPartitionsToTxnResult, Awaitable[Errors]]] = []
    for each in transactions:
        result = AddPartitionsToTxnResult(each.transactional_id)
        response.results_by_transaction.append(result)
        known, unknown = yield from _look_up(services, each.topics)
        errors = (
            _errors_of_unknown(known, unknown)
            if unknown
            else services.transactions.add_partitions(
                each.transactional_id, each.producer_id, each.producer_epoch, [*known], adds=not each.verify_only
            )
        )
        if isinstance(errors, Mapping):
            # At once: the errors of all transactions are some 10 objects each, and collecting garbage took a second.
            yield from _set_rows(response, result, each.topics, errors)
        else:
            waiting.append((each, result, errors))
    return _wait_for_all(services, context, response, waiting) if waiting else _finished(response)


async def _wait_for_all(
    services: Services,
    context: RequestContext,
    response: AddPartitionsToTxnResponse,
    waiting: list[tuple[AddPartitionsToTxnTransaction, AddPartitionsToTxnResult, Awaitable[Errors]]],
) -> AddPartitionsToTxnResponse:
    all_errors = await asyncio.gather(*(errors for _, _, errors in waiting))

    def set_all_rows() -> Steps[None]:
        for (each, result, _), errors in zip(waiting, all_errors, strict=True):
            yield from _set_rows(response, result, each.topics, errors)

    await services.time_slices.finish(set_all_rows(), context.connection)
    return _finished(response)


def _finished(response: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
    """Return the response, without rows if it is refused as a whole."""
    return AddPartitionsToTxnResponse(error_code=response.error_code) if response.error_code else response


def _set_rows(
    response: AddPartitionsToTxnResponse,
    result: AddPartitionsToTxnResult,
    topics: list[AddPartitionsToTxnTopic],
    errors: Errors,
) -> Steps[None]:
    """Set the rows of one transaction. Its UNSUPPORTED_VERSION refuses the whole request."""
    if any(error is not None and error.code is ErrorCode.UNSUPPORTED_VERSION for error in errors.values()):
        response.error_code = ErrorCode.UNSUPPORTED_VERSION
    result.topic_results = yield from _rows(topics, errors)


def _look_up(
    services: Services, topics: list[AddPartitionsToTxnTopic]
) -> Steps[tuple[set[TopicPartition], set[TopicPartition]]]:
    """Return the partitions that exist, and those that do not."""
    images = services.metadata.image.topics
    known: set[TopicPartition] = set()
    unknown: set[TopicPartition] = set()
    for topic in topics:
        image = images.get(topic.name)
        for index in topic.partitions:
            yield
            is_known = image is not None and image.partition(index) is not None
            (known if is_known else unknown).add((topic.name, index))
    return known, unknown


def _errors_of_unknown(known: set[TopicPartition], unknown: set[TopicPartition]) -> Errors:
    missing = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the partition does not exist")
    other = KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "another partition does not exist")
    return dict.fromkeys(unknown, missing) | dict.fromkeys(known, other)


def _rows(topics: list[AddPartitionsToTxnTopic], errors: Errors) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    """Return a row for each row of the request; without an error there it is NONE."""
    results = []
    for topic in topics:
        rows = []
        for index in topic.partitions:
            yield
            error = errors.get((topic.name, index))
            rows.append(AddPartitionsToTxnPartitionResult(index, ErrorCode.NONE if error is None else error.code))
        results.append(AddPartitionsToTxnTopicResult(topic.name, rows))
    return results
