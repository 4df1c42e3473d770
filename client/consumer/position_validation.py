"""Whether a new leader has the records that were read from another (KIP-320).

A leader that was elected without all that was acknowledged (uncleanly), or a follower's log that was lost, may miss
records that the consumer has read, and hold others at their offsets. So after each change of the leader epoch, and
before reading on from a committed offset, the leader is asked where the epoch of the last record read ended:

| its answer (exclusive end) | what it means | what happens |
|---|---|---|
| at the fetch offset or behind | it has everything | reading goes on |
| before it, not before the position | only what is buffered is gone | it is dropped, and fetched again |
| before the position | records that were handed out are gone | reading goes on there |
| no end: it knows no such epoch | all may be gone | the position is what `auto_offset_reset` says |

The last two are a LogTruncationError where `auto_offset_reset` is "none". A broker without OffsetForLeaderEpoch is
believed.
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

_CONSUMER = -1  # the replica id of those who are none
_TRIED = "compare the log with what was read"

Failures = list[tuple[PartitionState, ClientError]]


class RequestedPartition(NamedTuple):
    """A partition as it was when its leader was asked."""

    state: PartitionState
    seek_count: int
    leader_epoch: int

    def is_current(self) -> bool:
        """Whether nobody has sought elsewhere meanwhile."""
        return self.state.seek_count == self.seek_count


class PositionValidator:
    """Checks the partitions of one consumer."""

    def __init__(self, config: ConsumerConfig, cluster: Cluster) -> None:
        self._config = config
        self._cluster = cluster

    async def check(self, node_id: int, states: Sequence[PartitionState]) -> Failures:
        """Ask the leader of all `states`, and act as the table says. Returns what could not be decided, and why."""
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
        unnamed = ClientError(_TRIED, "the answer does not name every partition", broker=connection.name)
        return failures + [(of.state, unnamed) for of in requested.values()]

    def _leader_epoch(self, state: PartitionState) -> int:
        known = self._cluster.image.partition(*state.partition)
        return known.leader_epoch if known is not None else -1

    def _apply(self, requested: RequestedPartition, row: EpochEndOffset, broker: str) -> ClientError | None:
        """Act on an answer; return why that was not possible."""
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
        there = f"its log has them up to offset {end} only" if end >= 0 else "its log knows nothing of their epoch"
        error = LogTruncationError(
            _TRIED,
            f"records up to offset {state.position} were read, and {there}",
            "They were lost when another replica became leader; seek to where to go on",
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
