"""Committed offsets beside those of open transactions."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from odradek.broker.coordinator.offsets.committed_offsets import CommittedOffsets, commit_record, offset_tombstone
from odradek.broker.coordinator.offsets.events import OffsetContext, TopicsDeleted
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.coordinator.runtime.coordinator_shard import NO_PRODUCER
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.schema import ZERO_UUID
from odradek.protocol.stored_records.offset_commit import OffsetCommitKey
from tests.storage.logs import NOW


def commit(offset: int, group: str = "g", topic: str = "t", partition: int = 0) -> CoordinatorRecord:
    return commit_record(group, topic, partition, CommittedOffset(offset, -1, "", NOW, -1, ZERO_UUID, -1))


def offsets_of(*records: tuple[CoordinatorRecord, int]) -> CommittedOffsets:
    """Return the state after these records, each with the producer of its transaction."""
    offsets = CommittedOffsets()
    for record_offset, (record, producer_id) in enumerate(records):
        offsets.replay(record, record_offset, producer_id)
    return offsets


def partitions_of(records: list[CoordinatorRecord]) -> list[tuple[str, int]]:
    keys = [record.key for record in records]
    assert all(record.value is None for record in records)
    return [(key.topic, key.partition) for key in keys if isinstance(key, OffsetCommitKey)]


def committed(offsets: CommittedOffsets, partition: int = 0) -> int | None:
    found = offsets.get("g", "t", partition)
    return None if found is None else found.offset


def calls_in(function: Callable[[], object]) -> int:
    """Return how many functions a call calls, itself included."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("group", ["g", "other", "none"])
def test_whether_an_offset_is_pending_takes_as_long_with_a_thousand_open_transactions(group: str) -> None:
    few = offsets_of((commit(1, "g"), 1), (commit(1, "other"), 2))
    many = offsets_of(
        *[(commit(1, "g", partition=producer), producer) for producer in range(500)],
        *[(commit(1, "other"), producer) for producer in range(500, 1000)],
    )

    for reading in (
        lambda offsets: offsets.is_pending(group, "t", 0),
        lambda offsets: offsets.has_pending(group),
    ):
        assert calls_in(lambda: reading(few)) == calls_in(lambda: reading(many))  # noqa: B023 - called at once


def test_an_offset_is_pending_until_the_last_of_its_transactions_has_ended() -> None:
    offsets = offsets_of((commit(5), 1), (commit(6), 2))

    offsets.end_transaction(1, committed=True)
    assert offsets.is_pending("g", "t", 0)
    offsets.end_transaction(2, committed=False)

    assert not offsets.is_pending("g", "t", 0)
    assert not offsets.has_pending("g")
    assert committed(offsets) == 5


def test_a_transaction_ends_its_own_offsets_only() -> None:
    offsets = offsets_of((commit(5), 1), (commit(6, partition=1), 2), (commit(7, "h"), 1))

    offsets.end_transaction(1, committed=True)

    assert committed(offsets) == 5
    assert committed(offsets, 1) is None
    assert offsets.is_pending("g", "t", 1)
    assert not offsets.has_pending("h")
    assert offsets.count == 2


def test_a_deleted_offset_is_deleted_from_open_transactions_too() -> None:
    offsets = offsets_of(
        (commit(5), 1), (commit(6), 2), (commit(7, partition=1), 2), (offset_tombstone("g", "t", 0), NO_PRODUCER)
    )
    assert not offsets.is_pending("g", "t", 0)

    for producer in (1, 2):
        offsets.end_transaction(producer, committed=True)

    assert committed(offsets) is None
    assert committed(offsets, 1) == 7
    assert not offsets.has_pending("g")


def test_the_offsets_of_a_deleted_topic_are_deleted_pending_ones_included() -> None:
    offsets = offsets_of(
        (commit(1), NO_PRODUCER),
        (commit(2), 1),
        (commit(3, partition=1), 1),
        (commit(4, topic="kept"), 1),
        (commit(5, "h"), 2),
        (commit(6, "i", "kept"), 2),
    )
    deleted = frozenset({"t", "never used"})

    assert offsets.groups_with(deleted) == {"g", "h"}
    effects = TopicsDeleted(PendingReply(), deleted).effects(OffsetContext("g", None, offsets, NOW))

    assert partitions_of(effects.records) == [("t", 0), ("t", 1)]


def test_a_deleted_group_loses_pending_offsets_too() -> None:
    offsets = offsets_of((commit(1), NO_PRODUCER), (commit(2), 1), (commit(3, topic="u"), 2), (commit(4, "h"), 1))

    assert partitions_of(offsets.tombstones_of_group("g")) == [("t", 0), ("u", 0)]
