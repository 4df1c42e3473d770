"""The filters of a query on topic, partition, offset and timestamp, applied before anything is read.

Spark applies every filter again to the rows. Here only records that cannot match are left out: other topics,
partitions and offsets, and records before the first one that is not too old, which an index finds. No index finds the
last record that is not too new: timestamps are not ordered, so an older record may follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from odradek.client.record import TopicPartition

_MAX = (1 << 63) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LogFilter(NamedTuple):
    """Topics and partitions (None: all), offsets [start_offset, end_offset), and timestamps in ms (None: any)."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int = _MAX
    earliest_ms: int | None = None
    latest_ms: int | None = None  # inclusive

    @property
    def is_contradictory(self) -> bool:
        """Whether no record can match."""
        if self.earliest_ms is not None and self.latest_ms is not None and self.earliest_ms > self.latest_ms:
            return True
        return self.start_offset >= self.end_offset or self.topics == frozenset() or self.partitions == frozenset()

    def matches(self, partition: TopicPartition) -> bool:
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )


def log_filter(filters: Iterable[Filter]) -> LogFilter:
    """Combine filters into one; those on other columns, or of other kinds, are ignored."""
    wanted = LogFilter()
    for each in filters:
        attribute: tuple[str, ...] = getattr(each, "attribute", ())
        if len(attribute) == 1:
            wanted = _narrowed(wanted, attribute[0], each)
    return wanted


def _narrowed(wanted: LogFilter, column: str, filter_: Any) -> LogFilter:
    if column in ("topic", "partition"):
        values = _values(filter_)
        if values is None:
            return wanted
        if column == "topic":
            return wanted._replace(topics=values if wanted.topics is None else wanted.topics & values)
        return wanted._replace(partitions=values if wanted.partitions is None else wanted.partitions & values)
    if column == "offset":
        low, high = _range(filter_)
        start = wanted.start_offset if low is None else max(wanted.start_offset, low)
        end = wanted.end_offset if high is None else min(wanted.end_offset, high + 1)
        return wanted._replace(start_offset=start, end_offset=end)
    if column == "timestamp":
        low, high = _range(filter_)
        if isinstance(low, datetime):
            low_ms = _ms(low)
            wanted = wanted._replace(
                earliest_ms=low_ms if wanted.earliest_ms is None else max(wanted.earliest_ms, low_ms)
            )
        if isinstance(high, datetime):
            high_ms = _ms(high)
            wanted = wanted._replace(latest_ms=high_ms if wanted.latest_ms is None else min(wanted.latest_ms, high_ms))
    return wanted


def _values(filter_: Any) -> frozenset[Any] | None:
    """Return the values that the filter allows, or None if it does not list them."""
    if isinstance(filter_, (EqualTo, EqualNullSafe)):
        return frozenset([filter_.value])
    return frozenset(filter_.value) if isinstance(filter_, In) else None


def _range(filter_: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest value that the filter allows, None where it sets no limit.

    A strict limit is treated as an inclusive one, because Spark applies the filter again.
    """
    values = _values(filter_)
    if values is not None:
        known = [value for value in values if value is not None]
        return (min(known), max(known)) if known else (None, None)
    if isinstance(filter_, (GreaterThan, GreaterThanOrEqual)):
        return filter_.value, None
    if isinstance(filter_, (LessThan, LessThanOrEqual)):
        return None, filter_.value
    return None, None


def _ms(time: datetime) -> int:
    """Return the last millisecond that is not after a time. Timestamps of records are whole milliseconds."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)
