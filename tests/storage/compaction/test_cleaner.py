"""Compaction of real logs: what it keeps, what it does not touch, and interruptions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.compaction.cleaner import (
    CleanerSettings,
)
from odradek.broker.storage.log_config import LogConfig
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import TimestampType
from odradek.protocol.varint import INT64_MAX
from tests.storage.compaction.compacted import COMPACT, Compacted, fill
from tests.storage.logs import NOW, TOPIC_ID, append, batch, marker, read_all

DAY = 86_400_000


# ------------------------------------------------------------------------------------------------------ what is left


def test_the_last_value_of_every_key_keeps_its_offset(compacted: Compacted) -> None:
    for index in range(40):
        compacted.put(b"k%d" % (index % 3), b"%d" % index)
    compacted.roll()
    assert compacted.compact()
    assert compacted.left() == [(37, b"k1", b"37"), (38, b"k2", b"38"), (39, b"k0", b"39")]
    assert compacted.put(b"k0", b"on") == 40


def test_the_active_segment_is_not_touched(compacted: Compacted) -> None:
    for index in range(4):
        compacted.put(b"k", b"%d" % index)
    compacted.log.advance_high_watermark(4)
    assert not compacted.compact()
    assert len(compacted.left()) == 4


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_keeps_its_place_codec_and_sequences(compacted: Compacted, codec: Codec) -> None:
    data = batch(b"a", b"b", b"c", key=b"1", codec=codec, producer_id=7, producer_epoch=2, base_sequence=40)
    compacted.log.append_as_leader(data, 3, NOW)
    compacted.put(b"2", b"later")
    compacted.roll()
    compacted.compact()
    [stored, _] = [header for _, header in compacted.log.segments.first.log.headers()]
    assert (stored.base_offset, stored.last_offset, stored.records_count, stored.codec) == (0, 2, 1, codec)
    assert (stored.producer_id, stored.producer_epoch, stored.base_sequence) == (7, 2, 40)
    assert (stored.partition_leader_epoch, stored.max_timestamp) == (3, NOW + 2)
    assert compacted.left() == [(2, b"1", b"c"), (3, b"2", b"later")]


def test_segments_that_were_compacted_may_leave_the_page_cache(
    compacted: Compacted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise removing them frees a gigabyte at once, in the broker. The kernel is free to keep the pages."""
    advised: dict[int, list[tuple[int, int, int]]] = {}

    def record(descriptor: int, position: int, length: int, advice: int) -> None:
        advised.setdefault(os.fstat(descriptor).st_ino, []).append((position, length, advice))

    fill(compacted)
    monkeypatch.setattr(os, "posix_fadvise", record)
    assert compacted.compact()
    replaced = list(tmp_path.glob("t-0/*.log.deleted"))
    assert len(replaced) > 1
    assert advised == {path.stat().st_ino: [(0, 8 << 20, os.POSIX_FADV_DONTNEED)] for path in replaced}


def test_headers_and_timestamps_stay(compacted: Compacted) -> None:
    builder = BatchBuilder()
    builder.append(NOW + 5, b"k", b"old")
    builder.append(NOW - 7, b"j", b"v", [("h", b"1"), ("n", None)])
    compacted.log.append_as_leader(memoryview(builder.build()), 0, NOW)
    compacted.put(b"k", b"new")
    compacted.roll()
    compacted.compact()
    first = read_all(compacted.log)[0]
    assert (first.offset, first.timestamp, first.value) == (1, NOW - 7, b"v")
    assert first.headers == [("h", b"1"), ("n", None)]


def test_log_append_time_stays(tmp_path: Path) -> None:
    compacted = Compacted(tmp_path, replace(COMPACT, message_timestamp_type="LogAppendTime"))
    compacted.put(b"k", b"a", b"b")
    compacted.put(b"j", b"c")
    compacted.roll()
    compacted.compact()
    [header, _] = [header for _, header in compacted.log.segments.first.log.headers()]
    assert (header.timestamp_type, header.records_count) == (TimestampType.LOG_APPEND_TIME, 1)
    assert [record.timestamp for record in read_all(compacted.log)] == [NOW, NOW]
    compacted.log_dir.close()


