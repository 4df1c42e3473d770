"""Transactions: list and describe them, fence their producers, abort one that hangs (KIP-664, KIP-679, KIP-994).

| request | broker |
|---|---|
| ListTransactions | each, for the transactional ids that it coordinates |
| DescribeTransactions, InitProducerId (`fence_producers`) | the coordinator of the transactional id |
| DescribeProducers | the leader of the partition, or the replica on a given broker |
| WriteTxnMarkers (`abort_transaction`) | the leader of the partition |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from odradek.client.admin.arguments import TransactionFilter
from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import (
    ProducerDescription,
    ProducerIdAndEpoch,
    Results,
    TransactionDescription,
    TransactionListing,
)
from odradek.client.errors import ClientError, broker_error
from odradek.client.network.connection import Connection
from odradek.client.network.coordinator import KeyType
from odradek.client.record import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Producers = tuple[ProducerDescription, ...]

_INIT_PRODUCER_ID_KEY, _WRITE_TXN_MARKERS_KEY, _LIST_TRANSACTIONS_KEY = 22, 27, 66
_LAST_WITHOUT_TWO_PHASE_COMMIT = 5  # of InitProducerId
_LAST_OF_LENIENT_MARKERS = 1  # of WriteTxnMarkers: a marker may have the epoch of the records
_FIRST_WITH_DURATION, _FIRST_WITH_PATTERN = 1, 2
_ABORT = False


async def list_transactions(
    calls: Calls, chosen: TransactionFilter, *, timeout_ms: int | None
) -> dict[str, TransactionListing]:
    tried = "list transactions"
    duration = -1 if chosen.longer_than_ms is None else chosen.longer_than_ms
    request = ListTransactionsRequest(list(chosen.states), list(chosen.producer_ids), duration, chosen.pattern)
    at_least = _FIRST_WITH_PATTERN if chosen.pattern is not None else _FIRST_WITH_DURATION if duration >= 0 else 0

    async def call(connection: Connection, brokers: Sequence[int]) -> Outcomes[int, list[TransactionListing]]:
        version = connection.versions.highest(_LIST_TRANSACTIONS_KEY, at_least=at_least)
        response = await connection.send(request, ListTransactionsResponse, version=version)
        if response.error_code:
            raise broker_error(response.error_code, tried, broker=connection.name)
        return {
            broker: [
                TransactionListing(one.transactional_id, one.producer_id, one.transaction_state, broker)
                for one in response.transaction_states
            ]
            for broker in brokers
        }

    async def attempt(brokers: Sequence[int]) -> Outcomes[int, list[TransactionListing]]:
        return await calls.at_brokers({broker: broker for broker in brokers}, call)

    responses = await calls.for_each(tried, sorted(calls.cluster.image.brokers), attempt, timeout_ms)
    listed = [listing for of_broker in responses.values_or_raise().values() for listing in of_broker]
    return {listing.transactional_id: listing for listing in sorted(listed, key=lambda one: one.transactional_id)}


async def describe_transactions(
    calls: Calls, transactional_ids: Iterable[str], *, timeout_ms: int | None
) -> Results[str, TransactionDescription]:
    tried = "describe the transactions of"

    async def attempt(left: Sequence[str]) -> Outcomes[str, TransactionDescription]:
        targets = await calls.coordinators(tried, left, KeyType.TRANSACTIONAL_ID)

        async def call(connection: Connection, requested: Sequence[str]) -> Outcomes[str, TransactionDescription]:
            request = DescribeTransactionsRequest(list(requested))
            response = await connection.send(request, DescribeTransactionsResponse)
            return {
                one.transactional_id: broker_error(
                    one.error_code, f"{tried} {one.transactional_id}", broker=connection.name
                )
                if one.error_code
                else _described(one, targets[one.transactional_id])
                for one in response.transaction_states
            }

        return await calls.at_brokers(targets, call)

    return await calls.for_each(tried, transactional_ids, attempt, timeout_ms)


async def fence_producers(
    calls: Calls, transactional_ids: Iterable[str], *, timeout_ms: int | None
) -> Results[str, ProducerIdAndEpoch]:
    tried = "fence the producer of"
    transaction_timeout_ms = calls.config.request_timeout_ms if timeout_ms is None else timeout_ms

    async def call(connection: Connection, requested: Sequence[str]) -> Outcomes[str, ProducerIdAndEpoch]:
        outcomes: dict[str, ProducerIdAndEpoch | ClientError] = {}
        for transactional_id in requested:
            request = InitProducerIdRequest(transactional_id, transaction_timeout_ms)
            version = connection.versions.highest(_INIT_PRODUCER_ID_KEY, _LAST_WITHOUT_TWO_PHASE_COMMIT)
            response = await connection.send(request, InitProducerIdResponse, version=version)
            outcomes[transactional_id] = (
                broker_error(response.error_code, f"{tried} {transactional_id}", broker=connection.name)
                if response.error_code
                else ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            )
        return outcomes

    async def attempt(left: Sequence[str]) -> Outcomes[str, ProducerIdAndEpoch]:
        return await calls.at_brokers(await calls.coordinators(tried, left, KeyType.TRANSACTIONAL_ID), call)

    return await calls.for_each(tried, transactional_ids, attempt, timeout_ms)


async def describe_producers(
    calls: Calls, partitions: Iterable[TopicPartition], *, broker: int | None, timeout_ms: int | None
) -> Results[TopicPartition, Producers]:
    tried = "describe producers"

    async def call(connection: Connection, requested: Sequence[TopicPartition]) -> Outcomes[TopicPartition, Producers]:
        topics: dict[str, TopicRequest] = {}
        for name, index in requested:
            topics.setdefault(name, TopicRequest(name, [])).partition_indexes.append(index)
        response = await connection.send(DescribeProducersRequest(list(topics.values())), DescribeProducersResponse)
        outcomes: dict[TopicPartition, Producers | ClientError] = {}
        for topic in response.topics:
            for row in topic.partitions:
                index = row.partition_index
                place: dict[str, Any] = {"broker": connection.name, "topic": topic.name, "partition": index}
                outcome: Producers | ClientError = _producers(row)
                if broker is not None and row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    outcome = ClientError(
                        tried, "the broker has no replica of it", "Choose one of its replicas", **place
                    )
                elif row.error_code:
                    outcome = broker_error(row.error_code, tried, row.error_message, **place)
                outcomes[TopicPartition(topic.name, index)] = outcome
        return outcomes

    async def attempt(left: Sequence[TopicPartition]) -> Outcomes[TopicPartition, Producers]:
        if broker is None:
            return await calls.at_brokers(await calls.leaders(tried, left), call)
        return await calls.at_brokers(dict.fromkeys(left, await calls.existing_broker(tried, broker)), call)

    return await calls.for_each(tried, partitions, attempt, timeout_ms)


async def abort_transaction(
    calls: Calls,
    partition: TopicPartition,
    producer: ProducerDescription,
    *,
    timeout_ms: int | None,
) -> None:
    coordinator_epoch = producer.coordinator_epoch or 0  # 0 before the first marker: no coordinator's is lower
    tried = f"abort the transaction of producer {producer.producer_id}"

    async def call(connection: Connection, requested: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
        topics = [WritableTxnMarkerTopic(name, [index]) for name, index in requested]
        marker = WritableTxnMarker(producer.producer_id, producer.producer_epoch, _ABORT, topics, coordinator_epoch)
        version = connection.versions.highest(_WRITE_TXN_MARKERS_KEY, _LAST_OF_LENIENT_MARKERS)
        response = await connection.send(WriteTxnMarkersRequest([marker]), WriteTxnMarkersResponse, version=version)
        return {
            TopicPartition(topic.name, row.partition_index): broker_error(
                row.error_code,
                tried,
                cure=_ABORT_CURES.get(row.error_code),
                broker=connection.name,
                topic=topic.name,
                partition=row.partition_index,
            )
            if row.error_code
            else None
            for result in response.markers
            for topic in result.topics
            for row in topic.partitions
        }

    async def attempt(left: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
        return await calls.at_brokers(await calls.leaders(tried, left), call)

    (await calls.for_each(tried, [partition], attempt, timeout_ms)).value(partition)


_ABORT_CURES: dict[int, str] = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "The producer has a newer epoch in the partition: describe its producers again",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: (
        "A newer coordinator has written a marker: describe the producers of the partition again"
    ),
}


def _described(one: TransactionState, coordinator: int | ClientError | None) -> TransactionDescription:
    return TransactionDescription(
        one.transactional_id,
        coordinator if isinstance(coordinator, int) else -1,
        one.transaction_state,
        one.producer_id,
        one.producer_epoch,
        one.transaction_timeout_ms,
        one.transaction_start_time_ms if one.transaction_start_time_ms >= 0 else None,
        tuple(sorted(TopicPartition(topic.topic, index) for topic in one.topics for index in topic.partitions)),
    )


def _producers(row: PartitionResponse) -> Producers:
    return tuple(
        ProducerDescription(
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_timestamp,
            one.coordinator_epoch if one.coordinator_epoch >= 0 else None,
            one.current_txn_start_offset if one.current_txn_start_offset >= 0 else None,
        )
        for one in sorted(row.active_producers, key=lambda one: one.producer_id)
    )
