"""A topic that is deleted and created again under a query is data loss, and its new records are not skipped.

A stream that may lose data waits while the topic does not exist.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Admin, NewTopic, UnknownTopicError
from odradek.pipeline.options.broker_options import batch_read_options, write_options
from odradek.pipeline.reading.data_loss import DataLossError
from odradek.pipeline.reading.source import BrokerReader, RangePartition
from odradek.pipeline.reading.stream import BrokerStreamReader
from odradek.pipeline.reading.stream_offsets import Offsets, StreamOffsets
from odradek.pipeline.schema import spark_schema
from odradek.pipeline.worker_clients import close_idle_clients
from odradek.pipeline.writing.sink import write_rows

Reader = BrokerReader | BrokerStreamReader


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedBroker]:
    with ThreadedBroker({"log.dirs": str(tmp_path_factory.mktemp("log"))}) as started:
        yield started
        close_idle_clients()


class Topic:
    """A topic of one partition, with numbers as values."""

    def __init__(self, broker: ThreadedBroker, name: str) -> None:
        self.name = name
        self.options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": name, "subscribe": name}
        self.options |= {"startingOffsets": "earliest", "kafka.max.partition.fetch.bytes": "300"}
        self.create()

    def create(self) -> None:
        self.id = asyncio.run(self._create())

    def delete(self) -> None:
        asyncio.run(self._delete())

    def recreate(self) -> None:
        self.delete()
        self.create()

    def write(self, *numbers: int) -> None:
        for number in numbers:  # a batch each
            values = [b"%d" % number]
            write_rows(write_options(self.options), iter([pa.RecordBatch.from_pydict({"value": values})]))

    async def _create(self) -> str:
        async with Admin(self.options["kafka.bootstrap.servers"]) as admin:
            return (await admin.create_topics([NewTopic(self.name, 1)])).values_or_raise()[self.name].topic_id

    async def _delete(self) -> None:
        async with Admin(self.options["kafka.bootstrap.servers"]) as admin:
            (await admin.delete_topics([self.name])).values_or_raise()


@pytest.fixture
def topic(broker: ThreadedBroker, request: pytest.FixtureRequest) -> Topic:
    return Topic(broker, request.node.name.replace("[", "-").replace("]", ""))


def batch(topic: Topic, **options: str) -> BrokerReader:
    return BrokerReader(batch_read_options(topic.options | options), ("value",))


def stream(topic: Topic, **options: str) -> BrokerStreamReader:
    given = {name: value for name, value in topic.options.items() if name != "topic"}
    return BrokerStreamReader(given | options, spark_schema(["value"]))


def numbers(reader: Reader, tasks: object) -> list[int]:
    assert isinstance(tasks, list)
    assert all(isinstance(task, RangePartition) for task in tasks)
    return [int(value) for task in tasks for rows in reader.read(task) for value in rows.column(0).to_pylist()]


def message(topic: Topic, old: str) -> str:
    return f"{topic.name}.* was deleted and created again: .* with id {old}.* the id is now {topic.id}"


def test_a_batch_does_not_read_the_new_topic_in_place_of_the_old_one(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    topic.write(1, 2, 3)
    strict, lenient, old = batch(topic), batch(topic, failOnDataLoss="false"), topic.id
    tasks = strict.partitions()
    assert numbers(strict, tasks) == [1, 2, 3]
    topic.recreate()
    topic.write(10, 20, 30, 40)
    assert numbers(strict, strict.partitions()) == [10, 20, 30, 40]
    with pytest.raises(DataLossError, match=message(topic, old)):
        numbers(strict, tasks)
    assert numbers(lenient, tasks) == []
    assert f"the id is now {topic.id}" in caplog.text


def test_a_task_that_has_begun_does_not_continue_in_the_new_topic(topic: Topic) -> None:
    topic.write(*range(20))
    reader, old = batch(topic), topic.id
    rows = reader.read(reader.partitions()[0])
    assert 0 < next(rows).num_rows < 20
    topic.recreate()
    topic.write(*range(100, 130))
    with pytest.raises(DataLossError, match=message(topic, old)):
        list(rows)


@pytest.mark.parametrize("count", [3, 10, 20])
def test_a_stream_reads_the_new_topic_from_its_start(
    topic: Topic, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    topic.write(*range(10))
    strict, lenient, old = stream(topic), stream(topic, failOnDataLoss="false"), topic.id
    known = strict.latestOffset(strict.initialOffset(), ReadAllAvailable())
    topic.recreate()
    topic.write(*range(100, 100 + count))
    for reader in (strict, lenient):
        later = reader.latestOffset(stored(known), ReadAllAvailable())
        assert later != known
        if reader is strict:
            continues = "A query that continues reads the new topic from its start"
            with pytest.raises(DataLossError, match=f"{message(topic, old)}.*{continues}"):
                reader.partitions(stored(known), stored(later))
        else:
            assert numbers(reader, reader.partitions(stored(known), stored(later))) == [*range(100, 100 + count)]
        reader.stop()
    assert f"the id is now {topic.id}" in caplog.text


def test_batches_of_a_limited_size_read_the_new_topic_from_its_start(topic: Topic) -> None:
    topic.write(*range(10))
    reader = stream(topic, failOnDataLoss="false")
    known, read = reader.latestOffset(reader.initialOffset(), ReadAllAvailable()), []
    topic.recreate()
    topic.write(*range(100, 115))
    while (later := reader.latestOffset(stored(known), ReadMaxRows(6))) != known:
        read.append(numbers(reader, reader.partitions(stored(known), stored(later))))
        known = later
    reader.stop()
    assert read == [[*range(100, 106)], [*range(106, 112)], [*range(112, 115)]]


def test_a_topic_recreated_within_a_batch_of_a_stream_is_read_by_the_next_one(topic: Topic) -> None:
    topic.write(*range(10))
    reader = stream(topic, failOnDataLoss="false")
    first = reader.initialOffset()
    known = reader.latestOffset(first, ReadAllAvailable())
    tasks = reader.partitions(stored(first), stored(known))
    topic.recreate()
    topic.write(*range(100, 120))
    assert numbers(reader, tasks) == []
    later = reader.latestOffset(stored(known), ReadAllAvailable())
    assert numbers(reader, reader.partitions(stored(known), stored(later))) == [*range(100, 120)]
    reader.stop()


def test_a_stream_waits_while_its_topic_does_not_exist(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    topic.write(*range(10))
    strict, lenient = stream(topic), stream(topic, failOnDataLoss="false")
    known, old = lenient.latestOffset(lenient.initialOffset(), ReadAllAvailable()), topic.id
    topic.delete()
    for limit in (ReadAllAvailable(), ReadMaxRows(5)):
        assert lenient.latestOffset(stored(known), limit) == known
    assert lenient.partitions(stored(known), stored(known)) == []
    assert lenient.reportLatestOffset() == {}
    with pytest.raises(UnknownTopicError, match=topic.name):
        strict.latestOffset(stored(known), ReadAllAvailable())
    assert caplog.text.count(f"Topic {topic.name} does not exist") == 1
    topic.create()
    topic.write(*range(100, 103))
    later = lenient.latestOffset(stored(known), ReadAllAvailable())
    assert numbers(lenient, lenient.partitions(stored(known), stored(later))) == [100, 101, 102]
    assert f"with id {old}, and the id is now {topic.id}" in caplog.text
    for reader in (strict, lenient):
        reader.stop()


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_stream_reads_all_of_a_topic_that_is_created_after_its_start(topic: Topic, start: str) -> None:
    topic.delete()
    reader = stream(topic, failOnDataLoss="false", startingOffsets=start)
    reader.prepareForTriggerAvailableNow()
    first = reader.initialOffset()
    assert reader.latestOffset(stored(first), ReadAllAvailable()) == first == {}
    reader.stop()
    reader = stream(topic, failOnDataLoss="false", startingOffsets=start)
    topic.create()
    topic.write(*range(10))
    later = reader.latestOffset(stored(first), ReadMaxRows(100))
    assert numbers(reader, reader.partitions(stored(first), stored(later))) == [*range(10)]
    reader.stop()


def test_a_planned_batch_of_a_new_topic_that_is_deleted_is_empty(topic: Topic) -> None:
    topic.write(*range(10))
    reader = stream(topic, failOnDataLoss="false")
    end = reader.latestOffset({}, ReadAllAvailable())
    topic.delete()
    assert reader.partitions({}, stored(end)) == []
    reader.stop()


def test_offsets_without_an_id_continue(topic: Topic) -> None:
    topic.write(*range(10))
    reader = stream(topic)
    known = StreamOffsets.from_json(reader.latestOffset(reader.initialOffset(), ReadAllAvailable())).numbers
    topic.write(*range(10, 15))
    start = StreamOffsets(known, {}).to_json()
    later = reader.latestOffset(start, ReadAllAvailable())
    assert numbers(reader, reader.partitions(start, later)) == [*range(10, 15)]
    assert StreamOffsets.from_json(later).topic_ids == {topic.name: topic.id}
    reader.stop()


def stored(offsets: Offsets) -> Offsets:
    """Return offsets as Spark passes them after it has stored them."""
    parsed: Offsets = json.loads(json.dumps(offsets))
    return parsed
