"""Decoding in bulk gives the same records as the protocol's decoder, which goes record by record."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.pipeline.records import decoding
from odradek.pipeline.records.damage import CorruptRecordsError, Mode
from odradek.pipeline.records.decoding import decode
from odradek.pipeline.records.whole_batches import whole_batches
from odradek.pipeline.schema import LARGEST_MS, SMALLEST_MS, arrow_schema, column_names
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import batch_headers, stamp_log_append_time, write_crc
from odradek.protocol.records.control_records import ControlRecordType, EndTxnMarker, build_end_txn_marker
from odradek.protocol.records.message_set import iter_messages
from odradek.protocol.records.record_iterator import iter_records

ALL = column_names(include_headers=True, include_corrupt=True)
NOW = 1_700_000_000_000
OLD_MESSAGES = Path(__file__).parents[2] / "protocol" / "data" / "records" / "kafka"

payloads = st.none() | st.binary(max_size=300)
header_lists = st.lists(st.tuples(st.text(max_size=5), payloads), max_size=3)
deltas = st.integers(-(1 << 40), 1 << 40)
record_lists = st.lists(st.tuples(deltas, payloads, payloads, header_lists), min_size=1, max_size=20)


def build(records: Any, codec: Codec = Codec.NONE, base_offset: int = 0, **how: Any) -> bytes:
    builder = BatchBuilder(codec, **how)
    for delta, key, value, headers in records:
        builder.append(NOW + delta, key, value, headers)
    return bytes(builder.build(base_offset))


def plain(count: int) -> list[tuple[int, bytes, bytes, list[Any]]]:
    return [(i, b"key-%d" % i, b"value-%d" % i, []) for i in range(count)]


def rows(raw: bytes, **how: Any) -> list[dict[str, Any]]:
    how = {"columns": ALL} | how
    batches = list(decode(whole_batches(raw), topic="t", partition=3, **how))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == arrow_schema(how["columns"])
        assert batch.num_rows
    return [row for batch in batches for row in _in_ms(batch)]


def _in_ms(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    if "timestamp" not in batch.schema.names:
        return batch.to_pylist()
    index = batch.schema.get_field_index("timestamp")
    return batch.set_column(index, "timestamp", batch.column(index).cast(pa.int64())).to_pylist()


def one_by_one(raw: bytes) -> Iterator[dict[str, Any]]:
    for position, header in batch_headers(raw):
        for record in iter_records(raw, position, header):
            yield {
                "key": record.key,
                "value": record.value,
                "topic": "t",
                "partition": 3,
                "offset": record.offset,
                "timestamp": record.timestamp * 1000,
                "timestampType": int(header.timestamp_type),
                "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
                "_corrupt_record": None,
            }


@given(st.lists(st.tuples(st.sampled_from(Codec), record_lists), max_size=6))
def test_any_batches_are_decoded_as_by_the_protocol(batches: Any) -> None:
    raw = b"".join(build(records, codec, 100 * number) for number, (codec, records) in enumerate(batches))
    assert rows(raw) == list(one_by_one(raw))


ENDS = (-(1 << 63), -(1 << 63) + 1, SMALLEST_MS - 1, SMALLEST_MS, -1, 0, NOW, LARGEST_MS, LARGEST_MS + 1, (1 << 63) - 1)
at_the_ends = st.sampled_from(ENDS) | st.integers(-(1 << 63), (1 << 63) - 1)


def microseconds(timestamp: int) -> int | None:
    """The timestamp as the column has it: null if 64 bits are too few."""
    return timestamp * 1000 if -(1 << 63) <= timestamp * 1000 < 1 << 63 else None


@given(st.lists(st.lists(at_the_ends, min_size=1, max_size=5), min_size=1, max_size=4))
@example([[-(1 << 63)]])
@example([[NOW, -(1 << 63)], [(1 << 63) - 1]])
def test_timestamps_at_the_ends_of_their_range_are_right_or_null(batches: list[list[int]]) -> None:
    raw = b"".join(
        build([(timestamp - NOW, None, b"v", []) for timestamp in of_batch], base_offset=10 * number)
        for number, of_batch in enumerate(batches)
    )
    expected = [microseconds(timestamp) for of_batch in batches for timestamp in of_batch]
    assert [row["timestamp"] for row in rows(raw)] == expected


@given(at_the_ends, st.booleans())
@example(-(1 << 63), False)
def test_the_timestamps_of_old_messages_are_right_or_null(timestamp: int, of_the_broker: bool) -> None:
    fields = struct.pack(">bbqi1si1s", 1, 8 if of_the_broker else 0, timestamp, 1, b"k", 1, b"v")
    raw = struct.pack(">qiI", 5, len(fields) + 4, zlib.crc32(fields)) + fields
    assert [(row["offset"], row["timestamp"]) for row in rows(raw)] == [(5, microseconds(timestamp))]


OFFSETS = st.sampled_from([0, 1, (1 << 63) - 3, (1 << 63) - 2, (1 << 63) - 1]) | st.integers(0, (1 << 63) - 1)


@given(OFFSETS, st.sampled_from([-(1 << 31), -1, 0, 1, (1 << 31) - 1]), OFFSETS, OFFSETS)
@example((1 << 63) - 1, (1 << 31) - 1, 0, (1 << 63) - 1)
@example(0, -(1 << 31), (1 << 63) - 1, (1 << 63) - 1)
@example((1 << 63) - 3, -(1 << 31), 0, (1 << 63) - 2)
def test_offsets_at_the_ends_of_their_range_are_right_or_damage(base: int, delta: int, start: int, end: int) -> None:
    raw = bytearray(build(plain(2)))
    struct.pack_into(">q", raw, 0, base)
    struct.pack_into(">i", raw, 23, delta)
    write_crc(raw, 0, len(raw))
    found = rows(bytes(raw), mode=Mode.PERMISSIVE, start_offset=start, end_offset=end)
    if any(row["_corrupt_record"] for row in found):
        assert base == (1 << 63) - 1  # the second record is beyond it
        assert [row["offset"] for row in found] == [base]
    else:
        wanted = {offset for offset in (base, base + 1) if start <= offset < end}
        assert {row["offset"] for row in found} <= wanted
        if delta == 1:
            assert {row["offset"] for row in found} == wanted


@given(st.lists(st.integers(1, 40), min_size=60, max_size=150), st.integers(0, 300))
def test_many_small_batches_are_decoded(sizes: list[int], length: int) -> None:
    raw = b"".join(
        build([(i, None, b"x" * (length * i % 301), []) for i in range(size)], base_offset=100 * number)
        for number, size in enumerate(sizes)
    )
    assert rows(raw) == list(one_by_one(raw))


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 400)), min_size=1, max_size=5), st.integers(1, 100))
def test_runs_of_records_of_one_size_are_decoded(runs: list[tuple[int, int]], per_ms: int) -> None:
    lengths = [length for length, count in runs for _ in range(count)]
    raw = build([(i // per_ms, None, b"\x02" * length, []) for i, length in enumerate(lengths)])
    assert rows(raw) == list(one_by_one(raw))


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 300), st.integers(1, 90)), min_size=1, max_size=3), min_size=8, max_size=20
    )
)
def test_runs_in_several_batches_are_decoded(batches: list[list[tuple[int, int]]]) -> None:
    lengths = [[length for length, count in runs for _ in range(count)] for runs in batches]
    raw = b"".join(
        build([(i // 7, None, b"\x02" * length, []) for i, length in enumerate(of_batch)], base_offset=1000 * number)
        for number, of_batch in enumerate(lengths)
    )
    assert rows(raw) == list(one_by_one(raw))


def test_wrong_guesses_of_lengths_do_not_split_a_group() -> None:
    lengths = [[50 + (number + i) * 7 % 41 * (i > 0) for i in range(60)] for number in range(60)]
    raw = b"".join(
        build([(i, None, b"\xff" * length, []) for i, length in enumerate(of_batch)], base_offset=100 * number)
        for number, of_batch in enumerate(lengths)
    )
    assert rows(raw) == list(one_by_one(raw))
    assert len(list(decode(whole_batches(raw), topic="t", partition=0))) == 1


@given(record_lists, st.integers(0, 1 << 30), st.binary(min_size=1, max_size=4))
@example([(0, None, None, [])], 3, b"\x01")  # the offset is one before the batch's
def test_malformed_records_with_a_valid_checksum_are_rejected_as_by_the_protocol(
    records: Any, where: int, what: bytes
) -> None:
    spoiled = bytearray(build(records))
    where = 61 + where % (len(spoiled) - 61)
    what = what[: len(spoiled) - where]
    spoiled[where : where + len(what)] = what
    write_crc(spoiled, 0, 12 + struct.unpack_from(">i", spoiled, 8)[0])
    raw = bytes(spoiled) + b"".join(build(plain(3), base_offset=1000 * number) for number in range(1, 10))
    try:
        expected = [row for row in one_by_one(raw) if row["offset"] >= 0]  # as of a range from 0 on
    except Exception:  # noqa: BLE001 - any error is a rejection
        [damaged, *whole] = rows(raw, mode=Mode.PERMISSIVE)
        assert damaged["_corrupt_record"] is not None
        assert whole == list(one_by_one(raw[len(spoiled) :]))
    else:
        assert _java_texts(rows(raw)) == _java_texts(expected)


def _java_texts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace header keys that are not UTF-8, as for Spark; the protocol's decoder keeps them."""
    for row in found:
        for header in row["headers"] or ():
            header["key"] = header["key"].encode(errors="surrogateescape").decode(errors="replace")
    return found


