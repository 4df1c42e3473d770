"""One Fetch request to one broker, and the rows of its response that are still wanted.

From version 13 on topics are named by id (KIP-516), in earlier versions by name; if one of the topics has no id, an
earlier version is used. The request contains only the changes of the fetch session (`fetch_session`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from odradek.client.config import ConsumerConfig
from odradek.client.consumer.fetch_session import FetchKey, FetchSession
from odradek.client.consumer.subscription_state import PartitionState
from odradek.client.network.cluster_image import ClusterImage
from odradek.client.network.connection import Connection
from odradek.protocol.api import FETCH_KEY
from odradek.protocol.messages.fetch import (
    LAST_VERSION_WITH_TOPIC_NAMES,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from odradek.protocol.schema import LAST_VERSION, ZERO_UUID


class RequestedPartition(NamedTuple):
    """The state of a partition when the request was sent."""

    state: PartitionState
    seek_count: int
    offset: int
    leader_epoch: int

    def is_current(self) -> bool:
        """Whether the response is still wanted: the partition was neither sought nor fetched meanwhile."""
        return self.state.seek_count == self.seek_count and self.state.fetch_offset == self.offset


class InFlightFetch:
    """A Fetch request: `message` in `version`, and the partitions in it."""

    def __init__(
        self,
        config: ConsumerConfig,
        image: ClusterImage,
        connection: Connection,
        session: FetchSession,
        states: Sequence[PartitionState],
        max_wait_ms: int,
    ) -> None:
        """Build the request. All `states` are in the image and have a fetch offset. Raises UnsupportedVersionError."""
        by_id = all(image.topics[state.partition.topic].topic_id != ZERO_UUID for state in states)
        self.version = connection.versions.highest(FETCH_KEY, LAST_VERSION if by_id else LAST_VERSION_WITH_TOPIC_NAMES)
        by_id = self.version > LAST_VERSION_WITH_TOPIC_NAMES
        self._requested: dict[tuple[str | bytes, int], RequestedPartition] = {}
        wanted: dict[FetchKey, FetchPartition] = {}
        for state in states:
            name, index = state.partition
            offset = state.fetch_offset
            assert offset is not None
            known = image.topics[name]
            leader_epoch = known.partitions[index].leader_epoch
            wanted[FetchKey(name, known.topic_id, index)] = FetchPartition(
                partition=index,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=config.max_partition_fetch_bytes,
            )
            self._requested[known.topic_id if by_id else name, index] = RequestedPartition(
                state, state.seek_count, offset, leader_epoch
            )
        self._is_parked = all(
            0 <= requested.state.high_watermark <= requested.offset for requested in self._requested.values()
        )
        self.message = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=int(config.reads_committed),
        )
        session.fill(self.message, wanted, by_id=by_id)

    def is_obsolete(self) -> bool:
        """Whether it probably waits at the broker for records of partitions that were all sought elsewhere."""
        return self._is_parked and not any(requested.is_current() for requested in self._requested.values())

    def rows(self, response: FetchResponse) -> Iterator[tuple[RequestedPartition, PartitionData]]:
        """Yield the rows of a response whose partitions are still wanted."""
        for topic in response.responses:
            for row in topic.partitions:
                requested = self._requested.get((topic.topic or topic.topic_id, row.partition_index))
                if requested is not None and requested.is_current():
                    yield requested, row
