"""Runs and stretches of records: whatever they save, the records are those that the loop for any shape finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records import record_iterator
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, LOG_OVERHEAD, TimestampType, read_batch_header
from odradek.protocol.records.record_headers import Header
from odradek.protocol.records.record_iterator import Record, iter_records
from odradek.protocol.records.record_runs import SHORTEST_RUN, find_run
from odradek.protocol.records.record_stretches import find_stretch

BASE = 1_700_000_000_000
LENGTHS = st.sampled_from([None, 0, 1, 63, 64, 100])


@st.composite
def batches(draw: st.DrawFn) -> bytearray:
    """Stretches of records alike, one after the other."""
    builder = BatchBuilder(timestamp_type=draw(st.sampled_from(list(TimestampType))))
    offset, timestamp = 0, BASE
    for _ in range(draw(st.integers(1, 4))):
        offset += draw(st.sampled_from([0, 0, 1, 60, 8150]))
        timestamp += draw(st.sampled_from([0, 0, 40, -2, 5000]))
        key_length, value_length = draw(LENGTHS), draw(LENGTHS)
        spread = draw(st.sampled_from([0, 0, 3, 70]))
        pace = draw(st.sampled_from([1, 10]))
        headers = draw(st.sampled_from([(), (), [("a", b"1")], [("a", None), ("b", b"")], [("c", b"x" * 70)] * 9]))
        for number in range(draw(st.sampled_from([1, SHORTEST_RUN, 70, 200]))):
            letter = bytes([number % 256])
            key = None if key_length is None else letter * key_length
            value = None if value_length is None else letter * (value_length + number * 7 % (spread + 1))
            builder.append(timestamp + number // pace, key, value, headers, offset_delta=offset)
            offset += 1
    return builder.build(base_offset=draw(st.sampled_from([0, 1 << 40, (1 << 63) - 1 - offset])))


def read(data: bytes | bytearray) -> tuple[list[Record], str]:
    """The records, and the error behind them."""
    records: list[Record] = []
    try:
        for record in iter_records(data, 0, read_batch_header(data)):
            records.append(record)  # noqa: PERF402 - those before an error count
    except RemoteProtocolError as error:
        return records, str(error)
    return records, ""


def read_without_runs(data: bytes | bytearray) -> tuple[list[Record], str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_iterator, "_plain", lambda *_: None)
        return read(data)


@given(batches())
def test_runs_hold_the_same_records(data: bytearray) -> None:
    records, error = read(data)
    assert (records, error) == read_without_runs(data)
    assert len(records) == read_batch_header(data).records_count


@given(batches(), st.lists(st.tuples(st.integers(0), st.integers(1, 255)), min_size=1, max_size=3))
def test_flipped_bits_are_found_at_the_same_record(data: bytearray, flips: list[tuple[int, int]]) -> None:
    for at, mask in flips:
        data[BATCH_HEADER_SIZE + at % (len(data) - BATCH_HEADER_SIZE)] ^= mask
    assert read(data) == read_without_runs(data)


@given(batches(), st.integers(0))
def test_a_batch_cut_short_ends_at_the_same_record(data: bytearray, at: int) -> None:
    size = BATCH_HEADER_SIZE + at % (len(data) - BATCH_HEADER_SIZE)
    del data[size:]
    data[8:12] = (size - LOG_OVERHEAD).to_bytes(4, "big")
    assert read(data) == read_without_runs(data)


@given(st.binary(max_size=300), st.integers(0, 20))
@example(b"\x02\x00" * 40, 0)
def test_noise_is_no_error(data: bytes, at: int) -> None:
    run = find_run(data, at, 512, BASE, {})
    assert run is None or run.end <= len(data)
    stretch = find_stretch(data, at, 512, BASE)
    assert stretch is None or stretch.end <= len(data)


def section(count: int, **fields: Any) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(BASE + number // 10, None, b"%03d" % number, **fields)
    return bytes(builder.build()[BATCH_HEADER_SIZE:])


def test_a_run_ends_where_offsets_take_another_byte() -> None:
    data = section(200)
    first = find_run(data, 0, 512, BASE, {})
    assert first is not None
    assert first.records_count == 64
    assert first.values[63] == b"063"
    second = find_run(data, first.end, 512, BASE, {})
    assert second is not None
    assert (second.first_offset, second.records_count) == (64, 136)
    assert second.values == tuple(b"%03d" % number for number in range(64, 200))
    assert find_run(data, 0, 30, BASE, {}) == first._replace(
        records_count=30,
        end=30 * first.end // 64,
        timestamps=first.timestamps[:30],
        keys=[None] * 30,
        values=first.values[:30],
        headers=[()] * 30,
    )


@pytest.mark.parametrize(("count", "fields"), [(SHORTEST_RUN - 1, {}), (100, {"headers": [("a", b"1")]})])
def test_what_is_short_or_not_plain_is_no_run(count: int, fields: dict[str, Any]) -> None:
    assert find_run(section(count, **fields), 0, 512, BASE, {}) is None


def various(count: int, *, key: bytes | None = None, pace: int = 10) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(BASE + number // pace, key, b"%d" % number * (number % 40))
    return bytes(builder.build()[BATCH_HEADER_SIZE:])


@pytest.mark.parametrize("key", [None, b"", b"k" * 63])
def test_a_stretch_goes_on_where_offsets_and_values_take_another_byte(key: bytes | None) -> None:
    data = various(200, key=key)
    stretch = find_stretch(data, 0, 512, BASE)
    assert stretch is not None
    assert (stretch.records_count, stretch.end, stretch.first_offset) == (200, len(data), 0)
    assert list(stretch.keys) == [key] * 200
    assert list(stretch.values) == [b"%d" % number * (number % 40) for number in range(200)]
    assert stretch.timestamps == [BASE + number // 10 for number in range(200)]


def test_a_stretch_ends_where_times_take_another_byte() -> None:
    data = various(200, pace=1)
    first = find_stretch(data, 0, 512, BASE)
    assert first is not None
    assert first.records_count == 64
    second = find_stretch(data, first.end, 512, BASE)
    assert second is not None
    assert (second.first_offset, second.records_count, second.end) == (64, 136, len(data))
    assert second.timestamps == [BASE + number for number in range(64, 200)]


@pytest.mark.parametrize("number", range(4))
def test_a_stretch_ends_before_a_record_that_is_not_plain(number: int) -> None:
    odd: dict[str, Any] = [{"value": None}, {"headers": [("a", b"1")]}, {"key": b"k"}, {"value": b"x" * 2048}][number]
    builder = BatchBuilder()
    for index in range(80):
        builder.append(BASE, **({"key": None, "value": b"x" * (index % 9)} | (odd if index == 50 else {})))
    stretch = find_stretch(bytes(builder.build()[BATCH_HEADER_SIZE:]), 0, 512, BASE)
    assert stretch is not None
    assert stretch.records_count == 50


def test_few_records_are_no_stretch() -> None:
    assert find_stretch(various(SHORTEST_RUN - 1), 0, 512, BASE) is None
    assert find_stretch(various(40), 0, 31, BASE) is None


HEADERS: list[Header] = [("trace", b"0123456789abcdef"), ("none", None), ("empty", b""), ("ключ", b"1")]


@pytest.mark.parametrize("key", [None, b"key"])
@pytest.mark.parametrize("count", [1, 4])
def test_a_stretch_takes_headers_alike(count: int, key: bytes | None) -> None:
    builder, expected = BatchBuilder(), []
    for number in range(100):
        headers = [("trace", b"%016d" % number), *HEADERS[1:count]]
        expected.append(tuple(headers))
        builder.append(BASE, key, b"x" * (number * 7 % 90), headers)
    data = bytes(builder.build()[BATCH_HEADER_SIZE:])
    stretch = find_stretch(data, 0, 512, BASE)
    assert stretch is not None
    assert (stretch.end, stretch.headers) == (len(data), expected)


@pytest.mark.parametrize(
    "other",
    [HEADERS[:3], HEADERS[1:], [("Trace", b"0123456789abcdef"), *HEADERS[1:]], [*HEADERS[:3], ("ключ", None)], []],
)
def test_a_stretch_ends_before_other_headers(other: list[Header]) -> None:
    builder = BatchBuilder()
    for number in range(60):
        builder.append(BASE, None, b"x" * (number % 9), other if number == 40 else HEADERS)
    stretch = find_stretch(bytes(builder.build()[BATCH_HEADER_SIZE:]), 0, 512, BASE)
    assert stretch is not None
    assert stretch.records_count == 40
