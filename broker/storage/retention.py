"""Which segments of a log have expired: a decision made of numbers; nothing is deleted here.

```
log start offset moved up        the next segment begins at or below the log start offset        any cleanup.policy
retention.bytes                  without the segment the log would still have so many bytes      with `delete`
retention.ms                     the segment's largest timestamp is longer ago than that         with `delete`
```
The rules apply in this order, from the oldest segment on. Each one goes on where the one before has stopped, and stops
at the first segment that it keeps: a log has no gaps. A segment that reaches the high watermark stays, and so does an
empty last one. A segment without timestamps is as old as its file. Kafka's `UnifiedLog.deleteOldSegments`.

The cost grows with the segments that go, not with those that stay; the timestamp of a segment is read from its index
the first time that it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from odradek.broker.storage.log_config import LogConfig


class RetainedSegment(Protocol):
    """What is asked of a segment: where it begins, its bytes, and the time from which its age counts."""

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
    """The first segments of `segments`, which are those of a log in order, that should be deleted.

    The last one may be among them: then the log is to be rolled first.
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
