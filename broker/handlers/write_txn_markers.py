"""WriteTxnMarkers (27), versions 1–2: the coordinator of transactions has this leader write their markers (KIP-98).

Each partition of each marker succeeds or fails independently. A row is answered when the marker shows: the last stable
offset has moved, and in `__consumer_offsets` the offsets are committed or dropped (KAFKA-17507).

| code | the coordinator |
|---|---|
| NONE | is done with the partition |
| UNKNOWN_TOPIC_OR_PARTITION | looks for the partition again; one of a deleted topic counts as done |
| NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT, … | sends the marker again |
| INVALID_PRODUCER_EPOCH | is done, if it is still the coordinator: the producer has a newer epoch here |
| TRANSACTION_COORDINATOR_FENCED | sends the marker again with the last epoch, if it is still the coordinator |

Version 2 has the version of the transaction, which decides the check of the epoch (`storage.producers.producer_state`);
a marker of version 1 is checked as one of transaction version 0. The command-line tool `kafka-transactions.sh --abort`
sends this request, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_Writing = list[tuple[WritableTxnMarkerPartitionResult, asyncio.Future[ErrorCode]]]


def handle(
    services: Services, context: RequestContext, request: WriteTxnMarkersRequest
) -> Steps[WriteTxnMarkersResponse | Coroutine[Any, Any, WriteTxnMarkersResponse]]:
    response = WriteTxnMarkersResponse([])
    writing: _Writing = []
    for requested in request.markers:
        marker = _marker(requested)
        answered = WritableTxnMarkerResult(requested.producer_id, [])
        response.markers.append(answered)
        for topic in requested.topics:
            rows: list[WritableTxnMarkerPartitionResult] = []
            answered.topics.append(WritableTxnMarkerTopicResult(topic.name, rows))
            for index in topic.partition_indexes:
                written = services.local_markers.write(topic.name, index, marker)
                row = WritableTxnMarkerPartitionResult(index, ErrorCode.NONE)
                rows.append(row)
                if isinstance(written, asyncio.Future):
                    writing.append((row, written))
                else:
                    row.error_code = written
                yield
    return _wait(response, writing) if writing else response


def error_response(request: WriteTxnMarkersRequest, code: ErrorCode, message: str) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        [
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name, [WritableTxnMarkerPartitionResult(index, code) for index in topic.partition_indexes]
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _marker(requested: WritableTxnMarker) -> TransactionMarker:
    return TransactionMarker(
        requested.producer_id,
        requested.producer_epoch,
        requested.transaction_result,
        requested.coordinator_epoch,
        requested.transaction_version,
    )


async def _wait(response: WriteTxnMarkersResponse, writing: _Writing) -> WriteTxnMarkersResponse:
    for row, written in writing:
        row.error_code = await written
    return response