@pytest.mark.parametrize("names", [("value",), ("offset",), ("headers", "key"), ("timestamp", "topic")])
def test_columns_are_returned_in_the_requested_order(names: tuple[str, ...]) -> None:
    raw = build([(0, b"k", b"v", [("h", None)]), (1, None, None, [])])
    assert rows(raw, columns=names) == [{name: row[name] for name in names} for row in one_by_one(raw)]


def test_only_records_of_the_range_are_returned() -> None:
    raw = build(plain(10)) + build(plain(10), base_offset=20)
    assert [row["offset"] for row in rows(raw, start_offset=8, end_offset=22)] == [8, 9, 20, 21]


def test_a_batch_outside_the_range_is_not_checked() -> None:
    spoiled = bytearray(build(plain(10)))
    spoiled[-1] ^= 1
    assert [row["offset"] for row in rows(bytes(spoiled) + build(plain(2), base_offset=10), start_offset=10)] == [
        10,
        11,
    ]


def test_log_append_time_applies_to_every_record() -> None:
    raw = bytearray(build(plain(3)))
    stamp_log_append_time(raw, 0, next(batch_headers(raw))[1], NOW + 99)
    raw += build(plain(1), base_offset=3)
    found = [(row["timestamp"], row["timestampType"]) for row in rows(bytes(raw))]
    assert found == [((NOW + 99) * 1000, 1)] * 3 + [(NOW * 1000, 0)]