def test_records_without_a_key_are_removed(compacted: Compacted) -> None:
    plain = LogConfig(segment_bytes=500)
    compacted.log.configure(plain)
    compacted.log.append_as_leader(batch(b"v", key=None), 0, NOW)
    compacted.log.configure(compacted.config)
    compacted.put(b"k", b"v")
    compacted.roll()
    compacted.compact()
    assert compacted.left() == [(1, b"k", b"v")]
    assert compacted.cleaner.report.last.invalid_records == 1


def test_compacted_segments_are_not_dirty_again(compacted: Compacted) -> None:
    for index in range(30):
        compacted.put(b"k%d" % (index % 3), b"%d" % index)
    compacted.roll()
    assert compacted.compact()
    assert not compacted.compact()
    compacted.reopen()
    assert compacted.log.cleaned_offset == 30
    assert not compacted.compact()
    compacted.put(b"k0", b"new")
    compacted.roll()
    assert compacted.compact()
    assert compacted.cleaner.report.last.indexed_records == 1
    assert [value for _, _, value in compacted.left()] == [b"28", b"29", b"new"]


def test_keys_that_do_not_fit_are_left_to_the_next_round(compacted: Compacted) -> None:
    for index in range(60):
        compacted.put(b"k%d" % (index % 30), b"%d" % index)
    compacted.roll()
    tiny = CleanerSettings(buffer_bytes=24 * 10, load_factor=0.9)
    rounds = 0
    while compacted.compact(settings=tiny):
        rounds += 1
    assert rounds > 3
    assert [value for _, _, value in compacted.left()] == [b"%d" % index for index in range(30, 60)]


def test_small_segments_are_joined_and_none_is_larger_than_segment_bytes(compacted: Compacted) -> None:
    for index in range(100):
        compacted.put(b"k%d" % (index % 40), b"%d" % index)
    compacted.roll()
    before = compacted.log.segments_count
    compacted.compact()
    compacted.put(b"k0", b"x")
    compacted.roll()
    compacted.compact()
    assert compacted.log.segments_count < before
    assert all(segment.size <= 500 for segment in compacted.log.segments)


# ---------------------------------------------------------------------------------------------------------- tombstones


def test_a_tombstone_stays_delete_retention_ms_from_the_round_that_first_met_it(compacted: Compacted) -> None:
    compacted.put(b"k", b"v")
    compacted.put(b"k", None)
    compacted.roll()
    compacted.compact()
    assert compacted.left() == [(1, b"k", None)]
    [header] = [header for _, header in compacted.log.segments.first.log.headers()]
    assert header.delete_horizon_ms == NOW + DAY
    assert read_all(compacted.log)[0].timestamp == NOW

    for advance, is_left in ((DAY - 1, True), (1, False)):
        compacted.clock.advance(advance)
        compacted.put(b"other", b"v")
        compacted.roll()
        assert compacted.compact()
        assert ((1, b"k", None) in compacted.left()) == is_left


@pytest.mark.parametrize("retention_ms", [INT64_MAX - NOW, INT64_MAX - NOW + 1, INT64_MAX - 1, INT64_MAX])
def test_tombstones_may_be_kept_for_ever(tmp_path: Path, retention_ms: int) -> None:
    """The horizon is at most the largest that a batch can have."""
    compacted = Compacted(tmp_path, replace(COMPACT, delete_retention_ms=retention_ms))
    compacted.put(b"k", b"v")
    compacted.put(b"k", None)
    for _ in range(2):
        compacted.put(b"other", b"v")
        compacted.roll()
        assert compacted.compact()
        assert compacted.left()[0] == (1, b"k", None)
        [header, *_] = [header for _, header in compacted.log.segments.first.log.headers()]
        assert header.delete_horizon_ms == INT64_MAX
        assert read_all(compacted.log)[0].timestamp == NOW
        compacted.clock.advance(DAY)
    compacted.log_dir.close()


