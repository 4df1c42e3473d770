"""Validation of positions: whether a new leader has the records that were read from an earlier one (KIP-320).

After an unclean election, or when a replica has lost its log, the leader's log may lack records that the consumer has
read, and have others at their offsets. So after each change of the leader epoch, and before the first fetch from a
committed offset, OffsetForLeaderEpoch requests the end of the epoch of the last record that was read:

| end offset (exclusive) | meaning | action |
|---|---|---|
| the fetch offset or later | the log has all records | continue |
| before it, but not before the position | records in the buffer are lost | fetch them again |
| before the position | records that were returned are lost | continue at the end offset |
| none: the leader does not have this epoch | all records may be lost | apply `auto_offset_reset` |

With `auto_offset_reset="none"` the last two are a LogTruncationError. If the broker has no OffsetForLeaderEpoch, all
positions count as valid.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from odradek.client.config import ConsumerConfig
from odradek.client.consumer.subscription_state import PartitionState
from odradek.client.errors import ClientError, LogTruncationError, UnsupportedVersionError, broker_error
from odradek.client.network.cluster import Cluster
from odradek.client.record import TopicPartition
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_LOG = logging.getLogger(__name__)

_CONSUMER = -1  # the replica id of a client
_TRIED = "validate the position"

Failures = list[tuple[PartitionState, ClientError]]


class RequestedPartition(NamedTuple):
    """The state of a partition when the request was sent."""

    state: PartitionState
    seek_count: int
    leader_epoch: int

    def is_current(self) -> bool:
        """Whether the partition was not sought meanwhile."""
        return self.state.seek_count == self.seek_count


class PositionValidator:
    """Validates the positions of one consumer."""

    def __init__(self, config: ConsumerConfig, cluster: Cluster) -> None:
        self._config = config
        self._cluster = cluster

    async def check(self, node_id: int, states: Sequence[PartitionState]) -> Failures:
        """Validate partitions that the same node leads, as in the table. Returns those that failed, with the error."""
        requested = {
            state.partition: RequestedPartition(state, state.seek_count, self._leader_epoch(state)) for state in states
        }
        try:
            connection = await self._cluster.connection(node_id)
            response = await connection.send(_request(requested.values()), OffsetForLeaderEpochResponse)
        except UnsupportedVersionError:
            for state, _, leader_epoch in requested.values():
                state.validated_epoch = leader_epoch
            return []
        except ClientError as error:
            return [(state, error) for state in states]
        failures: Failures = []
        for result in response.topics:
            for row in result.partitions:
                of = requested.pop(TopicPartition(result.topic, row.partition), None)
                if (
                    of is not None
                    and of.is_current()
                    and (failure := self._apply(of, row, connection.name)) is not None
                ):
                    failures.append((of.state, failure))
        unnamed = ClientError(_TRIED, "the response does not have every partition", broker=connection.name)
        return failures + [(of.state, unnamed) for of in requested.values()]

    def _leader_epoch(self, state: PartitionState) -> int:
        known = self._cluster.image.partition(*state.partition)
        return known.leader_epoch if known is not None else -1

    def _apply(self, requested: RequestedPartition, row: EpochEndOffset, broker: str) -> ClientError | None:
        """Apply a row of the response; return the error if that is impossible."""
        state = requested.state
        topic, index = state.partition
        if row.error_code:
            return broker_error(row.error_code, _TRIED, broker=broker, topic=topic, partition=index)
        assert state.fetch_offset is not None
        assert state.position is not None
        end = row.end_offset
        if end >= state.fetch_offset:
            state.validated_epoch = requested.leader_epoch
        elif end >= state.position:
            state.seek(state.position, state.position_epoch)
        else:
            error = self._truncation_error(state, end, broker)
            if self._config.auto_offset_reset == "none":
                return error
            _LOG.warning("%s", error)
            state.seek(end if end >= 0 else None)
        return None

    def _truncation_error(self, state: PartitionState, end: int, broker: str) -> LogTruncationError:
        topic, partition = state.partition
        there = (
            f"the leader's log has them only up to offset {end}" if end >= 0 else "the leader's log lacks their epoch"
        )
        error = LogTruncationError(
            _TRIED,
            f"records up to offset {state.position} were read, and {there}",
            "They were lost when another replica became leader: call seek() with the offset to continue at",
            broker=broker,
            topic=topic,
            partition=partition,
        )
        error.offset = end
        return error


def _request(requested: Iterable[RequestedPartition]) -> OffsetForLeaderEpochRequest:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for state, _, leader_epoch in requested:
        name, index = state.partition
        topic = topics.setdefault(name, OffsetForLeaderTopic(name, []))
        topic.partitions.append(OffsetForLeaderPartition(index, leader_epoch, state.fetch_epoch))
    return OffsetForLeaderEpochRequest(_CONSUMER, list(topics.values()))
