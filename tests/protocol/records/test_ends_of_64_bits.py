"""Timestamps at both ends of their range, in one batch: every reader has the ones that were written.

The difference of two of them may take 65 bits; a batch has it modulo 2^64, as Java's producers write it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import LocalProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import NO_TIMESTAMP, read_batch_header
from odradek.protocol.records.record_iterator import iter_records, records_section
from odradek.protocol.records.record_scan import rebuild_batch, scan_records
from odradek.protocol.records.record_search import find_record
from odradek.protocol.records.record_validation import RecordTimestamps, validate_records
from odradek.protocol.varint import INT64_MAX, INT64_MIN

NOW = 1_700_000_000_000
NEAR_ENDS = (
    st.integers(INT64_MIN, INT64_MIN + 9000)
    | st.integers(INT64_MAX - 9000, INT64_MAX)
    | st.integers(-3, 3)
    | st.integers(NOW, NOW + 9000)
    | st.integers(INT64_MIN, INT64_MAX)
)
BASE = 40


def built(timestamps: list[int]) -> bytes:
    builder = BatchBuilder()
    for timestamp in timestamps:
        builder.append(timestamp, b"k", b"v")
    return bytes(builder.build(BASE))


@given(st.lists(NEAR_ENDS, min_size=1, max_size=8))
def test_every_timestamp_is_read_as_it_was_written(timestamps: list[int]) -> None:
    data = built(timestamps)
    header = read_batch_header(data)

    assert [record.timestamp for record in iter_records(data, 0, header)] == timestamps
    assert (header.base_timestamp, header.max_timestamp) == (timestamps[0], max(timestamps))
    known = [timestamp for timestamp in timestamps if timestamp != NO_TIMESTAMP]
    assert validate_records(data, 0, header) == RecordTimestamps(
        max(timestamps), BASE + timestamps.index(max(timestamps)), min(known, default=NO_TIMESTAMP)
    )


@given(st.lists(NEAR_ENDS, min_size=1, max_size=8), NEAR_ENDS)
def test_the_first_record_that_is_new_enough_is_found(timestamps: list[int], wanted: int) -> None:
    data = built(timestamps)
    header = read_batch_header(data)
    places = [(timestamp, BASE + index) for index, timestamp in enumerate(timestamps) if timestamp >= wanted]

    assert find_record(records_section(data, 0, header), header, wanted, 0) == (places[0] if places else None)


@given(st.lists(NEAR_ENDS, min_size=1, max_size=8), st.none() | st.integers(NOW, NOW + 9000))
def test_compaction_keeps_the_timestamps(timestamps: list[int], horizon: int | None) -> None:
    data = built(timestamps)
    header = read_batch_header(data)
    section = records_section(data, 0, header)
    kept = list(scan_records(section, len(timestamps)))[-7:]

    rebuilt = rebuild_batch(header, section, kept, horizon)

    expected = timestamps[-len(kept) :]
    changed = read_batch_header(rebuilt)
    assert [record.timestamp for record in iter_records(rebuilt, 0, changed)] == expected
    assert changed.max_timestamp == max(expected)


@pytest.mark.parametrize("timestamp", [INT64_MIN - 1, INT64_MAX + 1])
@pytest.mark.parametrize("before", [NOW, INT64_MIN, INT64_MAX])
def test_a_timestamp_of_more_bits_is_refused_and_the_batch_stays_as_it_was(timestamp: int, before: int) -> None:
    builder = BatchBuilder()
    builder.append(before, b"k", b"v")

    with pytest.raises(LocalProtocolError, match=f"the timestamp {timestamp} does not fit into 64 bits"):
        builder.append(timestamp, b"k", b"v")

    data = builder.build()
    assert [record.timestamp for record in iter_records(data, 0, read_batch_header(data))] == [before]
