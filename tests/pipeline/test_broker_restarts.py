"""Tasks of `format("broker")` continue when the broker is killed and restarted; nothing is duplicated or lost."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from odradek.client.record import TopicPartition
from odradek.pipeline.options.broker_options import batch_read_options, write_options
from odradek.pipeline.reading.data_loss import DataLossError
from odradek.pipeline.reading.offsets import ClusterOffsets
from odradek.pipeline.reading.partition_reader import read_ranges
from odradek.pipeline.reading.ranges import OffsetRange
from odradek.pipeline.writing.sink import write_rows
from tests.peers import odradek
from tests.peers.server import Server

pytestmark = pytest.mark.interop

COUNT = 20_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = odradek.prepare(tmp_path, {"num.partitions": "2"}).start()
    yield server
    server.kill()


def restart(server: Server) -> None:
    server.kill()
    server.start()


def rows(server: Server, restarts: int) -> Iterator[pa.RecordBatch]:
    """Yield numbered values of 1 KiB, a hundred at a time; kill the broker between some of them."""
    for first in range(0, COUNT, 100):
        if first and first % (COUNT // (restarts + 1)) == 0:
            restart(server)
        values = [b"%08d" % number * 128 for number in range(first, first + 100)]
        yield pa.RecordBatch.from_pydict({"key": [value[:8] for value in values], "value": values})


def test_tasks_continue_after_a_broker_restarts(server: Server) -> None:
    options = {"kafka.bootstrap.servers": server.bootstrap, "topic": "t", "kafka.compression.type": "lz4"}
    write_rows(write_options(options), rows(server, restarts=3))
    found = [number for index in range(2) for number in read(server, index)]
    assert len(found) == COUNT
    assert sorted(found) == list(range(COUNT))


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_deleted_topic_fails_at_once(server: Server, is_begun: bool) -> None:
    options = {"kafka.bootstrap.servers": server.bootstrap, "topic": "t", "subscribe": "t"}
    options |= {"kafka.max.partition.fetch.bytes": "10000"}
    options |= {"kafka.default.api.timeout.ms": "600000"}  # longer than the timeout of this test
    write_rows(write_options(options), rows(server, restarts=0))
    wanted = OffsetRange(TopicPartition("t", 0), 0, 5000)
    batches = read_ranges(batch_read_options(options), ("value",), [wanted])
    if is_begun:
        next(batches)
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.delete_topics(["t"])["t"].result(30)
    with pytest.raises(DataLossError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        list(batches)
    not_minding = batch_read_options(options | {"failOnDataLoss": "false"})
    assert list(read_ranges(not_minding, ("value",), [wanted])) == []


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_a_topic_recreated_with_fewer_records_fails_at_once(server: Server, isolation_level: str) -> None:
    options = {"kafka.bootstrap.servers": server.bootstrap, "topic": "t", "subscribe": "t"}
    options |= {"kafka.default.api.timeout.ms": "600000", "isolation.level": isolation_level}
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    write_rows(write_options(options), rows(server, restarts=0))
    admin.delete_topics(["t"])["t"].result(30)
    fewer = {"value": [b"new"] * 100, "partition": pa.array([0] * 100, pa.int32())}
    write_rows(write_options(options), [pa.RecordBatch.from_pydict(fewer)])
    wanted = OffsetRange(TopicPartition("t", 0), 0, 5000)
    batches = read_ranges(batch_read_options(options), ("value",), [wanted])
    assert next(batches).num_rows == 100
    with pytest.raises(DataLossError, match="the query reads it from 100 to 5000"):
        next(batches)
    not_minding = batch_read_options(options | {"failOnDataLoss": "false"})
    assert sum(batch.num_rows for batch in read_ranges(not_minding, ("value",), [wanted])) == 100


def test_a_task_that_stops_early_leaves_no_pending_request(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    options = {"kafka.bootstrap.servers": server.bootstrap, "topic": "t", "subscribe": "t"}
    options |= {"kafka.max.partition.fetch.bytes": "10000"}
    write_rows(write_options(options), rows(server, restarts=0))
    batches = read_ranges(batch_read_options(options), ("value",), [OffsetRange(TopicPartition("t", 0), 0, 5000)])
    next(batches)
    del batches
    gc.collect()  # asyncio logs an exception that was not retrieved when it is collected
    assert not [record for record in caplog.records if record.name == "asyncio"]


def read(server: Server, index: int) -> Iterator[int]:
    """Return the numbers in a partition, in the order of offsets."""
    options = batch_read_options(
        {"kafka.bootstrap.servers": server.bootstrap, "subscribe": "t", "kafka.max.partition.fetch.bytes": "10000"}
    )
    partition = TopicPartition("t", index)
    offsets = ClusterOffsets(options.cluster, "read_uncommitted")
    end = offsets.latest([partition])[partition]
    offsets.close()
    last = -1
    for number, batch in enumerate(read_ranges(options, ("offset", "value"), [OffsetRange(partition, 0, end)])):
        if number in (2, 5):
            restart(server)
        for value in batch.column("value").to_pylist():
            assert int(value[:8]) > last
            last = int(value[:8])
            yield last
