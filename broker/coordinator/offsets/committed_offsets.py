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

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from odradek.broker.coordinator.group_type import Group
from odradek.broker.coordinator.runtime.coordinator_shard import NO_PRODUCER
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.schema import ZERO_UUID
from odradek.protocol.stored_records.offset_commit import OffsetCommitKey, OffsetCommitValue

RECORD_TYPES = (0, 1)
_RECORD_TYPE = 1
_VALUE_VERSION = 4
_VALUE_VERSION_WITH_EXPIRY = 1
NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """One commit. `expires_at_ms` is the time that the client named, or -1; `record_offset` is its place in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int
    topic_id: bytes
    record_offset: int


TopicPartition = tuple[str, int]
OfGroup = dict[str, dict[int, CommittedOffset]]
"""The offsets of one group, by topic and partition."""


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
        self._groups: dict[str, OfGroup] = {}
        self._pending: dict[int, dict[str, OfGroup]] = {}  # by producer id

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """Return the group's offsets by topic and partition."""
        return self._groups.get(group_id, {})

    def commits_of(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield topic, partition and offset of each commit of the group."""
        for topic, partitions in self.of_group(group_id).items():
            for partition, commit in partitions.items():
                yield topic, partition, commit

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def groups_with(self, topics: frozenset[str]) -> Iterator[str]:
        """Return the groups that have committed for one of these topics."""
        return (group_id for group_id, of_group in self._groups.items() if not topics.isdisjoint(of_group))

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for this partition."""
        return any(partition in groups.get(group_id, {}).get(topic, {}) for groups in self._pending.values())

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction has an offset of this group."""
        return any(group_id in groups for groups in self._pending.values())

    # -------------------------------------------------------------------------------------------------------- the state

    def replay(self, record: CoordinatorRecord, record_offset: int, producer_id: int = NO_PRODUCER) -> None:
        """Apply a commit or a tombstone. `producer_id` is that of its transaction, if it belongs to one."""
        key: Any = record.key
        value: Any = record.value
        if value is None:
            self.count -= _remove(self._groups, key)
            for groups in self._pending.values():
                _remove(groups, key)
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
            self.count += _put(self._groups, key.group, key.topic, key.partition, commit)
        else:
            _put(self._pending.setdefault(producer_id, {}), key.group, key.topic, key.partition, commit)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Commit the pending offsets of a producer, or discard them.

        A commit outside transactions stays if its record is later in the log than that of the transaction's commit;
        the place of the marker does not matter.
        """
        groups = self._pending.pop(producer_id, {})
        if not committed:
            return
        for group_id, topics in groups.items():
            for topic, partition, commit in _each(topics):
                existing = self.get(group_id, topic, partition)
                if existing is None or existing.record_offset < commit.record_offset:
                    self.count += _put(self._groups, group_id, topic, partition, commit)

    # ------------------------------------------------------------------------------------------------- records to write

    def tombstones_of_group(self, group_id: str) -> list[CoordinatorRecord]:
        """Return tombstones for all committed and pending offsets of the group."""
        partitions: dict[TopicPartition, None] = {}
        for groups in (self._groups, *self._pending.values()):
            partitions |= dict.fromkeys((topic, index) for topic, index, _ in _each(groups.get(group_id, {})))
        return [offset_tombstone(group_id, topic, index) for topic, index in partitions]

    def tombstones_of_partitions(self, group_id: str, topic: str, partitions: Iterable[int]) -> list[CoordinatorRecord]:
        """Return tombstones for the group's committed and pending offsets of these partitions."""
        return [
            offset_tombstone(group_id, topic, index)
            for index in partitions
            if self.get(group_id, topic, index) is not None or self.is_pending(group_id, topic, index)
        ]

    def expired(self, group: Group, now_ms: int, retention_ms: int) -> tuple[list[CoordinatorRecord], bool]:
        """Return tombstones for the offsets that have expired, and whether the group has no others."""
        group_id = group.group_id
        tombstones = []
        nothing_left = not self.has_pending(group_id)
        for topic, index, commit in _each(self._groups.get(group_id, {})):
            if (
                not group.is_subscribed_to(topic)
                and _has_expired(commit, group, now_ms, retention_ms)
                and not self.is_pending(group_id, topic, index)
            ):
                tombstones.append(offset_tombstone(group_id, topic, index))
            else:
                nothing_left = False
        return tombstones, nothing_left


def _has_expired(commit: CommittedOffset, group: Group, now_ms: int, retention_ms: int) -> bool:
    start = group.retention_start(commit.committed_at_ms)
    if start is None:
        return False
    if commit.expires_at_ms != NO_EXPIRY:
        return now_ms >= commit.expires_at_ms
    return now_ms - start >= retention_ms


def _each(topics: OfGroup) -> Iterator[tuple[str, int, CommittedOffset]]:
    for topic, partitions in topics.items():
        for index, commit in partitions.items():
            yield topic, index, commit


def _put(groups: dict[str, OfGroup], group_id: str, topic: str, partition: int, commit: CommittedOffset) -> bool:
    """Put the commit in place; return whether it is the partition's first."""
    partitions = groups.setdefault(group_id, {}).setdefault(topic, {})
    is_new = partition not in partitions
    partitions[partition] = commit
    return is_new


def _remove(groups: dict[str, OfGroup], key: Any) -> bool:
    """Remove a commit; return whether there was one."""
    topics = groups.get(key.group, {})
    partitions = topics.get(key.topic, {})
    was_there = partitions.pop(key.partition, None) is not None
    if was_there and not partitions:
        del topics[key.topic]
        if not topics:
            del groups[key.group]
    return was_there