# -------------------------------------------------------------------------------------------------------- transactions


def transactional(compacted: Compacted, sequence: int, key: bytes, value: bytes) -> None:
    compacted.put(key, value, producer_id=9, producer_epoch=0, base_sequence=sequence, is_transactional=True)


def end(compacted: Compacted, *, commit: bool) -> None:
    compacted.log.append_as_leader(marker(9, 0, commit=commit), 0, NOW, Origin.COORDINATOR)


def test_records_of_an_aborted_transaction_are_removed_and_supersede_nothing(compacted: Compacted) -> None:
    compacted.put(b"k", b"before")
    transactional(compacted, 0, b"k", b"aborted")
    end(compacted, commit=False)
    transactional(compacted, 1, b"j", b"committed")
    end(compacted, commit=True)
    compacted.roll()
    assert compacted.compact()
    assert compacted.left() == [(0, b"k", b"before"), (3, b"j", b"committed")]
    assert compacted.log.aborted_transactions(0, 5) == [(9, 1)]  # its marker is still there, so readers must know


def test_an_open_transaction_is_not_touched(compacted: Compacted) -> None:
    compacted.put(b"k", b"1")
    compacted.roll()
    transactional(compacted, 0, b"k", b"2")
    compacted.put(b"k", b"3")
    compacted.roll()
    assert compacted.compact()
    assert [value for _, _, value in compacted.left()] == [b"1", b"2", b"3"]
    assert compacted.log.cleaned_offset == 1


def test_markers_are_removed_after_their_records_and_the_delete_horizon(compacted: Compacted) -> None:
    transactional(compacted, 0, b"k", b"aborted")
    end(compacted, commit=False)
    for sequence in (1, 2):
        transactional(compacted, sequence, b"k", b"committed")
        end(compacted, commit=True)
    compacted.put(b"k", b"last")
    for _ in range(4):
        compacted.roll()
        compacted.compact()
        compacted.clock.advance(DAY)
        compacted.put(b"k", b"last")
    # The last batch of data keeps the producer's sequence, without records, and so its marker; the others are gone.
    assert [(base, count) for base, _, count in compacted.shape() if base < 6] == [(4, 0), (5, 1)]
    assert compacted.log.aborted_transactions(0, 5) == []


def test_the_last_batch_of_a_producer_is_kept_empty(compacted: Compacted) -> None:
    compacted.put(b"k", b"1", producer_id=5, producer_epoch=0, base_sequence=0)
    compacted.put(b"k", b"2", producer_id=5, producer_epoch=0, base_sequence=1)
    compacted.put(b"k", b"3")
    compacted.roll()
    compacted.compact()
    assert compacted.shape() == [(1, 1, 0), (2, 2, 1)]
    compacted.reopen()
    data = batch(b"2", key=b"k", producer_id=5, producer_epoch=0, base_sequence=1)
    assert compacted.log.append_as_leader(data, 0, NOW).duplicate


def test_the_dirtiest_log_goes_first(compacted: Compacted) -> None:
    fill(compacted)
    compacted.compact()
    dirty = compacted.log_dir.create_log("dirty", 0, TOPIC_ID, compacted.config)
    for log in (compacted.log, dirty):
        append(log, b"v")
        log.roll()
        log.advance_high_watermark(log.log_end_offset)
    assert compacted.compact()
    assert (dirty.cleaned_offset, compacted.log.cleaned_offset) == (1, 60)


def test_a_new_topic_does_not_inherit_the_cleaned_offset_of_its_name(compacted: Compacted) -> None:
    fill(compacted)
    compacted.compact()
    compacted.log_dir.delete_log("t", 0)
    compacted.log = compacted.log_dir.create_log("t", 0, bytes(16), compacted.config)
    compacted.reopen()
    assert compacted.log.cleaned_offset is None
