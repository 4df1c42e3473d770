"""Committed offsets by group, topic and partition, and those of open transactions.

`PendingOffsets` finds the transactions of a partition without a search: OffsetFetch asks for every partition that it
returns, and there may be as many open transactions as there are producers. Kafka's `OffsetMetadataManager.Offsets` and
`OpenTransactions` are the model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple


class CommittedOffset(NamedTuple):
    """One commit. `expires_at_ms` is the time that the client named, or -1; `record_offset` is its place in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int
    topic_id: bytes
    record_offset: int


OfGroup = dict[str, dict[int, CommittedOffset]]
"""The offsets of one group, by topic and partition."""

Row = tuple[str, str, int, CommittedOffset]
"""Group, topic, partition, and what was committed."""


class OffsetTable:
    """Offsets by group, topic and partition; groups and topics without offsets are not in it."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        self.groups: dict[str, OfGroup] = {}

    def put(self, group_id: str, topic: str, partition: int, commit: CommittedOffset) -> bool:
        """Put the commit in place; return whether it is the partition's first."""
        partitions = self.groups.setdefault(group_id, {}).setdefault(topic, {})
        is_new = partition not in partitions
        partitions[partition] = commit
        return is_new

    def remove(self, group_id: str, topic: str, partition: int) -> bool:
        """Remove a commit; return whether there was one."""
        topics = self.groups.get(group_id, {})
        partitions = topics.get(topic, {})
        was_there = partitions.pop(partition, None) is not None
        if was_there and not partitions:
            del topics[topic]
            if not topics:
                del self.groups[group_id]
        return was_there

    def of_group(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield topic, partition and offset of each commit of the group."""
        for topic, partitions in self.groups.get(group_id, {}).items():
            for partition, commit in partitions.items():
                yield topic, partition, commit

    def __iter__(self) -> Iterator[Row]:
        for group_id in self.groups:
            for row in self.of_group(group_id):
                yield group_id, *row


class PendingOffsets:
    """The offsets of open transactions: by producer for the markers, by partition for everything else."""

    def __init__(self) -> None:
        self._by_producer: dict[int, OffsetTable] = {}
        self._producers: dict[str, dict[str, dict[int, set[int]]]] = {}  # by group, topic and partition

    def put(self, producer_id: int, group_id: str, topic: str, partition: int, commit: CommittedOffset) -> None:
        """Add an offset to the open transaction of the producer."""
        table = self._by_producer.get(producer_id)
        if table is None:
            table = self._by_producer[producer_id] = OffsetTable()
        table.put(group_id, topic, partition, commit)
        self._producers.setdefault(group_id, {}).setdefault(topic, {}).setdefault(partition, set()).add(producer_id)

    def take(self, producer_id: int) -> list[Row]:
        """Remove and return the offsets of the producer's transaction, which ends."""
        rows = list(self._by_producer.pop(producer_id, ()))
        for group_id, topic, partition, _ in rows:
            producers = self._producers[group_id][topic][partition]
            producers.discard(producer_id)
            if not producers:
                self._forget(group_id, topic, partition)
        return rows

    def discard(self, group_id: str, topic: str, partition: int) -> None:
        """Remove the offsets of a partition from all open transactions: they were deleted."""
        for producer_id in self._producers.get(group_id, {}).get(topic, {}).get(partition, ()):
            table = self._by_producer[producer_id]
            table.remove(group_id, topic, partition)
            if not table.groups:
                del self._by_producer[producer_id]
        self._forget(group_id, topic, partition)

    def has_partition(self, group_id: str, topic: str, partition: int) -> bool:
        return partition in self._producers.get(group_id, {}).get(topic, {})

    def has_group(self, group_id: str) -> bool:
        return group_id in self._producers

    def partitions_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Yield topic and partition of each pending offset of the group."""
        for topic, partitions in self._producers.get(group_id, {}).items():
            for partition in partitions:
                yield topic, partition

    def groups_with(self, topics: Collection[str]) -> Iterator[str]:
        """Yield the groups with pending offsets of one of these topics."""
        for group_id, of_group in self._producers.items():
            if not of_group.keys().isdisjoint(topics):
                yield group_id

    def _forget(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._producers.get(group_id, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is not None and not partitions:
            del topics[topic]
            if not topics:
                del self._producers[group_id]