def test_a_timestamp_that_overflows_microseconds_is_null() -> None:
    found = rows(build([(-NOW + (1 << 62), None, b"v", []), (0, None, b"w", [])]))
    assert [row["timestamp"] for row in found] == [None, NOW * 1000]


def test_a_batch_without_records_is_skipped() -> None:
    emptied = bytearray(build(plain(1))[:61])
    struct.pack_into(">i", emptied, 8, 49)
    struct.pack_into(">i", emptied, 57, 0)
    write_crc(emptied, 0, 61)
    raw = bytes(emptied) + build(plain(2), base_offset=7)
    assert [row["offset"] for row in rows(raw)] == [7, 8]
    found = whole_batches(raw)
    assert (found.positions, found.next_offset) == ([0, 61, len(raw)], 9)


def test_aborted_transactions_and_markers_are_left_out() -> None:
    def transactional(offset: int, producer: int) -> bytes:
        return build(plain(2), base_offset=offset, producer_id=producer, producer_epoch=0, is_transactional=True)

    def marker(offset: int, producer: int, kind: ControlRecordType) -> bytes:
        return bytes(build_end_txn_marker(EndTxnMarker(kind, 0), producer, 0, NOW, offset))

    abort, commit = ControlRecordType.ABORT, ControlRecordType.COMMIT
    raw = transactional(0, 1) + transactional(2, 2) + build(plain(1), base_offset=4)
    raw += marker(5, 1, abort) + transactional(6, 1) + marker(8, 2, commit) + marker(9, 1, commit)
    assert [row["offset"] for row in rows(raw)] == [0, 1, 2, 3, 4, 6, 7]
    assert [row["offset"] for row in rows(raw, aborted=[(1, 0)])] == [2, 3, 4, 6, 7]
    found = whole_batches(raw)
    assert (found.size, found.next_offset) == (len(raw), 10)


