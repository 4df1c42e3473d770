"""How old the first record is that a group has not read, for the metric of lag in seconds.

A group is as many seconds behind as have passed since the batch was written that it reads next. That time stands in
the log, so it must be read: on a thread, every few seconds, for what has moved since, and not when somebody scrapes.
In between the seconds go on from what was unread then.

Only partitions that are led here are looked at, and none if there are more than `limit` of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.coordinator.group_coordinator import GroupCoordinator
from odradek.broker.replication.disk_threads import DiskThreads
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.log import Log
from odradek.protocol.errors import KafkaError

LAG_REFRESH_MS = 5_000
"""How often to look."""

_Key = tuple[str, str, int]
"""Group, topic, partition."""


class _Unread(NamedTuple):
    """What a group reads next: from `offset` on, which was written at `written_ms`."""

    offset: int
    written_ms: int


class GroupLag:
    """The times, of the groups that one broker coordinates. Used on the event loop only."""

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
        """Look up what groups have come to since the last time, and forget what they have read."""
        # One more than the limit tells that there are too many; the loop is not kept by the rest.
        behind = {key: (log, offset) for key, log, offset in islice(self._behind(), self._limit + 1)}
        if len(behind) > self._limit:
            behind = {}
        known = {
            key: self._unread[key]
            for key, (_, offset) in behind.items()
            if key in self._unread and self._unread[key].offset == offset
        }
        wanted = {key: at for key, at in behind.items() if key not in known}
        self._unread = known | (await self._threads.run(_look_up, wanted) if wanted else {})

    def seconds(self, group_id: str, topic: str, partition: int) -> float | None:
        """How long the group has had something to read there; None if that is not known."""
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
    """Runs on a thread. What cannot be read, of a topic that was deleted just now perhaps, is left out."""
    found = {}
    for key, (log, offset) in wanted.items():
        try:
            # Below the start of the log there is nothing to read any more: it goes on at the start.
            written_ms = log.timestamp_at(max(offset, log.log_start_offset))
        except KafkaError:
            continue
        if written_ms is not None:
            found[key] = _Unread(offset, written_ms)
    return found
