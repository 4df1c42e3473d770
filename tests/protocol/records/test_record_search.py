from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, BatchHeader, TimestampType, read_batch_header
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.records.record_search import find_record

BASE = 1000
TIMES = st.integers(-3, 3) | st.integers(-(1 << 40), 1 << 40)
RECORDS = st.lists(
    st.tuples(TIMES, st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=9000), st.integers(1, 300)),
    min_size=1,
    max_size=20,
)


def built(
    records: list[tuple[int, bytes | None, bytes | None, int]], kind: TimestampType = TimestampType.CREATE_TIME
) -> tuple[bytes, BatchHeader]:
    builder = BatchBuilder(timestamp_type=kind)
    delta = -1
    for timestamp, key, value, step in records:
        delta += step
        builder.append(timestamp, key, value, [("h", b"v")], delta)
    data = bytes(builder.build(BASE, 4))
    return data, read_batch_header(data)


@given(RECORDS, st.sampled_from(TimestampType), TIMES, st.integers(-1, 400))
def test_the_first_record_that_is_new_enough_is_found(
    records: list[tuple[int, bytes | None, bytes | None, int]], kind: TimestampType, timestamp: int, offset: int
) -> None:
    data, header = built(records, kind)
    expected = next(
        (
            (record.timestamp, record.offset)
            for record in iter_records(data, 0, header)
            if record.timestamp >= timestamp and record.offset >= BASE + offset
        ),
        None,
    )

    assert find_record(data[BATCH_HEADER_SIZE:], header, timestamp, BASE + offset) == expected


def test_the_rest_behind_the_found_record_is_not_read() -> None:
    data, header = built([(0, b"k", b"v", 1), (1, b"k", b"v", 1), (2, None, bytes(100), 1)])

    assert find_record(data[BATCH_HEADER_SIZE:-100], header, 1, 0) == (1, BASE + 1)


def test_every_strict_prefix_raises_if_no_record_in_it_is_found() -> None:
    data, header = built([(0, b"k", b"v", 1), (100, None, bytes(100), 200), (1 << 40, b"k" * 100, None, 1)])
    section = data[BATCH_HEADER_SIZE:]

    assert find_record(section, header, 1 << 41, 0) is None
    for length in range(len(section)):
        with pytest.raises(RemoteProtocolError):
            find_record(section[:length], header, 1 << 41, 0)
    with pytest.raises(RemoteProtocolError):
        find_record(section + b"\0", header, 1 << 41, 0)


@pytest.mark.parametrize("start", [b"\x01", b"\xff\xff\xff\xff\xff\xff", b"\x7e", b"\x02\x00", b"\x04\x00\xff\xff"])
def test_what_is_no_record_raises(start: bytes) -> None:
    _, header = built([(0, None, None, 1)])

    with pytest.raises(RemoteProtocolError):
        find_record(start, header, 0, 0)
