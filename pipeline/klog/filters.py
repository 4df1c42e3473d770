"""The filters of a query on topic, partition, offset and timestamp, applied before anything is read.

Spark applies every filter again to the rows. Here only records that cannot match are left out: other topics,
partitions and offsets, and records that are too old according to the time index. An index cannot show that a record is
too new, because timestamps are not ordered.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
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


class LogFilter(NamedTuple):
    """Topics and partitions (None: all), offsets [start_offset, end_offset), and the earliest timestamp in ms."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int = _MAX
    earliest_ms: int | None = None

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
        low, _ = _range(filter_)
        if isinstance(low, datetime):
            return wanted._replace(earliest_ms=max(wanted.earliest_ms or 0, _ms(low)))
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
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
