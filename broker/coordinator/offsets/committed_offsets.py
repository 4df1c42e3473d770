"""The committed offsets of the groups of one partition, kept until they are deleted or expire.

```
commit ─► records ─► log ─► replay ─┬─ without a producer ───────────────────────────────► committed
                                    └─ of a transaction ─► pending ─┬─ its commit marker ─► committed, unless a later
                                                                    │                        commit has replaced it
                                                                    └─ its abort marker ──► discarded
```

Only `replay` and `end_transaction` change the state; the other methods read it, or return records to write.

An offset expires when `offsets.retention.minutes` have passed since the group became empty. Two kinds expire that long
after their commit: offsets of a group that never had members, and offsets of topics that a stable group of consumers
no longer reads. A commit may also name the time itself, as clients before OffsetCommit 5 could. Kafka's
`OffsetMetadataManager` is the model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from odradek.broker.coordinator.group_type import Group
from odradek.broker.coordinator.offsets.deleted_topics import OfDeleted
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset, OffsetTable, PendingOffsets
from odradek.broker.coordinator.runtime.coordinator_shard import NO_PRODUCER
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.schema import ZERO_UUID
from odradek.protocol.stored_records.offset_commit import OffsetCommitKey, OffsetCommitValue

RECORD_TYPES = (0, 1)
_RECORD_TYPE = 1
_VALUE_VERSION = 4
_VALUE_VERSION_WITH_EXPIRY = 1
NO_EXPIRY = -1


def metadata_length(metadata: str) -> int:
    """Return what offset.metadata.max.bytes limits: the length as Java counts it, in UTF-16 code units."""
    return len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-be", "surrogatepass")) // 2


def commit_record(group_id: str, topic: str, partition: int, commit: CommittedOffset) -> CoordinatorRecord:
    """Return the record of a commit: in version 4 as Kafka 4.3, or 1 if the client named the time of expiry."""
    value = OffsetCommitValue(
        commit.offset,
        commit.leader_epoch,
        commit.metadata,
        commit.committed_at_ms,
        commit.expires_at_ms,
        commit.topic_id,
    )
    if commit.expires_at_ms == NO_EXPIRY:
        return CoordinatorRecord(_RECORD_TYPE, OffsetCommitKey(group_id, topic, partition), value, _VALUE_VERSION)
    value = OffsetCommitValue(commit.offset, -1, commit.metadata, commit.committed_at_ms, commit.expires_at_ms)
    return CoordinatorRecord(
        _RECORD_TYPE, OffsetCommitKey(group_id, topic, partition), value, _VALUE_VERSION_WITH_EXPIRY
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """Return the record that deletes a committed offset."""
    return CoordinatorRecord(_RECORD_TYPE, OffsetCommitKey(group_id, topic, partition), None)


class CommittedOffsets:
    """The offsets of all groups of one partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        self.count = 0
        self._committed = OffsetTable()
        self._pending = PendingOffsets()

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """Return the group's offsets by topic and partition."""
        return self._committed.groups.get(group_id, {})

    def commits_of(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield topic, partition and offset of each commit of the group."""
        return self._committed.of_group(group_id)

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._committed.groups.get(group_id, {}).get(topic, {}).get(partition)

    def groups_with(self, topics: Collection[str]) -> set[str]:
        """Return the groups with committed or pending offsets of one of these topics."""
        committed = self._committed.groups.items()
        found = {group_id for group_id, of_group in committed if not of_group.keys().isdisjoint(topics)}
        return found.union(self._pending.groups_with(topics))

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for this partition."""
        return self._pending.has_partition(group_id, topic, partition)

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction has an offset of this group."""
        return self._pending.has_group(group_id)

    # -------------------------------------------------------------------------------------------------------- the state

    def replay(self, record: CoordinatorRecord, record_offset: int, producer_id: int = NO_PRODUCER) -> None:
        """Apply a commit or a tombstone. `producer_id` is that of its transaction, if it belongs to one."""
        key: Any = record.key
        value: Any = record.value
        if value is None:
            self.count -= self._committed.remove(key.group, key.topic, key.partition)
            self._pending.discard(key.group, key.topic, key.partition)
            return
        commit = CommittedOffset(
            value.offset,
            getattr(value, "leader_epoch", -1),
            value.metadata,
            value.commit_timestamp,
            getattr(value, "expire_timestamp", NO_EXPIRY),
            getattr(value, "topic_id", ZERO_UUID),
            record_offset,
        )
        if producer_id == NO_PRODUCER:
            self.count += self._committed.put(key.group, key.topic, key.partition, commit)
        else:
            self._pending.put(producer_id, key.group, key.topic, key.partition, commit)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Commit the pending offsets of a producer, or discard them.

        A commit outside transactions stays if its record is later in the log than that of the transaction's commit;
        the place of the marker does not matter.
        """
        rows = self._pending.take(producer_id)
        if not committed:
            return
        for group_id, topic, partition, commit in rows:
            existing = self.get(group_id, topic, partition)
            if existing is None or existing.record_offset < commit.record_offset:
                self.count += self._committed.put(group_id, topic, partition, commit)

    # ------------------------------------------------------------------------------------------------- records to write

    def tombstones_of_group(self, group_id: str) -> list[CoordinatorRecord]:
        """Return tombstones for all committed and pending offsets of the group."""
        return [offset_tombstone(group_id, topic, index) for topic, index in self._partitions_of(group_id)]

    def tombstones_of_topics(self, group_id: str, topics: Collection[str]) -> list[CoordinatorRecord]:
        """Return tombstones for the group's committed and pending offsets of these topics."""
        return [
            offset_tombstone(group_id, topic, index)
            for topic, index in self._partitions_of(group_id)
            if topic in topics
        ]

    def tombstones_of_partitions(self, group_id: str, topic: str, partitions: Iterable[int]) -> list[CoordinatorRecord]:
        """Return tombstones for the group's committed and pending offsets of these partitions."""
        return [
            offset_tombstone(group_id, topic, index)
            for index in partitions
            if self.get(group_id, topic, index) is not None or self.is_pending(group_id, topic, index)
        ]

    def has_any_of_deleted(self, group_id: str, is_of_deleted: OfDeleted) -> bool:
        """Whether one of the group's committed offsets is of a deleted topic."""
        return any(is_of_deleted(topic, commit) for topic, _, commit in self._committed.of_group(group_id))

    def expired(
        self, group: Group, now_ms: int, retention_ms: int, is_of_deleted: OfDeleted
    ) -> tuple[list[CoordinatorRecord], bool]:
        """Return tombstones for the offsets that have expired or are of deleted topics, and whether no others are left.

        Those with one in an open transaction stay: a tombstone would delete that, too.
        """
        group_id = group.group_id
        tombstones = []
        nothing_left = not self.has_pending(group_id)
        for topic, index, commit in self._committed.of_group(group_id):
            has_expired = not group.is_subscribed_to(topic) and _has_expired(commit, group, now_ms, retention_ms)
            if (has_expired or is_of_deleted(topic, commit)) and not self.is_pending(group_id, topic, index):
                tombstones.append(offset_tombstone(group_id, topic, index))
            else:
                nothing_left = False
        return tombstones, nothing_left

    def _partitions_of(self, group_id: str) -> dict[tuple[str, int], None]:
        """The partitions with committed or pending offsets of the group: the committed ones first."""
        committed = dict.fromkeys([(topic, index) for topic, index, _ in self._committed.of_group(group_id)])
        return committed | dict.fromkeys(self._pending.partitions_of(group_id))


def _has_expired(commit: CommittedOffset, group: Group, now_ms: int, retention_ms: int) -> bool:
    start = group.retention_start(commit.committed_at_ms)
    if start is None:
        return False
    if commit.expires_at_ms != NO_EXPIRY:
        return now_ms >= commit.expires_at_ms
    return now_ms - start >= retention_ms
