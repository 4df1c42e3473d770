"""AddPartitionsToTxn (24), versions 0–5: add partitions to transactions, or check whether they are in them.

| versions | from | content |
|---|---|---|
| 0–3 | producers | one transaction; all its partitions are added, or none (KIP-98) |
| 4–5 | other brokers | several transactions, each added to or only verified (KIP-890) |

| rows | error |
|---|---|
| an empty transactional id | INVALID_REQUEST for all |
| unknown partitions | UNKNOWN_TOPIC_OR_PARTITION, for the others OPERATION_NOT_ATTEMPTED |
| to verify, and not in the transaction | TRANSACTION_ABORTABLE |

A row of an error that concerns the transaction is repeated for each of its partitions. PRODUCER_FENCED is
INVALID_PRODUCER_EPOCH below version 2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping

from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.coordinator.transactions.events import AddPartitions
from odradek.broker.coordinator.transactions.transaction import TopicPartition
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.request.transactional_ids import check_transactional_id, submit
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

Errors = Mapping[TopicPartition, KafkaError | None]


def handle(
    services: Services, context: RequestContext, request: AddPartitionsToTxnRequest
) -> (
    AddPartitionsToTxnResponse
    | Awaitable[AddPartitionsToTxnResponse]
    | Steps[AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]]
):
    if context.api_version >= _FIRST_VERSION_OF_BROKERS:
        return _handle_brokers(services, request.transactions)
    return _handle_producer(services, context, request)


def error_response(request: AddPartitionsToTxnRequest, code: ErrorCode, message: str) -> AddPartitionsToTxnResponse:
    if not request.v3_and_below_topics:
        return AddPartitionsToTxnResponse(error_code=code)
    rows = _rows(_partitions(request.v3_and_below_topics), code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


def _handle_producer(
    services: Services, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    check_transactional_id(request.v3_and_below_transactional_id)
    partitions = _partitions(request.v3_and_below_topics)
    refused = _check_partitions(services, partitions)
    if refused is not None:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_error_rows(refused))
    event = AddPartitions(
        PendingReply(),
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        frozenset(partitions),
        version=0,
    )
    has_fenced_code = context.api_version >= _FIRST_VERSION_WITH_FENCED_CODE
    reply = submit(services, request.v3_and_below_transactional_id, event, has_fenced_code=has_fenced_code)
    response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_rows(partitions, ErrorCode.NONE))
    return response if isinstance(reply, Structure) else _wait(reply, response)


async def _wait(reply: Awaitable[Structure], response: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
    await reply
    return response


def _handle_brokers(
    services: Services, transactions: list[AddPartitionsToTxnTransaction]
) -> Steps[AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]]:
    results: list[Errors | Awaitable[Errors]] = []
    for each in transactions:
        results.append(_handle_transaction(services, each))
        yield
    if any(not isinstance(errors, Mapping) for errors in results):
        return _wait_for_all(transactions, results)
    return _response(transactions, [errors for errors in results if isinstance(errors, Mapping)])


def _handle_transaction(services: Services, each: AddPartitionsToTxnTransaction) -> Errors | Awaitable[Errors]:
    partitions = _partitions(each.topics)
    refused = _check_partitions(services, partitions)
    if refused is not None:
        return refused
    return services.transactions.add_partitions(
        each.transactional_id, each.producer_id, each.producer_epoch, partitions, adds=not each.verify_only
    )


async def _wait_for_all(
    transactions: list[AddPartitionsToTxnTransaction], results: list[Errors | Awaitable[Errors]]
) -> AddPartitionsToTxnResponse:
    waiting = [asyncio.ensure_future(errors) for errors in results if not isinstance(errors, Mapping)]
    ended = iter(await asyncio.gather(*waiting))
    return _response(transactions, [errors if isinstance(errors, Mapping) else next(ended) for errors in results])


def _response(
    transactions: list[AddPartitionsToTxnTransaction], results: Iterable[Errors]
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(each.transactional_id, _error_rows(errors))
            for each, errors in zip(transactions, results, strict=True)
        ]
    )


def _check_partitions(services: Services, partitions: list[TopicPartition]) -> Errors | None:
    """Return the errors of all partitions if one does not exist, else None."""
    topics = services.metadata.image.topics
    unknown = set()
    for topic, index in partitions:
        image = topics.get(topic)
        if image is None or image.partition(index) is None:
            unknown.add((topic, index))
    if not unknown:
        return None
    missing = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the partition does not exist")
    other = KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "another partition does not exist")
    return {each: missing if each in unknown else other for each in partitions}


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _rows(partitions: list[TopicPartition], code: ErrorCode) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(AddPartitionsToTxnPartitionResult(index, code))
    return [AddPartitionsToTxnTopicResult(name, rows) for name, rows in topics.items()]


def _error_rows(errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, index), error in errors.items():
        code = ErrorCode.NONE if error is None else error.code
        topics.setdefault(topic, []).append(AddPartitionsToTxnPartitionResult(index, code))
    return [AddPartitionsToTxnTopicResult(name, rows) for name, rows in topics.items()]
