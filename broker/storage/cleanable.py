"""The decision which log compaction takes next, how much of it, and in which groups of segments.

`retention` decides which segments of a log are deleted. Both decide from numbers and change nothing.

```
log start      first dirty offset      first uncleanable offset      log end
    |    clean        |        dirty, cleanable    |     not yet        |
```
- The first dirty offset is where the last round ended (`cleaner-offset-checkpoint`), or the start of the log.
- The first uncleanable offset is the lowest base offset of: the active segment, the segment of the last stable offset
  (records of open transactions are not compacted), the first dirty segment with a record younger than
  `min.compaction.lag.ms`.
- A log is due if the cleanable part is more than `min.cleanable.dirty.ratio` of both parts, or if its first dirty
  record is older than `max.compaction.lag.ms` (KIP-354). Of the logs that are due, the one with the highest ratio
  goes first.
- Adjacent segments are cleaned into one as long as the result could not exceed the configured sizes of a segment and
  its indexes.

As in Kafka's `LogCleanerManager` and `Cleaner.groupSegmentsBySize`. The cost grows with the number of segments; a time
index is read only where a lag is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from odradek.broker.storage.log_config import NO_LIMIT, LogConfig
from odradek.broker.storage.retention import RetainedSegment
from odradek.broker.storage.segment import MAX_RELATIVE_OFFSET


class CompactedSegment(RetainedSegment, Protocol):
    """A segment as this decision needs it: base offset, size, and times (ms) where a lag is configured."""

    def first_timestamp(self) -> int: ...


S = TypeVar("S", bound=CompactedSegment)


class Cleanable(NamedTuple):
    """The parts of a log as drawn above, in bytes; `delay_ms` is how far the log exceeds its lag, else 0."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        if self.delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.dirty_ratio > config.min_cleanable_dirty_ratio


def cleanable_part(
    segments: Sequence[CompactedSegment],
    config: LogConfig,
    *,
    cleaned_offset: int | None,
    log_start_offset: int,
    last_stable_offset: int,
    log_end_offset: int,
    now_ms: int,
) -> Cleanable:
    """The parts of the log with these segments; `cleaned_offset` is the checkpointed one, None without one."""
    first_dirty = log_start_offset if cleaned_offset is None else cleaned_offset
    if not log_start_offset <= first_dirty <= log_end_offset:
        first_dirty = log_start_offset
    active = segments[-1]
    dirty = _inactive_from(segments, first_dirty)
    bounds = [last_stable_offset, active.base_offset]
    if config.min_compaction_lag_ms > 0:
        youngest = now_ms - config.min_compaction_lag_ms
        bounds += [each.base_offset for each in dirty if each.retention_timestamp() > youngest][:1]
    bound = max(first_dirty, min(bounds))
    first_uncleanable = [*_inactive_from(segments, bound), active][0].base_offset
    return Cleanable(
        first_dirty,
        first_uncleanable,
        sum(each.size for each in segments if each.base_offset < first_dirty),
        sum(each.size for each in dirty if each.base_offset < first_uncleanable),
        _delay_ms(dirty, config.max_compaction_lag_ms, now_ms),
    )


def _inactive_from(segments: Sequence[S], offset: int) -> list[S]:
    """The segment that may hold `offset` and those behind it, without the active one."""
    active = segments[-1]
    ends = [segment.base_offset for segment in segments[1:]]
    return [segment for segment, end in zip(segments, ends, strict=False) if end > offset and segment is not active]


def _delay_ms(dirty: Sequence[CompactedSegment], max_lag_ms: int, now_ms: int) -> int:
    if max_lag_ms == NO_LIMIT:
        return 0
    # For retention zero is a time, here it is not, as in Kafka's `LogCleanerManager.maxCompactionDelay`.
    waiting = [timestamp for segment in dirty if (timestamp := segment.first_timestamp()) > 0]
    return max(now_ms - max_lag_ms - min(waiting), 0) if waiting else 0


class GroupedSegment(Protocol):
    """A segment as the grouping needs it; sizes in bytes."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def offset_index_size(self) -> int: ...

    @property
    def time_index_size(self) -> int: ...


G = TypeVar("G", bound=GroupedSegment)


def group_segments(
    segments: Sequence[G], *, segment_bytes: int, segment_index_bytes: int, end_offset: int
) -> list[list[G]]:
    """The segments in groups, each of which becomes one segment; `end_offset` is the end of the last one."""
    groups: list[list[G]] = []
    size = offset_index_size = time_index_size = 0
    for index, segment in enumerate(segments):
        end = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        size += segment.size
        offset_index_size += segment.offset_index_size
        time_index_size += segment.time_index_size
        if (
            groups
            and size <= segment_bytes
            and max(offset_index_size, time_index_size) <= segment_index_bytes
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = segment.size
            offset_index_size, time_index_size = segment.offset_index_size, segment.time_index_size
    return groups
