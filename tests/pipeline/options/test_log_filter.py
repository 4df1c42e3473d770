"""Filters of a query as bounds on partitions, offsets and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, StringStartsWith

from odradek.client.record import TopicPartition
from odradek.pipeline.options.log_filter import LogFilter, log_filter

TIME = ("timestamp",)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time", "earliest_ms"),
    [
        (EPOCH + timedelta(milliseconds=1_700_000_000_123), 1_700_000_000_123),
        (EPOCH + timedelta(milliseconds=1_700_000_000_123, microseconds=999), 1_700_000_000_123),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), 253_402_300_799_999),
        (EPOCH - timedelta(microseconds=1), -1),
        (EPOCH - timedelta(days=1), -86_400_000),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
    ],
)
def test_a_bound_on_time_is_rounded_down_to_a_millisecond(time: datetime, earliest_ms: int) -> None:
    assert log_filter([GreaterThanOrEqual(TIME, time)]) == LogFilter(earliest_ms=earliest_ms)
    assert log_filter([LessThan(TIME, time)]) == LogFilter(latest_ms=earliest_ms)


def test_filters_are_combined() -> None:
    filters: list[Filter] = [
        In(("partition",), (1, 2, None)),
        In(("partition",), (2, 3)),
        GreaterThan(("offset",), 5),
        GreaterThan(("offset",), 3),
        In(TIME, (EPOCH + timedelta(seconds=3), EPOCH + timedelta(seconds=1), None)),
        StringStartsWith(("topic",), "t"),
        GreaterThan(("headers", "key"), 9),
    ]
    found = log_filter(filters)
    assert found == LogFilter(partitions=frozenset([2]), start_offset=5, earliest_ms=1000, latest_ms=3000)
    assert found.matches(TopicPartition("t", 2))
    assert not found.matches(TopicPartition("t", 3))
    assert not found.is_contradictory
    assert log_filter([*filters, LessThan(TIME, EPOCH)]).is_contradictory
