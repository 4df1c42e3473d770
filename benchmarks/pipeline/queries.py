"""The pipeline compared with Spark's tuned connector for Kafka: in one session, in turns, on one broker.

    python -m benchmarks.pipeline [--works noop aggregate parquet write stream] [--codecs none lz4 zstd]
                                  [--values 100 1024] [--records 1000000] [--rounds 3] [--output benchmarks/pipeline.md]

| contender | what |
|---|---|
| official | `format("kafka")`, with `max.poll.records` and fetches raised, and `fetch.max.wait.ms` lowered |
| broker | `format("broker")` |
| klog | `format("klog")` on the broker's directory, without the broker |

All contenders take turns. The first two topics have additional rounds, which do not count: for a dozen queries Java
still compiles. The first topic has 1,000 records: the time of its queries is the part that does not depend on the
number of records. Prints a table of the medians in seconds, of the ratios to the connector, and of the processor time
of all processes together, with the broker's; then the peak memory of a Python worker. With `--output` the same goes
into that file, which is written after each line.
"""

from __future__ import annotations

import argparse
import compileall
import itertools
import os
import platform
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from benchmarks.side_by_side.usage import cpu_seconds
from odradek.pipeline import session
from odradek.pipeline.jobs.package import PACKAGES
from odradek.pipeline.klog.segments import LogDirectory
from odradek.protocol.plural import pluralize
from tests.peers import connector, odradek
from tests.peers.server import Server

PARTITIONS = 4
# Without the last one, a consumer at the end of its partition delays the next query by half a second.
TUNED = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.fetch.max.wait.ms": "20",
}
STREAM_BATCHES = 3
WARM_UP_ROUNDS = 4
FEW = 1000  # records of the topic that shows the constant part
NOW = 1_700_000_000_000
READERS = ("official", "broker", "klog")
WRITERS = ("official", "broker")
READS = ("noop", "aggregate", "parquet")
WORKS = (*READS, "write", "stream")


