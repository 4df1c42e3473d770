"""Searches by time, compared with a walk over all records, in logs of random batches.

Each batch may be compressed, of log append time, a transaction's or its end, cleaned by compaction, or of times that go
up and down.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.storage.index.timestamp_lookup import DecodingBudget
from odradek.broker.storage.log_config import LogConfig
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import DecompressionLimitError, ErrorCode, KafkaError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    MAX_TIMESTAMP_POSITION,
    RECORDS_COUNT_POSITION,
    TimestampType,
    assign_offsets,
    read_batch_header,
    write_crc,
)
from odradek.protocol.records.record_iterator import Record, iter_records, records_section
from odradek.protocol.records.record_scan import empty_batch, rebuild_batch, scan_records
from tests.effort import examples
from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, TOPIC_ID, batch, follower_batch, marker, open_log_dir

SPAN = 60
"""Times are within so many ms, so that many are equal."""
EPOCH = 3


class Wanted(NamedTuple):
    """A random batch: times and sizes of its records, the places of those that compaction keeps (None: no cleaning)."""

    times: Sequence[int]
    sizes: Sequence[int]
    kept: frozenset[int] | None
    codec: Codec
    kind: TimestampType
    is_transactional: bool
    horizon: int | None
    is_marker: bool


@st.composite
def wanted_batches(draw: st.DrawFn) -> Wanted:
    count = draw(st.integers(1, 12))
    return Wanted(
        times=draw(st.lists(st.integers(0, SPAN) | st.just(-NOW - 1), min_size=count, max_size=count)),
        sizes=draw(st.lists(st.sampled_from((0, 1, 60, 70, 900, 3000)), min_size=count, max_size=count)),
        kept=draw(st.none() | st.frozensets(st.integers(0, count - 1))),
        codec=draw(st.sampled_from((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4))),
        kind=draw(st.sampled_from(TimestampType)),
        is_transactional=draw(st.booleans()),
        horizon=draw(st.none() | st.integers(0, NOW + 2 * SPAN)),
        is_marker=draw(st.sampled_from((False, False, False, True))),
    )


def stored(wanted: Wanted, base_offset: int) -> bytes:
    """The batch as a leader, and later compaction, stores it."""
    if wanted.is_marker:
        data = bytearray(marker(5, 0, commit=True, timestamp=NOW + wanted.times[0]))
        assign_offsets(data, 0, base_offset, EPOCH)
        return bytes(data)
    producer = (5, 0) if wanted.is_transactional else (-1, -1)
    builder = BatchBuilder(
        wanted.codec,
        None,
        *producer,
        base_sequence=-1,
        is_transactional=wanted.is_transactional,
        timestamp_type=wanted.kind,
    )
    for time, size in zip(wanted.times, wanted.sizes, strict=True):
        builder.append(NOW + time, None if size % 2 else b"k" * 70, bytes(size), [("h", b"v")] if size > 60 else [])
    data = builder.build(base_offset, EPOCH)
    if wanted.kept is None:
        return bytes(data)
    header = read_batch_header(data)
    section = records_section(data, 0, header)
    kept = [each for place, each in enumerate(scan_records(section, header.records_count)) if place in wanted.kept]
    return bytes(rebuild_batch(header, section, kept, wanted.horizon) if kept else empty_batch(header))


def first(records: Sequence[Record], timestamp: int, start: int) -> tuple[int, int, int] | None:
    for record in records:
        if record.timestamp >= timestamp and record.offset >= start:
            return record.timestamp, record.offset, EPOCH
    return None


@examples(60)
@given(
    st.lists(st.tuples(wanted_batches(), st.integers(0, 3)), min_size=1, max_size=12),
    st.sampled_from((0, 100, 4096)),
    st.sampled_from((3000, 1 << 20)),
    st.floats(0, 1),
    st.booleans(),
)
def test_a_search_finds_what_a_walk_finds(
    wanted: list[tuple[Wanted, int]], interval: int, segment_bytes: int, start: float, reopens: bool
) -> None:
    config = LogConfig(index_interval_bytes=interval, segment_bytes=segment_bytes)
    with tempfile.TemporaryDirectory(prefix="searches-") as path:
        log_dir = open_log_dir(Path(path), config)
        log = log_dir.create_log("t", 0, TOPIC_ID, config)
        records: list[Record] = []
        for each, gap in wanted:
            data = stored(each, log.log_end_offset + gap)
            records += iter_records(data, 0, read_batch_header(data))
            log.append_as_follower(bytearray(data))
        if reopens:
            log_dir.close()
            log_dir = open_log_dir(Path(path), config)
            log = log_dir.logs["t", 0]
        for timestamp in (0, NOW - 1, *range(NOW, NOW + 2 * SPAN + 2)):
            assert log.offset_for_timestamp(timestamp) == first(records, timestamp, 0)
        log.advance_high_watermark(log.log_end_offset)
        log.update_log_start_offset(int(start * log.log_end_offset))
        for timestamp in range(NOW, NOW + SPAN + 2):
            expected = first(records, timestamp, log.log_start_offset)
            assert log.offset_for_timestamp(timestamp, DecodingBudget(1 << 20)) == expected
        log_dir.close()


def test_a_search_reads_no_more_than_its_budget(new_log: NewLog) -> None:
    log = new_log()
    log.append_as_leader(batch(*(bytes(100),) * 40, bytes(100_000)), 0, NOW)

    assert log.offset_for_timestamp(NOW + 5, DecodingBudget(4096)) == (NOW + 5, 5, 0)
    with pytest.raises(DecompressionLimitError):
        log.offset_for_timestamp(NOW + 5, DecodingBudget(1000))
    with pytest.raises(DecompressionLimitError):
        log.offset_for_timestamp(NOW + 40, DecodingBudget(4096))
    assert log.offset_for_timestamp(NOW + 40, DecodingBudget(200_000)) == (NOW + 40, 40, 0)


@pytest.mark.parametrize("values", [2, 100])
@pytest.mark.parametrize("more", [-1, 1])
def test_a_count_that_is_not_that_of_the_records_is_an_error(new_log: NewLog, values: int, more: int) -> None:
    log = new_log()
    data = bytearray(follower_batch(*(bytes(100),) * values, base_offset=0))
    data[RECORDS_COUNT_POSITION:BATCH_HEADER_SIZE] = (values + more).to_bytes(4, "big")
    data[MAX_TIMESTAMP_POSITION : MAX_TIMESTAMP_POSITION + 8] = (NOW + values).to_bytes(8, "big")
    write_crc(data, 0, len(data))
    log.append_as_follower(data)

    assert log.offset_for_timestamp(NOW, DecodingBudget(20_000)) == (NOW, 0, 0)
    with pytest.raises(KafkaError) as error:
        log.offset_for_timestamp(NOW + values)
    assert error.value.code is ErrorCode.INVALID_RECORD
