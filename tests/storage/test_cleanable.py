"""The choice of the log to compact, the part of it, and the groups of segments."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from odradek.broker.storage.cleanable import Cleanable, cleanable_part, group_segments
from odradek.broker.storage.log_config import LogConfig
from tests.storage.logs import NOW

HOUR = 3_600_000


class Piece(NamedTuple):
    """A segment whose records are all `hours` old."""

    base_offset: int
    hours: float = 0
    size: int = 100
    offset_index_size: int = 8
    time_index_size: int = 12

    def retention_timestamp(self) -> int:
        return self.first_timestamp()

    def first_timestamp(self) -> int:
        return NOW - int(self.hours * HOUR)


PIECES = [Piece(0, 9), Piece(10, 7), Piece(20, 3), Piece(30, 1)]


def part(cleaned: int | None = None, *, stable: int = 40, start: int = 0, end: int = 40, **config: object) -> Cleanable:
    return cleanable_part(
        PIECES,
        LogConfig(cleanup_policy=frozenset({"compact"}), **config),
        cleaned_offset=cleaned,
        log_start_offset=start,
        last_stable_offset=stable,
        log_end_offset=end,
        now_ms=NOW,
    )


def test_a_log_that_was_never_compacted_is_dirty_up_to_the_active_segment() -> None:
    assert part() == Cleanable(0, 30, clean_bytes=0, cleanable_bytes=300, delay_ms=0)
    assert part().dirty_ratio == 1


def test_segments_below_the_checkpoint_count_as_clean() -> None:
    assert part(20) == Cleanable(20, 30, clean_bytes=200, cleanable_bytes=100, delay_ms=0)
    assert part(20).dirty_ratio == pytest.approx(1 / 3)


def test_a_compacted_log_has_nothing_cleanable() -> None:
    assert part(30) == Cleanable(30, 30, clean_bytes=300, cleanable_bytes=0, delay_ms=0)


@pytest.mark.parametrize("cleaned", [-1, 41])
def test_a_checkpoint_outside_the_log_is_ignored(cleaned: int) -> None:
    assert part(cleaned).first_dirty_offset == 0


def test_the_dirty_part_begins_where_the_log_does() -> None:
    assert part(5, start=12)[:2] == (12, 30)


@pytest.mark.parametrize(("stable", "end"), [(40, 30), (29, 20), (20, 20), (19, 10), (0, 0)])
def test_an_open_transaction_is_uncleanable(stable: int, end: int) -> None:
    assert part(stable=stable).first_uncleanable_offset == end


@pytest.mark.parametrize(("hours", "end"), [(0, 30), (2, 30), (4, 20), (8, 10), (10, 0)])
def test_young_records_wait_for_min_compaction_lag_ms(hours: int, end: int) -> None:
    assert part(min_compaction_lag_ms=hours * HOUR).first_uncleanable_offset == end


@pytest.mark.parametrize(("cleaned", "delay"), [(0, 3), (10, 1), (20, 0), (30, 0)])
def test_old_records_are_due_after_max_compaction_lag_ms(cleaned: int, delay: int) -> None:
    found = part(cleaned, max_compaction_lag_ms=6 * HOUR)
    assert found.delay_ms == delay * HOUR
    assert found.is_due(LogConfig(min_cleanable_dirty_ratio=1.0)) == bool(delay)


def test_records_of_timestamp_zero_are_never_overdue_as_in_kafka() -> None:
    from_1970 = Piece(0, NOW / HOUR)
    assert from_1970.first_timestamp() == 0
    config = LogConfig(max_compaction_lag_ms=HOUR)
    found = cleanable_part(
        [from_1970, PIECES[-1]],
        config,
        cleaned_offset=None,
        log_start_offset=0,
        last_stable_offset=40,
        log_end_offset=40,
        now_ms=NOW,
    )
    assert (found.cleanable_bytes, found.delay_ms) == (100, 0)


@pytest.mark.parametrize(("ratio", "due"), [(0.3, True), (0.34, False)])
def test_a_log_is_due_above_min_cleanable_dirty_ratio(ratio: float, due: bool) -> None:
    assert part(20).is_due(LogConfig(min_cleanable_dirty_ratio=ratio)) == due


def groups(*pieces: Piece, segment_bytes: int = 300, index_bytes: int = 1000, end: int = 1000) -> list[list[int]]:
    found = group_segments(pieces, segment_bytes=segment_bytes, segment_index_bytes=index_bytes, end_offset=end)
    return [[piece.base_offset for piece in group] for group in found]


def test_segments_are_joined_up_to_the_size_of_one() -> None:
    assert groups(*(Piece(base) for base in range(7))) == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_segment_that_is_larger_than_one_may_be_is_alone() -> None:
    assert groups(Piece(0, size=500), Piece(1), Piece(2)) == [[0], [1, 2]]


def test_the_indexes_of_joined_segments_fit_into_one() -> None:
    assert groups(*(Piece(base) for base in range(4)), segment_bytes=1000, index_bytes=24) == [[0, 1], [2, 3]]


def test_offsets_of_joined_segments_fit_into_the_index() -> None:
    far = 0x7FFF_FFFF
    assert groups(Piece(0), Piece(far), end=far + 1) == [[0, far]]
    assert groups(Piece(0), Piece(far), end=far + 2) == [[0], [far]]
    assert groups(Piece(0), Piece(far, size=0), end=far + 2) == [[0, far]]
