"""Encoded batches are decoded by the protocol and by Kafka to the same records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.records.decoding import decode
from odradek.pipeline.records.encoding import encode_batch, halves
from odradek.pipeline.records.whole_batches import whole_batches
from odradek.pipeline.schema import HEADERS_TYPE, column_names
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import LocalProtocolError
from odradek.protocol.records.batch_header import assign_offsets, crc_is_valid, read_batch_header
from odradek.protocol.records.record_iterator import Record, iter_records
from odradek.protocol.records.record_validation import validate_records
from tests.peers import java

NOW = 1_700_000_000_000
payloads = st.none() | st.binary(max_size=300)
header_lists = st.none() | st.lists(st.tuples(st.text(max_size=5), payloads), max_size=3)
record_lists = st.lists(st.tuples(st.integers(-(1 << 40), 1 << 40), payloads, payloads, header_lists), min_size=1)


def arrays(records: Any) -> tuple[Any, Any, Any, Any]:
    deltas, keys, values, headers = zip(*records, strict=True)
    lists = [
        None if each is None else [{"key": key, "value": value} for key, value in each] for each in headers
    ]  # fmt: skip
    times = pa.array([NOW + delta for delta in deltas], pa.int64())
    return pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(lists, HEADERS_TYPE), times


def records_of(batch: bytes) -> list[Record]:
    header = read_batch_header(batch)
    assert header.size == len(batch)
    assert crc_is_valid(batch, 0, header)
    validate_records(batch, 0, header)
    return list(iter_records(batch, 0, header))


@given(record_lists, st.sampled_from(Codec), st.booleans())
def test_the_protocol_decodes_any_encoded_columns(records: Any, codec: Codec, is_sliced: bool) -> None:
    columns = arrays([(0, b"before", b"it", [("h", b"")]), *records, (0, None, None, None)] if is_sliced else records)
    if is_sliced:
        columns = tuple(column.slice(1, len(records)) for column in columns)  # type: ignore[assignment]
    keys, values, headers, times = columns
    batch = encode_batch(keys, values, headers, timestamp=times, codec=codec)
    assert records_of(batch) == [
        Record(i, NOW + delta, key, value, headers or []) for i, (delta, key, value, headers) in enumerate(records)
    ]
    header = read_batch_header(batch)
    assert header.codec == codec
    assert header.max_timestamp == max(NOW + record[0] for record in records)
    assert header.last_offset_delta == len(records) - 1


INT64 = st.sampled_from([-(1 << 63), 1 - (1 << 63), -2, -1, NOW, (1 << 63) - 1]) | st.integers(
    -(1 << 63), (1 << 63) - 1
)


@given(st.lists(INT64, min_size=1, max_size=5))
def test_timestamps_at_the_ends_of_their_range_are_encoded(timestamps: list[int]) -> None:
    batch = encode_batch(None, pa.array([b"v"] * len(timestamps)), timestamp=pa.array(timestamps, pa.int64()))
    assert [record.timestamp for record in records_of(batch)] == timestamps
    assert read_batch_header(batch).max_timestamp == max(timestamps)
    alone = encode_batch(None, pa.array([b"v"]), timestamp=timestamps[0])
    assert [record.timestamp for record in records_of(alone)] == timestamps[:1]
    assert read_batch_header(alone).max_timestamp == timestamps[0]


def test_columns_survive_a_round_trip() -> None:
    keys, values, headers, _ = arrays([(0, b"k%d" % i, None if i % 3 else b"v" * i, None) for i in range(1000)])
    batch = encode_batch(keys, values, headers, timestamp=NOW, codec=Codec.LZ4)
    [found] = decode(whole_batches(batch), topic="t", partition=0, columns=column_names(include_headers=True))
    assert found["key"] == keys
    assert found["value"] == values
    assert found["headers"] == headers


def test_keys_and_headers_are_optional_and_text_is_accepted() -> None:
    batch = encode_batch(None, pa.array(["a", None, "ä"]), timestamp=NOW)
    assert [(r.key, r.value, r.headers) for r in records_of(batch)] == [
        (None, b"a", []), (None, None, []), (None, "ä".encode(), [])
    ]  # fmt: skip


def test_the_header_contains_the_producer() -> None:
    batch = encode_batch(
        None, pa.array([b"v"]), timestamp=NOW, producer_id=7, producer_epoch=2, base_sequence=40
    )  # fmt: skip
    header = read_batch_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert (header.base_offset, header.is_transactional, header.is_control) == (0, False, False)


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_split_into_halves(codec: Codec) -> None:
    keys, values, headers, _ = arrays([(0, None, b"v%d" % i, [("h", b"x")] * (i % 3)) for i in range(301)])
    numbers = {"producer_id": 7, "producer_epoch": 2, "base_sequence": (1 << 31) - 100}
    batch = encode_batch(keys, values, headers, timestamp=NOW, codec=codec, **numbers)  # type: ignore[arg-type]
    found = [(read_batch_header(half), records_of(half)) for half in halves(batch, None)]
    assert [
        (header.codec, header.producer_id, header.producer_epoch, header.base_sequence, header.records_count)
        for header, _ in found
    ] == [(codec, 7, 2, (1 << 31) - 100, 150), (codec, 7, 2, 50, 151)]
    assert [[record.offset for record in records] for _, records in found] == [[*range(150)], [*range(151)]]
    assert [record._replace(offset=i) for i, record in enumerate(found[0][1] + found[1][1])] == records_of(batch)


def test_a_batch_without_records_is_rejected() -> None:
    with pytest.raises(LocalProtocolError, match="at least one record"):
        encode_batch(None, pa.array([], pa.binary()), timestamp=NOW)


def test_a_null_header_key_is_rejected() -> None:
    headers = pa.array([[{"key": None, "value": b"v"}]], HEADERS_TYPE)
    with pytest.raises(LocalProtocolError, match="header is null"):
        encode_batch(None, pa.array([b"v"]), headers, timestamp=NOW)


@pytest.mark.interop
@pytest.mark.java
def test_kafka_reads_encoded_batches(tmp_path: Path) -> None:
    records = [
        (i, b"key-%d" % i if i % 5 else None, b"value-%d " % i * 20 if i % 7 else None, [("h", b"x")] * (i % 3))
        for i in range(1000)
    ]
    keys, values, headers, times = arrays(records)
    log = bytearray()
    for number, codec in enumerate(Codec):
        written = bytearray(encode_batch(keys, values, headers, timestamp=times, codec=codec, producer_id=7,
                                         producer_epoch=0, base_sequence=1000 * number))  # fmt: skip
        assign_offsets(written, 0, 1000 * number, 0)
        log += written
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(log)
    dumped = java.run(java.DUMP_LOG_SEGMENTS, "--deep-iteration", "--print-data-log", "--files", str(path)).stdout
    lines = [line for line in dumped.splitlines() if line.startswith("| offset: ")]
    assert dumped.count("isvalid: true") == len(Codec)
    assert [int(line.split()[2]) for line in lines] == list(range(5000))
    for line, (delta, key, value, sent) in zip(lines, records * len(Codec), strict=True):
        assert f"CreateTime: {NOW + delta} " in line
        assert f"headerKeys: [{','.join(name for name, _ in sent)}]" in line
        assert ("key: " + key.decode() in line) if key else ("keySize: -1 " in line)
        assert line.endswith("payload: " + value.decode()) if value else ("valueSize: -1 " in line)
