"""Queries on `format("broker")` continue when the broker is killed and restarted: no record is lost or repeated.

```
              both pause      kill      task 0 ends      the first connection is closed      start
partition 0   ───────┤                ├──┤
partition 1   ───────┤                                ├─────── reads on ──────────────────────────►
partition 2                              ├── no broker listens ───────────────────────────────────►
```
Tasks pause at named pipes, until a byte arrives. The session runs two tasks at a time. The
record of partition 0 is dropped, so its task needs no broker to end.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.peers import odradek
from tests.peers.server import Server

pytest.importorskip("pyspark")

from tests.pipeline.tables import send, stream, table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SIZES = {0: 1, 1: 5000, 2: 500}
PAUSED = (0, 1)
SECONDS = 120
NUMBERS = list(range(SIZES[0], sum(SIZES.values())))
# Small fetches and batches, so that a paused task has not read its partition to the end.
OPTIONS = {"subscribe": "numbers", "startingOffsets": "earliest", "kafka_max_partition_fetch_bytes": "10000"}


class Outage:
    """A broker that is killed and restarted while tasks pause."""

    def __init__(self, server: Server, pipes: Path) -> None:
        self.server = server
        self._pipes = pipes
        self._open: dict[str, int] = {}
        for name in (f"{index}.{event}" for index in PAUSED for event in ("reached", "released")):
            os.mkfifo(pipes / name)
            self._open[name] = os.open(pipes / name, os.O_RDWR)  # so that tasks open the other end at once

    def close(self) -> None:
        for pipe in self._open.values():
            os.close(pipe)

    def paused(self, frame: DataFrame) -> DataFrame:
        """Return the values of a frame, whose tasks of some partitions pause at the first row."""
        pipes = str(self._pipes)

        def pause(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(batches):
                index = batch.column("partition")[0].as_py()
                if number == 0 and index in PAUSED:
                    Path(pipes, f"{index}.reached").write_bytes(b".")
                    with Path(pipes, f"{index}.released").open("rb", buffering=0) as pipe:
                        pipe.read(1)
                if index != 0:
                    yield batch.select(["value"])

        return frame.mapInArrow(pause, "value binary")

    def pass_(self) -> None:
        """Kill the broker when both tasks pause; restart it after the third one has tried to connect."""
        for index in PAUSED:
            reached = self._open[f"{index}.reached"]
            assert select.select([reached], [], [], SECONDS)[0], f"task {index} has no row"
            os.read(reached, 1)
        with self.down():
            os.write(self._open["0.released"], b".")
        os.write(self._open["1.released"], b".")

    def down(self) -> Down:
        return Down(self.server)


class Down:
    """Kill the broker; at the end of the block wait for a connection to its port, end it, and start the broker."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def __enter__(self) -> None:
        self._server.kill()
        self._listener = socket.create_server((self._server.host, self._server.port))
        self._listener.settimeout(SECONDS)

    def __exit__(self, *_: object) -> None:
        with self._listener:
            self._listener.accept()[0].close()
        self._server.start()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = odradek.prepare(tmp_path_factory.mktemp("broker"), {"num.partitions": "3"}).start()
    records = [index for index, size in SIZES.items() for _ in range(size)]
    values = ((index, 0, None, b"%06d" % number * 170, []) for number, index in enumerate(records))
    send(server.bootstrap, "numbers", values)
    yield server
    server.kill()


@pytest.fixture
def outage(spark: SparkSession, server: Server, tmp_path: Path) -> Iterator[Outage]:
    rows = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(rows)
    spark.conf.set(rows, "100")
    outage = Outage(server, tmp_path)
    yield outage
    outage.close()
    spark.conf.set(rows, before)


@pytest.fixture
def run(spark: SparkSession, outage: Outage, tmp_path: Path) -> Callable[..., None]:
    """Run a stream from its start, with an outage in its tasks."""

    def drain(frame: DataFrame, kind: str, **options: str) -> None:
        writer = frame.writeStream.format(kind).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query: StreamingQuery = writer.options(**options).trigger(availableNow=True).start()
        try:
            outage.pass_()
            query.awaitTermination()
        finally:
            query.stop()

    return drain


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.number) for row in frame.selectExpr("substr(cast(value as string), 1, 6) number").collect())


def test_a_batch_is_planned_and_read(spark: SparkSession, outage: Outage) -> None:
    with ThreadPoolExecutor() as pool:
        with outage.down():
            read = pool.submit(table(spark, "broker", outage.server.bootstrap, **OPTIONS).count)
        assert read.result() == sum(SIZES.values())
        read = pool.submit(numbers, outage.paused(table(spark, "broker", outage.server.bootstrap, **OPTIONS)))
        outage.pass_()
        assert read.result() == NUMBERS


def test_a_stream_to_parquet_is_continued(
    spark: SparkSession, outage: Outage, run: Callable[..., None], tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    run(outage.paused(stream(spark, "broker", outage.server.bootstrap, **OPTIONS)), "parquet", path=out)
    assert numbers(spark.read.parquet(out)) == NUMBERS


def test_a_stream_to_a_topic_is_continued(spark: SparkSession, outage: Outage, run: Callable[..., None]) -> None:
    bootstrap = outage.server.bootstrap
    sink = {"kafka.bootstrap.servers": bootstrap, "topic": "copy"}
    run(outage.paused(stream(spark, "broker", bootstrap, **OPTIONS)), "broker", **sink)
    assert numbers(table(spark, "broker", bootstrap, subscribe="copy")) == NUMBERS