def test_a_buffer_may_end_inside_a_batch() -> None:
    first, second = build(plain(2)), build(plain(2), base_offset=2)
    for end in range(len(second)):
        assert [row["offset"] for row in rows(first + second[:end])] == [0, 1]
        needed = len(second) if end > 16 else 0  # the buffer must contain the magic
        assert whole_batches(first + second[:end])[1:] == ([0, len(first)], 2, needed, None)


def test_an_empty_buffer_gives_no_records() -> None:
    assert rows(b"") == []
    assert whole_batches(b"")[1:] == ([0], None, 0, None)


def test_a_flipped_bit_is_handled_according_to_the_mode() -> None:
    whole = build(plain(2)), build(plain(2), base_offset=2), build(plain(2), base_offset=4)
    raw = bytearray(b"".join(whole))
    raw[len(whole[0]) + 70] ^= 4
    with pytest.raises(CorruptRecordsError, match=r"0\.log at position 1099 .*base offset 2.*checksum"):
        rows(bytes(raw), source="0.log", position=1000)
    assert len(whole[0]) == 99
    found = rows(bytes(raw), mode=Mode.PERMISSIVE)
    assert [row["offset"] for row in found] == [0, 1, 2, 4, 5]
    assert [row["_corrupt_record"] is None for row in found] == [True, True, False, True, True]
    assert [row["offset"] for row in rows(bytes(raw), mode=Mode.DROPMALFORMED)] == [0, 1, 4, 5]


@pytest.mark.parametrize(("at", "what"), [(16, b"\x09"), (8, b"\xff\xff\xff\xff"), (8, b"\x00\x00\x00\x10")])
def test_nothing_is_read_after_an_impossible_header(at: int, what: bytes) -> None:
    first, second = build(plain(2)), bytearray(build(plain(2), base_offset=2))
    second[at : at + len(what)] = what
    found = rows(first + bytes(second), mode=Mode.PERMISSIVE)
    assert [(row["offset"], row["value"]) for row in found] == [(0, b"value-0"), (1, b"value-1"), (2, None)]
    with pytest.raises(CorruptRecordsError, match=f"t-3 at position {len(first)} "):
        rows(first + bytes(second))


def test_groups_are_limited_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "GROUP_BYTES", 100)
    raw = b"".join(build(plain(2), base_offset=2 * i) for i in range(50))
    assert len(list(decode(whole_batches(raw), topic="t", partition=3))) > 10
    assert rows(raw) == list(one_by_one(raw))


@pytest.mark.parametrize("path", sorted(OLD_MESSAGES.glob("v[01]-*.bin")), ids=lambda path: path.stem)
def test_old_messages_are_decoded_between_new_batches(path: Path) -> None:
    messages = path.read_bytes()
    expected = list(iter_messages(messages))
    found = rows(build(plain(2)) + messages + build(plain(2), base_offset=900))[2:-2]
    assert [(row["offset"], row["key"], row["value"]) for row in found] == [
        record[:1] + record[2:4] for record in expected
    ]
    assert [row["timestamp"] for row in found] == [record.timestamp * 1000 for record in expected]
    kind = -1 if path.stem.startswith("v0") else int(path.stem.endswith("append-time"))
    assert {row["timestampType"] for row in found} == {kind}
    spoiled = bytearray(messages)
    spoiled[20] ^= 1
    [damaged, *_] = rows(bytes(spoiled), mode=Mode.PERMISSIVE)
    assert "checksum" in damaged["_corrupt_record"]
