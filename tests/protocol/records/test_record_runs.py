"""Runs of records: they hold the same records that the loop for records of any shape decodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records import record_iterator
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, LOG_OVERHEAD, TimestampType, read_batch_header
from odradek.protocol.records.record_iterator import Record, iter_records
from odradek.protocol.records.record_runs import SHORTEST_RUN, find_run

BASE = 1_700_000_000_000
LENGTHS = st.sampled_from([None, 0, 1, 63, 64, 100])


@st.composite
def batches(draw: st.DrawFn) -> bytearray:
    """Batches of groups of similar records, one group after the other."""
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
    """Return the records, and the error after them."""
    records: list[Record] = []
    try:
        for record in iter_records(data, 0, read_batch_header(data)):
            records.append(record)  # noqa: PERF402 - those before an error count
    except RemoteProtocolError as error:
        return records, str(error)
    return records, ""


def read_without_runs(data: bytes | bytearray) -> tuple[list[Record], str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_iterator, "find_run", lambda *_: None)
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
def test_random_bytes_raise_no_error(data: bytes, at: int) -> None:
    run = find_run(data, at, 512, BASE, {})
    assert run is None or run.end <= len(data)


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
def test_few_records_or_records_with_headers_are_no_run(count: int, fields: dict[str, Any]) -> None:
    assert find_run(section(count, **fields), 0, 512, BASE, {}) is None
