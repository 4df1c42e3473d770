"""What a query's filters say about topic, partition, offset and timestamp, before anything is read.

Spark applies every filter again to the rows, so here only what cannot matter is left out: topics, partitions, offsets
outside a range, and what the time index shows to be too old. That a record is young enough no index can tell, since
timestamps may go up and down.
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
    """The partitions (None: all), offsets [start_offset, end_offset) and earliest timestamp in ms that are wanted."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int = _MAX
    earliest_ms: int | None = None

    def takes(self, partition: TopicPartition) -> bool:
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )


def log_filter(filters: Iterable[Filter]) -> LogFilter:
    """What all of these filters leave, as far as it can be said this way."""
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
    """The values that a column may have, if the filter lists them."""
    if isinstance(filter_, (EqualTo, EqualNullSafe)):
        return frozenset([filter_.value])
    return frozenset(filter_.value) if isinstance(filter_, In) else None


def _range(filter_: Any) -> tuple[Any, Any]:
    """The least and the largest value that the filter lets pass, None where it sets no limit.

    Of a strict limit the value itself is taken for one that passes, as Spark looks again.
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
