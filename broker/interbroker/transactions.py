"""The requests of transactions from this broker to others, over connections of their own (`purpose`).

| request | from | to |
|---|---|---|
| WriteTxnMarkers | the coordinator | the leaders of the transaction's partitions |
| AddPartitionsToTxn, from version 4 | the leader of a partition | the coordinator, which checks or adds the partition |

As in Kafka (`TransactionMarkerChannelManager`, `AddPartitionsToTxnManager`) one request of each kind is in flight to a
broker, and the rows that arrive meanwhile share the next one. A large row is sent in several requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from odradek.broker.interbroker.connections import BrokerConnections
from odradek.broker.interbroker.row_batches import LARGEST_REQUEST, RowBatches
from odradek.broker.tasks import BackgroundTasks
from odradek.client.errors import ClientError
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.schema import Message, spec

T = TypeVar("T")
R = TypeVar("R", bound=Message)

_FIRST_BATCHED: Final = 4
"""The first version of AddPartitionsToTxn with several transactions (KIP-890)."""

_MARKERS, _ADDITIONS = "transaction-markers", "transaction-partitions"
_ROW_SIZE, _TOPIC_SIZE, _PARTITION_SIZE = 40, 8, 4  # bytes, at most, beside texts


class InterBrokerTransactions:
    """The transactions' requests to the other brokers. The methods raise `KafkaError` NETWORK_EXCEPTION."""

    def __init__(self, connections: BrokerConnections, tasks: BackgroundTasks) -> None:
        self._connections = connections
        self._tasks = tasks
        self._markers: dict[int, RowBatches[WritableTxnMarker, WritableTxnMarkerResult]] = {}
        self._additions: dict[int, RowBatches[AddPartitionsToTxnTransaction, AddPartitionsToTxnResult]] = {}

    async def write_markers(self, node_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Return the results in the order of the markers."""
        queue = self._markers.get(node_id)
        if queue is None:
            name, send = f"markers for broker {node_id}", partial(self._send_markers, node_id)
            queue = self._markers[node_id] = RowBatches(name, send, self._tasks)
        pieces = [(place, piece) for place, marker in enumerate(request.markers) for piece in _pieces(marker)]
        results = await _all([queue.submit(piece.producer_id, _marker_size(piece), piece) for _, piece in pieces])
        rows = [WritableTxnMarkerResult(marker.producer_id) for marker in request.markers]
        for (place, _), result in zip(pieces, results, strict=True):
            rows[place].topics.extend(result.topics)
        return WriteTxnMarkersResponse(markers=rows)

    async def add_partitions(self, node_id: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        """Return the results in the order of the transactions. Also raises the error of a request as a whole."""
        queue = self._additions.get(node_id)
        if queue is None:
            name, send = f"partitions of transactions for broker {node_id}", partial(self._send_additions, node_id)
            queue = self._additions[node_id] = RowBatches(name, send, self._tasks)
        rows = [queue.submit(row.transactional_id, _addition_size(row), row) for row in request.transactions]
        return AddPartitionsToTxnResponse(results_by_transaction=await _all(rows))

    async def _send_markers(
        self, node_id: int, rows: Sequence[WritableTxnMarker]
    ) -> Mapping[int, WritableTxnMarkerResult]:
        request = WriteTxnMarkersRequest(markers=list(rows))
        response = await self._ask(node_id, _MARKERS, request, WriteTxnMarkersResponse)
        return {row.producer_id: row for row in response.markers}

    async def _send_additions(
        self, node_id: int, rows: Sequence[AddPartitionsToTxnTransaction]
    ) -> Mapping[str, AddPartitionsToTxnResult]:
        request = AddPartitionsToTxnRequest(transactions=list(rows))
        response = await self._ask(node_id, _ADDITIONS, request, AddPartitionsToTxnResponse, _FIRST_BATCHED)
        if response.error_code:
            raise KafkaError(ErrorCode.of(response.error_code), f"broker {node_id} refused to check transactions")
        return {row.transactional_id: row for row in response.results_by_transaction}

    async def _ask(self, node_id: int, purpose: str, request: Message, response: type[R], first_version: int = 0) -> R:
        """Send a request with the highest version that both brokers have, at least `first_version`."""
        try:
            connection = await self._connections.connection(node_id, purpose)
            key = spec(type(request)).key
            assert key is not None, "a request has an API key"
            version = connection.versions.highest(key)
            if version >= first_version:
                return await connection.send(request, response, version=version)
        except (ClientError, KafkaError) as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"broker {node_id} has only version {version} of {purpose}")


async def _all(results: Sequence[asyncio.Future[T]]) -> list[T]:
    """Return the results of all, or raise the first error when all have ended; cancelled, they are not sent."""
    try:
        ended = await asyncio.gather(*results, return_exceptions=True)
    except asyncio.CancelledError:
        for each in results:
            each.cancel()
        raise
    for result in ended:
        if isinstance(result, BaseException):
            raise result
    return [result for result in ended if not isinstance(result, BaseException)]


def _pieces(marker: WritableTxnMarker) -> list[WritableTxnMarker]:
    """Return the marker in pieces of at most `LARGEST_REQUEST`; a topic is not divided."""
    if _marker_size(marker) <= LARGEST_REQUEST:
        return [marker]
    pieces: list[list[WritableTxnMarkerTopic]] = [[]]
    size = _ROW_SIZE
    for topic in marker.topics:
        of_topic = _topic_size(topic.name, topic.partition_indexes)
        if pieces[-1] and size + of_topic > LARGEST_REQUEST:
            pieces.append([])
            size = _ROW_SIZE
        pieces[-1].append(topic)
        size += of_topic
    return [msgspec.structs.replace(marker, topics=topics) for topics in pieces]


def _marker_size(marker: WritableTxnMarker) -> int:
    return _ROW_SIZE + sum([_topic_size(topic.name, topic.partition_indexes) for topic in marker.topics])


def _addition_size(row: AddPartitionsToTxnTransaction) -> int:
    topics = [_topic_size(topic.name, topic.partitions) for topic in row.topics]
    return _ROW_SIZE + len(row.transactional_id) * 3 + sum(topics)


def _topic_size(name: str, partitions: Sequence[int]) -> int:
    return _TOPIC_SIZE + len(name) + _PARTITION_SIZE * len(partitions)
