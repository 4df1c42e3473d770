from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import TimestampType, crc_is_valid, read_batch_header
from odradek.protocol.records.record_iterator import iter_records, records_section
from odradek.protocol.records.record_scan import empty_batch, rebuild_batch, scan_records

BYTES = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.tuples(
        st.integers(-(1 << 40), 1 << 40),
        BYTES,
        BYTES,
        st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=2),
        st.integers(1, 300),
        st.booleans(),
    ),
    min_size=1,
    max_size=20,
)


def built(records: list[tuple[Any, ...]], **fields: Any) -> bytes:
    builder = BatchBuilder(**fields)
    delta = -1
    for timestamp, key, value, headers, step, _ in records:
        delta += step
        builder.append(timestamp, key, value, headers, delta)
    return bytes(builder.build(1000, 4))


@given(RECORDS, st.sampled_from(list(Codec)), st.none() | st.integers(0, 1 << 41))
def test_kept_records_do_not_change(records: list[tuple[Any, ...]], codec: Codec, horizon: int | None) -> None:
    data = built(records, codec=codec, producer_id=3, producer_epoch=1, base_sequence=9, is_transactional=True)
    header = read_batch_header(data)
    section = records_section(data, 0, header)
    scanned = list(scan_records(section, header.records_count))
    before = list(iter_records(data, 0, header))
    assert [(r.key, r.has_value, 1000 + r.offset_delta) for r in scanned] == [
        (r.key, r.value is not None, r.offset) for r in before
    ]

    chosen = [index for index, record in enumerate(records) if record[-1]] or [0]
    rebuilt = rebuild_batch(header, section, [scanned[index] for index in chosen], horizon)
    after = read_batch_header(rebuilt)
    assert list(iter_records(rebuilt, 0, after)) == [before[index] for index in chosen]
    assert crc_is_valid(rebuilt, 0, after)
    assert (after.base_offset, after.last_offset, after.size) == (header.base_offset, header.last_offset, len(rebuilt))
    assert after.max_timestamp == max(before[index].timestamp for index in chosen)
    assert (after.delete_horizon_ms, after.codec) == (horizon, codec)
    assert (after.producer_id, after.producer_epoch, after.base_sequence) == (3, 1, 9)


def test_log_append_time_stays_that_of_the_batch() -> None:
    data = built(
        [(5, b"k", b"v", [], 1, True), (9, b"j", None, [], 1, True)], timestamp_type=TimestampType.LOG_APPEND_TIME
    )
    header = read_batch_header(data)
    section = records_section(data, 0, header)
    first = next(scan_records(section, 2))
    assert read_batch_header(rebuild_batch(header, section, [first])).max_timestamp == 9


def test_an_empty_batch_keeps_offsets_and_sequences() -> None:
    data = built([(5, b"k", b"v", [], 7, True)], codec=Codec.GZIP, producer_id=3, producer_epoch=1, base_sequence=9)
    empty = read_batch_header(empty_batch(read_batch_header(data)))
    assert (empty.base_offset, empty.last_offset, empty.records_count, empty.size) == (1000, 1006, 0, 61)
    assert (empty.producer_id, empty.base_sequence, empty.last_sequence, empty.codec) == (3, 9, 15, Codec.NONE)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, 5)
    assert list(iter_records(empty_batch(read_batch_header(data)), 0, empty)) == []


@pytest.mark.parametrize("cut", range(19))
def test_records_that_are_cut_off_are_refused(cut: int) -> None:
    data = built([(5, b"key", b"value", [("h", b"v")], 1, True)])
    section = records_section(data, 0, read_batch_header(data))
    assert len(section) == 19
    with pytest.raises(RemoteProtocolError):
        list(scan_records(section[:cut], 1))


def test_bytes_after_the_last_record_are_refused() -> None:
    data = built([(5, b"key", b"value", [], 1, True)])
    with pytest.raises(RemoteProtocolError):
        list(scan_records(records_section(data, 0, read_batch_header(data)) + b"x", 1))
