"""A request to Fetch for partitions of one broker, and how its answer is read back.

Topics go by id from version 13 on (KIP-516), and by name below, also when one of them has no id. What is asked for is
what the session with the broker adds up to (`fetch_session`), not what this request says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from odradek.client.config import ConsumerConfig
from odradek.client.consumer.fetch_session import FetchKey, FetchSession
from odradek.client.consumer.subscription_state import PartitionState
from odradek.client.network.cluster_image import ClusterImage
from odradek.client.network.connection import Connection
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.schema import ZERO_UUID

_FETCH_KEY = 1
_LAST_VERSION_BY_NAME = 12
_NEWEST_VERSION = 32767


class RequestedPartition(NamedTuple):
    """A partition of a request as it was when the request was sent."""

    state: PartitionState
    seek_count: int
    offset: int
    leader_epoch: int

    def is_current(self) -> bool:
        """Whether the answer is still of use: nobody has sought, or fetched elsewhere, meanwhile."""
        return self.state.seek_count == self.seek_count and self.state.fetch_offset == self.offset


class InFlightFetch:
    """One request: `message` in `version`, and who asked for what."""

    def __init__(
        self,
        config: ConsumerConfig,
        image: ClusterImage,
        connection: Connection,
        session: FetchSession,
        states: Sequence[PartitionState],
        max_wait_ms: int,
    ) -> None:
        """All `states` are in the image and have a fetch offset. Raises UnsupportedVersionError."""
        by_id = all(image.topics[state.partition.topic].topic_id != ZERO_UUID for state in states)
        self.version = connection.versions.highest(_FETCH_KEY, _NEWEST_VERSION if by_id else _LAST_VERSION_BY_NAME)
        by_id = self.version > _LAST_VERSION_BY_NAME
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
        """Whether it waits at the broker, as far as is known, for records that nobody wants any more."""
        return self._is_parked and not any(requested.is_current() for requested in self._requested.values())

    def rows(self, response: FetchResponse) -> Iterator[tuple[RequestedPartition, PartitionData]]:
        """What the answer says of partitions that are still wanted."""
        for topic in response.responses:
            for row in topic.partitions:
                requested = self._requested.get((topic.topic or topic.topic_id, row.partition_index))
                if requested is not None and requested.is_current():
                    yield requested, row
