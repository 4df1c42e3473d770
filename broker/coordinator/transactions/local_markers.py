"""The markers of transactions in the partitions that this broker leads.

| partition of | written by | shows when |
|---|---|---|
| `__consumer_offsets` | the group coordinator, in the order of its own records | the offsets are committed or dropped |
| any other topic | `replication.transaction_markers` | the marker is below the high watermark |

Both the coordinator on this broker and the WriteTxnMarkers of others come here.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from odradek.broker.clock import Clock
from odradek.broker.metadata.administration.topic_names import CONSUMER_OFFSETS
from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.partitions import Partitions
from odradek.broker.replication.transaction_markers import TransactionMarker, write_marker
from odradek.protocol.errors import ErrorCode, KafkaError

_NOT_LOADED = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
"""Errors of the group coordinator that the transaction coordinator gets as NOT_LEADER_OR_FOLLOWER, and retries."""


class CommittedOffsetsMarkers(Protocol):
    """The part of the group coordinator that ends the transactions of committed offsets."""

    def write_marker(self, partition_index: int, marker: TransactionMarker) -> asyncio.Future[None] | None:
        """Append the marker to a partition of `__consumer_offsets`; end when its offsets show. Raises KafkaError."""
        ...


class LocalMarkers:
    """Writes the markers of this broker's partitions."""

    def __init__(
        self, partitions: Partitions, groups: CommittedOffsetsMarkers, clock: Clock, purgatory: Purgatory[bool]
    ) -> None:
        """The purgatory must be one that is touched when the high watermark of a partition moves."""
        self._partitions = partitions
        self._groups = groups
        self._clock = clock
        self._purgatory = purgatory

    def write(self, topic: str, index: int, marker: TransactionMarker) -> ErrorCode | asyncio.Future[ErrorCode]:
        """Write a marker; return NONE when it shows, or the code of the error.

        UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, and
        those of an append with acks=all.
        """
        partition = self._partitions.find(topic, index)
        if isinstance(partition, KafkaError):
            return partition.code
        if topic == CONSUMER_OFFSETS:
            return self._write_to_groups(index, marker)
        return write_marker(partition, marker, self._clock.time_ms(), self._purgatory)

    def _write_to_groups(self, index: int, marker: TransactionMarker) -> ErrorCode | asyncio.Future[ErrorCode]:
        try:
            written = self._groups.write_marker(index, marker)
        except KafkaError as error:
            return _code(error)
        return ErrorCode.NONE if written is None else asyncio.ensure_future(_code_of(written))


async def _code_of(written: asyncio.Future[None]) -> ErrorCode:
    try:
        await written
    except KafkaError as error:
        return _code(error)
    return ErrorCode.NONE


def _code(error: KafkaError) -> ErrorCode:
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_LOADED else error.code
