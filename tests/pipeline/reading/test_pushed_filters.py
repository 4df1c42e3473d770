"""Filters on offset, partition, topic and timestamp: the same rows from smaller ranges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
)

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Admin, NewTopic, Producer
from odradek.pipeline.options.broker_options import batch_read_options
from odradek.pipeline.reading.source import BrokerReader, RangePartition
from odradek.pipeline.worker_clients import close_idle_clients

COLUMNS = ("topic", "partition", "offset", "timestamp")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
T0 = 1_700_000_000_000
COUNT = 300  # of records in each of three partitions

MATCHES: dict[type, Callable[[Any, Any], bool]] = {
    EqualTo: lambda found, wanted: bool(found == wanted),
    EqualNullSafe: lambda found, wanted: bool(found == wanted),
    In: lambda found, wanted: found in wanted,
    GreaterThan: lambda found, wanted: bool(found > wanted),
    GreaterThanOrEqual: lambda found, wanted: bool(found >= wanted),
    LessThan: lambda found, wanted: bool(found < wanted),
    LessThanOrEqual: lambda found, wanted: bool(found <= wanted),
}

Row = dict[str, Any]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedBroker]:
    """A broker with two topics: timestamps of producers, unordered, in small segments; and times of the broker."""
    properties = {"log.dirs": str(tmp_path_factory.mktemp("log")), "log.index.interval.bytes": "100"}
    with ThreadedBroker(properties) as started:
        asyncio.run(produce(started.bootstrap))
        yield started
        close_idle_clients()


async def produce(bootstrap: str) -> None:
    chance = Random(5)
    small = {"segment.bytes": "4096", "retention.ms": "-1"}
    async with Admin(bootstrap) as admin:
        topics = [
            NewTopic("created", 2, configs=small),
            NewTopic("appended", 1, configs=small | {"message.timestamp.type": "LogAppendTime"}),
        ]
        (await admin.create_topics(topics)).values_or_raise()
    for codec in ("none", "lz4", "gzip"):
        async with Producer(bootstrap, compression_type=codec, batch_size=500, linger_ms=1) as producer:
            for topic, partition in (("created", 0), ("created", 1), ("appended", 0)):
                for number in range(COUNT // 3):
                    time = T0 + 100 * number + chance.randrange(-2000, 2000)
                    if chance.random() < 0.02:
                        time = T0 + chance.choice([-(10**9), 10**9, 20_000])
                    await producer.send(topic, b"v%d" % number, partition=partition, timestamp=time)
            await producer.flush()


def reader(broker: ThreadedBroker, *filters: Filter, **options: str) -> BrokerReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "created,appended", **options}
    made = BrokerReader(batch_read_options(given), COLUMNS)
    assert made.pushFilters(list(filters)) == list(filters)
    return made


def tasks(made: BrokerReader) -> list[RangePartition]:
    found = made.partitions()
    assert all(isinstance(task, RangePartition) for task in found)
    return found  # type: ignore[return-value]


def rows(made: BrokerReader) -> list[Row]:
    return [row for task in tasks(made) for batch in made.read(task) for row in batch.to_pylist()]


def planned(made: BrokerReader) -> int:
    """Return the number of offsets that the tasks read."""
    return sum(one.size for task in tasks(made) for one in task.offset_ranges)


def ms(timestamp: float) -> datetime:
    return EPOCH + timedelta(milliseconds=timestamp)


def matches(row: Row, filters: list[Any]) -> bool:
    return all(MATCHES[type(one)](row[one.attribute[0]], one.value) for one in filters)


@pytest.fixture(scope="module")
def whole(broker: ThreadedBroker) -> list[Row]:
    found = rows(reader(broker))
    assert len(found) == 3 * COUNT
    return found


def random_filter(chance: Random, whole: list[Row]) -> Filter:
    column = chance.choice(["offset", "offset", "partition", "topic", "timestamp", "timestamp", "timestamp"])

    def value() -> Any:
        found = chance.choice(whole)[column]
        if column == "timestamp":
            return found + timedelta(microseconds=chance.choice([0, 0, 1, -1, 999, 500_000]))
        return found + chance.choice([0, 0, -1, 1, 10**6, -(10**6)]) if column == "offset" else found

    kind = chance.choice([EqualTo, EqualNullSafe, In, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual])
    if kind is In:
        return In((column,), tuple(value() for _ in range(chance.randrange(1, 4))))
    return kind((column,), value())


@pytest.mark.parametrize("seed", range(4))
def test_the_rows_are_those_of_an_unfiltered_read(broker: ThreadedBroker, whole: list[Row], seed: int) -> None:
    chance = Random(seed)
    for _ in range(25):
        filters = [random_filter(chance, whole) for _ in range(chance.randrange(1, 4))]
        found = rows(reader(broker, *filters))
        expected = [row for row in whole if matches(row, filters)]
        assert [row for row in found if matches(row, filters)] == expected, filters


def test_only_the_offsets_between_bounds_are_read(broker: ThreadedBroker) -> None:
    def count(*filters: Filter, **options: str) -> int:
        return planned(reader(broker, *filters, **options))

    created, offset = EqualTo(("topic",), "created"), ("offset",)
    assert count() == 3 * COUNT
    assert count(created) == 2 * COUNT
    assert count(created, In(("partition",), (1, 7, None))) == COUNT
    assert count(created, GreaterThanOrEqual(offset, 100), LessThan(offset, 120)) == 42  # `<` like `<=`
    assert count(EqualTo(offset, 5)) == 3
    assert (
        count(created, LessThanOrEqual(offset, 9), startingOffsets="earliest", endingTimestamp=str(T0 + 10**12)) == 20
    )
    assert count(Not(EqualTo(("partition",), 0)), EqualTo(("timestampType",), 0)) == 3 * COUNT


def test_a_bound_on_time_omits_the_records_before_the_first_late_one(broker: ThreadedBroker, whole: list[Row]) -> None:
    wanted = GreaterThan(("timestamp",), ms(T0 + 5 * 10**8))  # only outliers are as late, and the times of the broker
    late: dict[tuple[str, int], int] = {}
    for row in whole:
        if row["timestamp"] > wanted.value:
            late.setdefault((row["topic"], row["partition"]), row["offset"])
    assert late["appended", 0] == 0
    assert any(offset > 10 for offset in late.values())
    assert planned(reader(broker, wanted)) == sum(COUNT - offset for offset in late.values())


@pytest.mark.parametrize(
    "filters",
    [
        [GreaterThan(("offset",), 10), LessThan(("offset",), 5)],
        [EqualTo(("partition",), 0), EqualTo(("partition",), 1)],
        [EqualNullSafe(("topic",), None)],
        [GreaterThan(("timestamp",), ms(T0 + 5000)), LessThan(("timestamp",), ms(T0))],
        [GreaterThan(("timestamp",), ms(T0 * 3))],
        [GreaterThan(("offset",), 1 << 62)],
    ],
)
def test_without_a_possible_row_there_is_no_task(broker: ThreadedBroker, filters: list[Filter]) -> None:
    assert reader(broker, *filters).partitions() == []


def test_records_without_a_timestamp_pass_a_bound_before_1970(broker: ThreadedBroker) -> None:
    assert planned(reader(broker, GreaterThanOrEqual(("timestamp",), ms(-1)))) == 3 * COUNT


def test_excluded_offsets_are_not_lost(broker: ThreadedBroker) -> None:
    async def delete() -> None:
        async with Admin(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("deleted", 1)])).values_or_raise()
            async with Producer(broker.bootstrap) as producer:
                for _ in range(20):
                    await producer.send("deleted", b"")
            (await admin.delete_records({("deleted", 0): 10})).values_or_raise()

    asyncio.run(delete())
    options = {"subscribe": "deleted", "startingOffsets": '{"deleted": {"0": 0}}'}
    found = rows(reader(broker, GreaterThanOrEqual(("offset",), 10), **options))
    assert [row["offset"] for row in found] == [*range(10, 20)]
