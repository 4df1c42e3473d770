"""Small ranges share a task, and all ranges are read once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Admin, NewTopic, Producer
from odradek.client.record import TopicPartition
from odradek.pipeline.options.broker_options import batch_read_options
from odradek.pipeline.reading.grouping import groups
from odradek.pipeline.reading.ranges import OffsetRange
from odradek.pipeline.reading.source import BrokerReader, RangePartition
from odradek.pipeline.worker_clients import close_idle_clients

COUNT = 40 * (os.cpu_count() or 1)  # of partitions
TASKS = 2 * (os.cpu_count() or 1)


@given(st.lists(st.floats(0.015, 3) | st.just(float("inf")), max_size=200), st.integers(1, 50))
def test_groups_have_all_ranges_in_order_and_a_bounded_cost(costs: list[float], fewest: int) -> None:
    ranges = [OffsetRange(TopicPartition("t", number), 0, 1) for number in range(len(costs))]
    found = groups(ranges, costs, fewest)
    assert [one for group in found for one in group] == ranges
    for group in found:
        assert len(group) == 1 or sum(costs[one.partition.partition] for one in group) <= 1.000001
    assert len(found) >= min(fewest, len(ranges))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedBroker]:
    """A broker with a topic of many partitions: three records in each but the first, which has 9 MB."""
    with ThreadedBroker({"log.dirs": str(tmp_path_factory.mktemp("log"))}) as started:
        asyncio.run(produce(started.bootstrap))
        yield started
        close_idle_clients()


async def produce(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        (await admin.create_topics([NewTopic("t", COUNT)])).values_or_raise()
        for _ in range(10):
            await producer.send("t", bytes(900_000), partition=0)
        for partition in range(1, COUNT):
            for _ in range(3):
                await producer.send("t", b"", partition=partition)


def read(broker: ThreadedBroker, **options: str) -> list[list[tuple[int, int]]]:
    """Return the partitions and offsets that each task reads."""
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"} | options
    reader = BrokerReader(batch_read_options(given), ("partition", "offset"))
    found = []
    for task in reader.partitions():
        assert isinstance(task, RangePartition)
        batches = [batch.to_pydict() for batch in reader.read(task)]
        found.append([pair for one in batches for pair in zip(one["partition"], one["offset"], strict=True)])
    return found


def test_a_large_partition_has_its_own_task_and_small_ones_share_few(broker: ThreadedBroker) -> None:
    tasks = read(broker)
    assert tasks[0] == [(0, offset) for offset in range(10)]
    assert sorted(row for rows in tasks[1:] for row in rows) == [
        (partition, offset) for partition in range(1, COUNT) for offset in range(3)
    ]
    assert TASKS <= len(tasks) <= 2 * TASKS + 1


def test_options_limit_the_groups(broker: ThreadedBroker) -> None:
    assert COUNT // 2 <= len(read(broker, minPartitions=str(COUNT // 2))) <= COUNT
    assert all(len(rows) <= 6 for rows in read(broker, maxRecordsPerPartition="6"))
    assert len(read(broker, minPartitions=str(COUNT))) == COUNT