class Bench:
    """One session and one broker; they write into `directory`, `records` is the present number in the topic."""

    def __init__(self, spark: SparkSession, server: Server, directory: Path) -> None:
        self.spark = spark
        self.server = server
        self.records = 0
        self._directory = directory
        self._numbers = itertools.count()
        self._admin = AdminClient({"bootstrap.servers": server.bootstrap})

    def new_topic(self) -> str:
        topic = f"bench-{next(self._numbers)}"
        self._admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
        return topic

    def fill(self, records: int, codec: str, value: int) -> str:
        """Fill a topic with records of 8-byte keys and half random values, and wait until its files are complete."""
        self.records = records
        topic = self.new_topic()
        producer = Producer(
            {"bootstrap.servers": self.server.bootstrap, "compression.type": codec, "batch.size": 65536,
             "queue.buffering.max.messages": 1_000_000, "linger.ms": 20}
        )  # fmt: skip
        pieces = [random.Random(i).randbytes(value // 2) + b"x" * (value - value // 2) for i in range(1000)]
        for i in range(self.records):
            producer.produce(topic, pieces[i % 1000], b"%08d" % i, i % PARTITIONS, timestamp=NOW + i)
            if i % 5000 == 0:
                producer.poll(0)
        assert producer.flush(60) == 0
        while self._complete(topic) < self.records:
            time.sleep(0.5)  # the broker writes its high watermarks every five seconds
        return topic

    def _complete(self, topic: str) -> int:
        directory = LogDirectory(str(self.server.log_dir))
        return sum(directory.open(each).end_offset for each in directory.partitions if each.topic == topic)

    def table(self, contender: str, topic: str) -> DataFrame:
        if contender == "klog":
            return self.spark.read.format("klog").option("subscribe", topic).load(str(self.server.log_dir))
        reader = self.spark.read.format("kafka" if contender == "official" else "broker")
        reader = reader.option("kafka.bootstrap.servers", self.server.bootstrap).option("subscribe", topic)
        return reader.options(**(TUNED if contender == "official" else {})).load()

    def read(self, work: str, contender: str, topic: str) -> None:
        rows = self.table(contender, topic)
        if work == "noop":
            rows.write.format("noop").mode("overwrite").save()
        elif work == "parquet":
            rows.write.mode("overwrite").parquet(self._fresh())
        else:
            [found] = rows.selectExpr("count(*)", "sum(length(value))", "max(offset)").collect()
            assert found[0] == self.records

    def write(self, contender: str, source: DataFrame, codec: str) -> None:
        writer = source.write.format("kafka" if contender == "official" else "broker")
        writer = writer.option("kafka.bootstrap.servers", self.server.bootstrap).option("topic", self.new_topic())
        writer.option("kafka.compression.type", codec).mode("append").save()

    def stream(self, contender: str, topic: str) -> None:
        reader = self.spark.readStream.format("kafka" if contender == "official" else "broker")
        reader = reader.option("kafka.bootstrap.servers", self.server.bootstrap).option("subscribe", topic)
        of_each = -(-self.records // (STREAM_BATCHES * PARTITIONS)) * PARTITIONS  # a remaining record is one more batch
        reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", of_each)
        rows = reader.options(**(TUNED if contender == "official" else {})).load()
        writing = rows.writeStream.format("parquet").option("checkpointLocation", self._fresh())
        query = writing.option("path", self._fresh()).trigger(availableNow=True).start()
        query.awaitTermination()

    def _fresh(self) -> str:
        shutil.rmtree(self._directory / f"out-{next(self._numbers) - 8}", ignore_errors=True)
        return str(self._directory / f"out-{next(self._numbers)}")


class Cost(NamedTuple):
    """The seconds of a query: on the clock, and of processor time in this process and all its children."""

    seconds: float
    processor: float


def in_turns(rounds: int, works: dict[str, Callable[[], None]], warm_up: int) -> dict[str, Cost]:
    """Return the median cost of each, after some rounds that do not count."""
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    for round_ in range(-warm_up, rounds):
        for name, work in works.items():
            processor, start = cpu_seconds(os.getpid()), time.perf_counter()
            work()
            seconds = time.perf_counter() - start
            if round_ >= 0:
                costs[name].append(Cost(seconds, cpu_seconds(os.getpid()) - processor))
    return {name: Cost(*map(median, zip(*each, strict=True))) for name, each in costs.items()}


def cases(bench: Bench, chosen: argparse.Namespace) -> Iterator[tuple[str, dict[str, Cost]]]:
    """Yield each query with the cost of each contender."""
    topics = [(chosen.records, value, codec) for value, codec in itertools.product(chosen.values, chosen.codecs)]
    for number, (records, value, codec) in enumerate([(FEW, *topics[0][1:]), *topics]):
        topic = bench.fill(records, codec, value)
        source = bench.table("klog", topic).select("key", "value").cache()
        for work in chosen.works:
            works = works_of(bench, work, topic, source, codec)
            warm_up = WARM_UP_ROUNDS if number <= 1 else 0
            yield f"{work}, {records:,} × {value} B, {codec}", in_turns(chosen.rounds, works, warm_up)
        source.unpersist()


def works_of(bench: Bench, work: str, topic: str, source: DataFrame, codec: str) -> dict[str, Callable[[], None]]:
    """Return the query of each contender."""
    if work in READS:
        return {name: partial(bench.read, work, name, topic) for name in READERS}
    if work == "stream":
        return {name: partial(bench.stream, name, topic) for name in WRITERS}
    source.count()  # load it into memory
    return {name: partial(bench.write, name, source, codec) for name in WRITERS}


def worker_peak_mb() -> float:
    """Return the peak memory of any Python worker of Spark."""
    peaks = [0.0]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"daemon\0pyspark.worker" in (process / "cmdline").read_bytes():
                status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
                peaks.append(int(status["VmHWM"].split()[0]) / 1024)
        except OSError:
            continue  # it has just ended
    return max(peaks)


def line(name: str, costs: dict[str, Cost]) -> str:
    """Return a line of the table."""
    official = costs["official"]
    told = [f"{official.seconds:.2f} · {official.processor:.1f}"]
    for contender in READERS[1:]:
        if found := costs.get(contender):
            ratio = official.seconds / found.seconds
            told.append(f"{found.seconds:.2f} ({ratio:.2f}×) · {found.processor:.1f}")
        else:
            told.append("")
    return f"| {name} | {' | '.join(told)} |"


def report(chosen: argparse.Namespace, lines: list[str]) -> str:
    """Return the text of the results."""
    settings = ", ".join(f"`{name.removeprefix('kafka.')}={value}`" for name, value in TUNED.items())
    head = f"""# The pipeline beside Spark's connector for Kafka

`python -m benchmarks.pipeline --rounds {chosen.rounds}`, {datetime.now(UTC):%Y-%m-%d}: one Spark session with
`local[2]` and one broker of this project on {pluralize(os.cpu_count() or 1, "processor")}, Python {platform.python_version()}. {PARTITIONS} partitions, keys of 8 bytes,
half of each value random. Medians of {pluralize(chosen.rounds, "round")} in seconds, all in turns; in brackets how many times as fast as the
connector (4.2.0, tuned: {settings}).
`stream` copies a topic to Parquet in three micro-batches; `write` is keyed, idempotent, with acks=all. The lines of
{FEW:,} records are what a query takes whatever it reads. Behind the dot stands the processor time of all processes
together, in seconds: Spark's Java, its Python workers and the broker. Half of it is the least that two processors need.

| work | official, s | broker, s | klog, s |
|---|---|---|---|
"""  # noqa: E501 - the lines of the result
    return head + "".join(f"{each}\n" for each in lines)


def peak_line() -> str:
    return f"\nPeak of the memory of a Python worker: {worker_peak_mb():.0f} MB."


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    arguments.add_argument("--codecs", nargs="+", default=["none", "lz4", "zstd"])
    arguments.add_argument("--values", nargs="+", type=int, default=[100, 1024])
    arguments.add_argument("--records", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--output", type=Path)
    chosen = arguments.parse_args()
    for package in PACKAGES:  # as pip does; without bytecode files each worker would compile them
        compileall.compile_dir(Path(__file__).resolve().parents[1] / package, quiet=1)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        config = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "2", "spark.local.dir": temporary}
        spark = session("benchmark", master="local[2]", jars=connector.jars().split(","), config=config)
        spark.sparkContext.setLogLevel("ERROR")
        server = odradek.prepare(directory / "server").start()
        lines: list[str] = []
        try:
            for name, costs in cases(Bench(spark, server, directory), chosen):
                lines.append(line(name, costs))
                print(lines[-1], flush=True)
                if chosen.output is not None:
                    chosen.output.write_text(report(chosen, [*lines, peak_line()]))
            print(peak_line())
        finally:
            spark.stop()
            server.stop()


if __name__ == "__main__":
    main()
