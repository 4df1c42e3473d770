"""The batches of a task contain each row once, in order, and do not exceed their size."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.record import TopicPartition
from odradek.pipeline.options.broker_options import write_options
from odradek.pipeline.writing import batches
from odradek.pipeline.writing.batches import Batches, Rows
from odradek.protocol.records.batch_header import read_batch_header
from odradek.protocol.records.record_iterator import Record, iter_records
from odradek.protocol.records.record_validation import validate_records

np = pytest.importorskip("numpy")

BATCH = 1000


class Sent:
    """Replaces a delivery: stores the records of each batch, by partition, in the order of sending."""

    def __init__(self) -> None:
        self.order: list[TopicPartition] = []
        self.batches: dict[TopicPartition, list[list[Record]]] = {}

    def send(self, partition: TopicPartition, count: int, encode: Any) -> None:
        batch = encode(7, 0, 0)
        header = read_batch_header(batch)
        validate_records(batch, 0, header)
        assert header.records_count == count
        self.order.append(partition)
        self.batches.setdefault(partition, []).append(list(iter_records(batch, 0, header)))

    def values(self) -> dict[int, list[bytes | None]]:
        return {one.partition: [r.value for batch in sent for r in batch] for one, sent in self.batches.items()}


def batching(codec: str = "none") -> tuple[Batches, Sent]:
    sent = Sent()
    options = {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.batch.size": str(BATCH),
        "kafka.compression.type": codec,
    }
    return Batches(write_options(options), sent), sent  # type: ignore[arg-type]


def add(to: Batches, pairs: list[tuple[int, bytes]]) -> None:
    rows = Rows(pa.nulls(len(pairs), pa.binary()), pa.array([value for _, value in pairs], pa.binary()), None)
    to.add("t", rows, np.array([partition for partition, _ in pairs], dtype=np.int64), rows.sizes())


rows_of_some = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1500).map(lambda size: b"v" * size)), min_size=1)


@given(st.lists(rows_of_some, min_size=1, max_size=4), st.sampled_from([700, 5000, 16 << 20]))
def test_every_row_is_sent_once_and_in_order(given_rows: list[list[tuple[int, bytes]]], chunk: int) -> None:
    to, sent = batching("lz4")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "CHUNK_BYTES", chunk)
        for pairs in given_rows:
            add(to, pairs)
        to.finish()
    wanted: dict[int, list[bytes | None]] = {}
    for partition, value in (pair for pairs in given_rows for pair in pairs):
        wanted.setdefault(partition, []).append(value)
    assert sent.values() == wanted
    for found in sent.batches.values():
        for batch, after in zip(found, [*found[1:], None], strict=True):
            assert len(batch) == 1 or size(batch) <= BATCH
            assert after is None or size(batch) + size(after[:1]) > BATCH
            assert [record.offset for record in batch] == list(range(len(batch)))


def size(records: list[Record]) -> int:
    return sum(16 + len(record.value or b"") for record in records)


def test_a_batch_that_is_not_full_waits_for_more_rows() -> None:
    to, sent = batching()
    add(to, [(0, b"a"), (1, b"b")])
    add(to, [(0, b"c")])
    assert not sent.order
    to.finish()
    assert sent.values() == {0: [b"a", b"c"], 1: [b"b"]}
    assert len(sent.order) == 2


def test_a_batch_that_waits_too_long_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "HELD_BYTES", 3000)
    to, sent = batching()
    add(to, [(1, b"a")])
    for _ in range(10):
        add(to, [(0, b"x" * 484)])
    assert TopicPartition("t", 1) in sent.order
    assert sent.order.index(TopicPartition("t", 1)) < 4
