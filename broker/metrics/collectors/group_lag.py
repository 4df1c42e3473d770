"""The lag of groups in seconds: the age of the first batch that a group has not read.

The time at which that batch was written is stored in the log. A thread reads it every few seconds, for the committed
offsets that have changed, and no scrape waits for it. Between two reads the lag grows with the clock.

Only partitions that are led here count. With more than `limit` of them there is no lag in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.coordinator.group_coordinator import GroupCoordinator
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.log import Log
from odradek.protocol.errors import KafkaError

LAG_REFRESH_MS = 5_000
"""The interval of `GroupLag.refresh`."""

_Key = tuple[str, str, int]
"""Group, topic, partition."""


class _Unread(NamedTuple):
    """The offset that a group reads next, in the topic of this id, and the time at which its batch was written."""

    topic_id: bytes
    offset: int
    written_ms: int


class GroupLag:
    """The lag of the groups that one broker coordinates. Used on the event loop only."""

    def __init__(
        self, groups: GroupCoordinator, partitions: Partitions, threads: DiskThreads, clock: Clock, limit: int
    ) -> None:
        self._groups = groups
        self._partitions = partitions
        self._threads = threads
        self._clock = clock
        self._limit = limit
        self._unread: dict[_Key, _Unread] = {}

    async def refresh(self) -> None:
        """Read the times of offsets that have changed since the last call, and drop those that groups have read."""
        # One more than the limit is enough to see that there are too many; the loop does not iterate over the rest.
        behind = {key: (log, offset) for key, log, offset in islice(self._behind(), self._limit + 1)}
        if len(behind) > self._limit:
            behind = {}
        known = {
            key: self._unread[key]
            for key, (log, offset) in behind.items()
            if key in self._unread and self._unread[key][:2] == (log.topic_id, offset)
        }
        wanted = {key: at for key, at in behind.items() if key not in known}
        self._unread = known | (await self._threads.run(_look_up, wanted) if wanted else {})

    def seconds(self, group_id: str, topic: str, partition: int) -> float | None:
        """Return the age of what the group reads next; None if it is unknown."""
        unread = self._unread.get((group_id, topic, partition))
        return None if unread is None else max(0, self._clock.time_ms() - unread.written_ms) / 1000

    def _behind(self) -> Iterator[tuple[_Key, Log, int]]:
        for shard in self._groups.shards():
            for group_id in tuple(shard.groups):
                for topic, index, commit in shard.offsets.commits_of(group_id):
                    partition = self._partitions.led(topic, index)
                    if partition is not None and commit.offset < partition.high_watermark:
                        yield (group_id, topic, index), partition.log, commit.offset


def _look_up(wanted: dict[_Key, tuple[Log, int]]) -> dict[_Key, _Unread]:
    """Read the times, on a thread. Skips logs that cannot be read, such as one that was deleted just now."""
    found = {}
    for key, (log, offset) in wanted.items():
        try:
            # A group whose offset is below the start of the log goes on at the start.
            written_ms = log.timestamp_at(max(offset, log.log_start_offset))
        except KafkaError:
            continue
        if written_ms is not None:
            found[key] = _Unread(log.topic_id, offset, written_ms)
    return found
