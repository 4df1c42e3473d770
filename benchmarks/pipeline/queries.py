"""The topics of the benchmark, and the query of each contender: reads, writes, and streams into files."""

from __future__ import annotations

import itertools
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.pipeline.rounds import Case
from odradek.pipeline.klog.segments import LogDirectory
from tests.peers.server import Server

PARTITIONS = 4
# Without the last one, a consumer at the end of its partition delays the next query by half a second.
TUNED = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.fetch.max.wait.ms": "20",
}
STREAM_BATCHES = 3
OLD = 8  # queries ago; a stream uses two directories
NOW = 1_700_000_000_000
READERS = ("official", "broker", "klog")
CLIENTS = ("official", "broker")
READS = ("noop", "aggregate", "parquet")


class Queries:
    """One session and one broker; output goes into `directory`."""

    def __init__(self, spark: SparkSession, server: Server, directory: Path) -> None:
        self.spark = spark
        self.server = server
        self._directory = directory
        self._numbers = itertools.count()
        self._admin = AdminClient({"bootstrap.servers": server.bootstrap})

    def new_topic(self) -> str:
        topic = f"bench-{next(self._numbers)}"
        self._admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
        return topic

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(30)

    @contextmanager
    def topics(self, sizes: list[int], codec: str, value: int) -> Iterator[dict[int, str]]:
        """Fill a topic for each number of records; delete the topics at the end."""
        filled = {size: self._fill(size, codec, value) for size in sizes}
        yield filled
        for topic in filled.values():
            self.delete_topic(topic)

    def _fill(self, records: int, codec: str, value: int) -> str:
        """Fill a topic with records of 8-byte keys and half random values, and wait until its files are complete."""
        topic = self.new_topic()
        producer = Producer(
            {"bootstrap.servers": self.server.bootstrap, "compression.type": codec, "batch.size": 65536,
             "queue.buffering.max.messages": 1_000_000, "linger.ms": 20}
        )  # fmt: skip
        pieces = [random.Random(i).randbytes(value // 2) + b"x" * (value - value // 2) for i in range(1000)]
        for i in range(records):
            producer.produce(topic, pieces[i % 1000], b"%08d" % i, i % PARTITIONS, timestamp=NOW + i)
            if i % 5000 == 0:
                producer.poll(0)
        assert producer.flush(60) == 0
        while self._complete(topic) < records:
            time.sleep(0.5)  # the broker writes its high watermarks every five seconds
        return topic

    def _complete(self, topic: str) -> int:
        with LogDirectory(str(self.server.log_dir)) as directory:
            return sum(directory.read(each, lambda log: log.end_offset) for each in directory.partitions({topic}))

    def works(self, work: str, topics: dict[int, str], codec: str) -> dict[Case, Callable[[], None]]:
        """Return the query of each contender and size: a small one of every contender, then the next larger ones."""
        contenders = READERS if work in READS else CLIENTS
        cases = list(itertools.product(sorted(topics), contenders))
        if work == "write":
            sources = {records: self._table("klog", topic).select("key", "value") for records, topic in topics.items()}
            return {
                (name, records): partial(self._write, name, sources[records].cache(), codec) for records, name in cases
            }
        query = self._read_stream if work == "stream" else partial(self._read, work)
        return {(name, records): partial(query, name, topics[records], records) for records, name in cases}

    def _table(self, contender: str, topic: str) -> DataFrame:
        if contender == "klog":
            return self.spark.read.format("klog").option("subscribe", topic).load(str(self.server.log_dir))
        return self.spark.read.format(_format(contender)).options(**self.read_options(contender, topic)).load()

    def read_options(self, contender: str, topic: str) -> dict[str, str]:
        """Return the options that both a query and a stream of a topic have."""
        tuned = TUNED if contender == "official" else {}
        return {"kafka.bootstrap.servers": self.server.bootstrap, "subscribe": topic, **tuned}

    def _read(self, work: str, contender: str, topic: str, records: int) -> None:
        rows = self._table(contender, topic)
        if work == "noop":
            rows.write.format("noop").mode("overwrite").save()
        elif work == "parquet":
            rows.write.mode("overwrite").parquet(self.fresh_directory())
        else:
            [found] = rows.selectExpr("count(*)", "sum(length(value))", "max(offset)").collect()
            assert found[0] == records

    def _write(self, contender: str, source: DataFrame, codec: str) -> None:
        topic = self.new_topic()
        writer = source.write.format(_format(contender)).option("kafka.bootstrap.servers", self.server.bootstrap)
        writer.option("topic", topic).option("kafka.compression.type", codec).mode("append").save()
        self.delete_topic(topic)

    def _read_stream(self, contender: str, topic: str, records: int) -> None:
        of_each = -(-records // (STREAM_BATCHES * PARTITIONS)) * PARTITIONS  # a remaining record is one more batch
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(of_each)}
        options |= self.read_options(contender, topic)
        rows = self.spark.readStream.format(_format(contender)).options(**options).load()
        writing = rows.writeStream.format("parquet").option("checkpointLocation", self.fresh_directory())
        query = writing.option("path", self.fresh_directory()).trigger(availableNow=True).start()
        query.awaitTermination()

    def copy_stream(self, contender: str, source: str, target: str) -> StreamingQuery:
        """Start a stream that copies the records of a topic into another one."""
        options = {"startingOffsets": "earliest", **self.read_options(contender, source)}
        rows = self.spark.readStream.format(_format(contender)).options(**options).load().select("key", "value")
        writing = rows.writeStream.format(_format(contender)).option("checkpointLocation", self.fresh_directory())
        return writing.option("kafka.bootstrap.servers", self.server.bootstrap).option("topic", target).start()

    def fresh_directory(self) -> str:
        """Return the path of a directory that does not exist, and remove one of an earlier query."""
        number = next(self._numbers)
        shutil.rmtree(self._directory / f"out-{number - OLD}", ignore_errors=True)
        return str(self._directory / f"out-{number}")


def _format(contender: str) -> str:
    return "kafka" if contender == "official" else contender
