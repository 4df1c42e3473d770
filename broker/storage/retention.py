"""The decision which segments of a log retention deletes: those that have expired.

`cleanable` decides which log compaction takes. Both decide from numbers and change nothing.

```
log start offset moved up        the next segment begins at or below the log start offset        any cleanup.policy
retention.bytes                  without the segment the log still has that many bytes           with `delete`
retention.ms                     the segment's largest timestamp is older than that              with `delete`
```
The rules apply in this order, from the oldest segment on. Each rule continues where the one before stopped, and stops
at the first segment that it keeps: a log has no gaps. A segment that reaches the high watermark stays, and so does an
empty last one. A segment without timestamps has the age of its file. As in Kafka's `UnifiedLog.deleteOldSegments`.

The cost grows with the number of deleted segments, not with that of the others; a segment's timestamp is read from its
index the first time that it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from odradek.broker.storage.log_config import LogConfig


class RetainedSegment(Protocol):
    """A segment as this decision needs it: base offset, size, and the time from which its age counts."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def retention_timestamp(self) -> int: ...


S = TypeVar("S", bound=RetainedSegment)


def segments_to_delete(
    segments: Sequence[S],
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    now_ms: int,
) -> list[S]:
    """The leading segments to delete of `segments`, which are all segments of a log, in order.

    The last one may be among them: then the caller must roll the log first.
    """
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    count = 0

    def extend(has_expired: Callable[[int], bool]) -> None:
        nonlocal count
        while (
            count < len(segments)
            and high_watermark >= ends[count]
            and (segments[count].size or count + 1 < len(segments))
            and has_expired(count)
        ):
            count += 1

    extend(lambda index: index + 1 < len(segments) and ends[index] <= log_start_offset)
    if config.has_retention:
        if config.retention_bytes >= 0:
            surplus = sum(segment.size for segment in segments[count:]) - config.retention_bytes

            def is_surplus(index: int) -> bool:
                nonlocal surplus
                surplus -= segments[index].size
                return surplus >= 0

            extend(is_surplus)
        if config.retention_ms >= 0:
            extend(lambda index: now_ms - segments[index].retention_timestamp() > config.retention_ms)
    return list(segments[:count])
