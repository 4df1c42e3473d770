"""Offsets that are missing or wrong: reported where they are a loss, and accepted where compaction removed them."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.storage.batch_scan import StoredBatch, scan_batches
from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import Answers
from odradek.broker.storage.compaction.cleaning_job import CleaningJob
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.offline.missing_offsets import SegmentGoneError
from odradek.pipeline.klog import segment_reader
from odradek.pipeline.records.damage import CorruptRecordsError
from odradek.protocol.checksum import crc32c
from tests.effort import some
from tests.pipeline.klog.readings import Reading, Writing, segment_of, segments
from tests.storage.compaction.compacted import Compacted, in_process

APPENDS = 110
A_BATCH = 40  # records
RECORDS = APPENDS * A_BATCH


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of three segments after a clean stop, never compacted."""
    writing = Writing(tmp_path_factory.mktemp("written") / "logs")
    for _ in range(APPENDS):
        writing.append(A_BATCH)
    writing.close()
    assert len(segments(writing.path)) == 3
    return writing.path


@pytest.fixture
def stopped(written: Path, tmp_path: Path) -> Path:
    """A copy of that log."""
    return Path(shutil.copytree(written, tmp_path / "logs"))


def batches_of(segment: Path) -> list[StoredBatch]:
    descriptors = DescriptorCache(OsFiles())
    try:
        return list(scan_batches(descriptors, str(segment), 0, segment.stat().st_size))
    finally:
        descriptors.close()


def overwrite(segment: Path, position: int, layout: str, value: int) -> None:
    with segment.open("r+b") as file:
        file.seek(position)
        file.write(struct.pack(layout, value))


def mark_compacted(path: Path) -> None:
    (path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 10\n")


def split(path: Path, **options: Any) -> tuple[list[int], list[str]]:
    """Return the offsets of the rows, and the descriptions of damage, under PERMISSIVE."""
    rows = list(Reading(path, **options).in_mode("PERMISSIVE"))
    return [offset for offset, damage in rows if damage is None], [damage for _, damage in rows if damage is not None]


def remove(segment: Path) -> None:
    for file in segment.parent.glob(f"{segment.stem}.*"):
        if file.suffix != ".snapshot":
            file.unlink()


def truncate(segment: Path) -> None:
    segment.write_bytes(b"")


@pytest.mark.parametrize("lose", [remove, truncate])
def test_a_lost_segment_is_an_error_that_names_file_and_offsets(stopped: Path, lose: Callable[[Path], None]) -> None:
    first, second, third = segments(stopped)
    lose(second)
    begin, end = int(second.stem), int(third.stem)
    named = first if lose is remove else second
    with pytest.raises(CorruptRecordsError, match=f"{named} at position .* offsets {begin} to {end - 1} are missing"):
        Reading(stopped).rows()
    left = [*range(begin), *range(end, RECORDS)]
    offsets, (damage,) = split(stopped)
    assert offsets == left
    assert f"offsets {begin} to {end - 1} are missing" in damage
    assert Reading(stopped, mode="DROPMALFORMED").offsets() == left
    assert Reading(stopped, failOnDataLoss="false").offsets() == left


def test_only_a_gap_inside_the_range_of_the_query_is_an_error(stopped: Path) -> None:
    _, second, third = segments(stopped)
    remove(second)
    begin, end = int(second.stem), int(third.stem)
    for start, stop in ((0, begin), (end, RECORDS)):
        bounds = {
            "startingOffsets": f'{{"orders":{{"0":{start}}}}}',
            "endingOffsets": f'{{"orders":{{"0":{stop}}}}}',
        }
        assert Reading(stopped, **bounds).offsets() == list(range(start, stop))
    with pytest.raises(CorruptRecordsError, match="are missing"):
        Reading(stopped, startingOffsets=f'{{"orders":{{"0":{begin - 1}}}}}').rows()


@pytest.mark.parametrize("lose", [remove, truncate])
def test_compaction_explains_a_gap_between_segments(stopped: Path, lose: Callable[[Path], None]) -> None:
    _, second, third = segments(stopped)
    lose(second)
    for index in second.parent.glob(f"{second.stem}.*index"):
        index.write_bytes(b"")  # as compaction leaves them
    mark_compacted(stopped)
    assert Reading(stopped).offsets() == [*range(int(second.stem)), *range(int(third.stem), RECORDS)]


@pytest.mark.parametrize("lose", [Path.unlink, truncate])
def test_an_index_without_its_records_is_a_loss_even_in_a_compacted_log(
    stopped: Path, lose: Callable[[Path], None]
) -> None:
    _, second, third = segments(stopped)
    mark_compacted(stopped)
    lose(second)
    with pytest.raises(CorruptRecordsError, match=f"offsets {int(second.stem)} to {int(third.stem) - 1} are missing"):
        Reading(stopped).rows()


def test_retention_explains_a_missing_beginning(stopped: Path) -> None:
    first, second, _ = segments(stopped)
    remove(first)
    assert Reading(stopped).offsets() == list(range(int(second.stem), RECORDS))


def test_a_segment_that_was_cut_between_batches_is_reported(stopped: Path) -> None:
    segment, second = segments(stopped)[:2]
    last = batches_of(segment)[-1]
    with segment.open("r+b") as file:
        file.truncate(last.position)
    with pytest.raises(CorruptRecordsError, match=f"offsets {last.base_offset} to {int(second.stem) - 1} are missing"):
        Reading(stopped).rows()


def test_a_gap_of_the_time_after_the_plan_is_no_damage_but_an_old_plan(stopped: Path) -> None:
    second = segments(stopped)[1]
    hidden = second.rename(stopped / "hidden")
    reading, lenient = Reading(stopped), Reading(stopped, failOnDataLoss="false")
    hidden.rename(second)
    with pytest.raises(SegmentGoneError, match="read again"):
        reading.rows()
    assert lenient.offsets() == [*range(int(second.stem)), *range(int(segments(stopped)[2].stem), RECORDS)]


@pytest.mark.parametrize(
    ("change", "number", "pieces"), some([*product([-400, -7, 3, 1000, 1 << 40], [0, 1, 12, -1], ["1", "30"])])
)
def test_a_wrong_base_offset_loses_one_batch(stopped: Path, change: int, number: int, pieces: str) -> None:
    segment = segments(stopped)[1]
    batches = batches_of(segment)
    wrong = batches[number]
    overwrite(segment, wrong.position, ">q", max(wrong.base_offset + change, 0))
    offsets, (damage,) = split(stopped, minPartitions=pieces)
    assert offsets == [*range(wrong.base_offset), *range(wrong.last_offset + 1, RECORDS)]
    assert damage.startswith(f"{segment} at position {wrong.position} ({wrong.size} bytes, base offset")
    with pytest.raises(CorruptRecordsError, match=f"{segment} at position {wrong.position} .* does not fit its place"):
        Reading(stopped, failOnDataLoss="false").rows()


@pytest.mark.parametrize("change", [-7, 3, 1 << 40])
def test_a_wrong_base_offset_of_the_last_batches_is_reported(stopped: Path, change: int) -> None:
    segment = segments(stopped)[-1]
    for wrong in batches_of(segment)[-2:]:
        content = segment.read_bytes()
        overwrite(segment, wrong.position, ">q", wrong.base_offset + change)
        offsets, damage = split(stopped)
        assert damage
        assert set(range(wrong.base_offset)) <= set(offsets)
        segment.write_bytes(content)


def test_a_wrong_base_offset_in_a_compacted_log_is_found_by_its_neighbours(stopped: Path) -> None:
    mark_compacted(stopped)
    segment = segments(stopped)[1]
    wrong = batches_of(segment)[7]
    for change in (-3, 3, 1 << 40):
        overwrite(segment, wrong.position, ">q", wrong.base_offset + change)
        offsets, (damage,) = split(stopped)
        assert offsets == [*range(wrong.base_offset), *range(wrong.last_offset + 1, RECORDS)]
        assert f"at position {wrong.position} " in damage


def test_a_wrong_base_offset_beside_a_gap_of_a_compacted_log_is_found_by_the_index(writing: Writing) -> None:
    for _ in range(20):
        writing.append(A_BATCH)
    writing.close()
    mark_compacted(writing.path)
    (segment,) = segments(writing.path)
    batches = batches_of(segment)
    index = segment.with_suffix(".index").read_bytes()
    positions = [position for _, position in struct.iter_unpack(">ii", index)]
    indexed = next(number for number, batch in enumerate(batches) if batch.position == positions[3])
    removed, wrong = batches[indexed + 1], batches[indexed]
    data = segment.read_bytes()
    # Compaction has removed the next batch: every later position is lower.
    entries = [
        struct.pack(">ii", offset, position - removed.size * (position > removed.position))
        for offset, position in struct.iter_unpack(">ii", index)
        if position != removed.position
    ]
    segment.write_bytes(data[: removed.position] + data[removed.position + removed.size :])
    segment.with_suffix(".index").write_bytes(b"".join(entries))
    assert not split(writing.path)[1]
    overwrite(segment, wrong.position, ">q", wrong.base_offset + 5)
    _, (damage,) = split(writing.path)
    assert f"at position {wrong.position} " in damage


@pytest.mark.parametrize(
    ("length", "has_index", "chunk_bytes"),
    some([*product([1 << 14, 1 << 17, 0x7FFF_FFFF, 0, -5], [True, False], [4_000_000, 10_000])]),
)
def test_a_wrong_length_loses_one_batch(
    stopped: Path, length: int, has_index: bool, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_reader, "CHUNK_BYTES", chunk_bytes)
    for number in (0, 2):  # in a segment in the middle, and in the last one
        segment = segments(stopped)[number]
        wrong = batches_of(segment)[5]
        overwrite(segment, wrong.position + 8, ">i", length)
        if not has_index:
            segment.with_suffix(".index").unlink()
        offsets, (damage,) = split(stopped)
        assert offsets == [*range(wrong.base_offset), *range(wrong.last_offset + 1, RECORDS)]
        assert damage.startswith(f"{segment} at position {wrong.position} ({wrong.size} bytes")
        with pytest.raises(CorruptRecordsError, match=f"{segment} at position {wrong.position} "):
            Reading(stopped).rows()
        overwrite(segment, wrong.position + 8, ">i", wrong.size - 12)


def test_a_wrong_last_offset_does_not_cast_doubt_on_the_next_batch(stopped: Path) -> None:
    segment = segments(stopped)[1]
    wrong = batches_of(segment)[5]
    for delta in (1, A_BATCH - 2, A_BATCH + 100):
        overwrite(segment, wrong.position + 23, ">i", delta)
        offsets, (damage,) = split(stopped)
        assert offsets == [*range(wrong.base_offset), *range(wrong.last_offset + 1, RECORDS)]
        assert f"at position {wrong.position} " in damage
        assert "checksum" in damage


@pytest.mark.parametrize("evidence", ["swap", "deleted", "header"])
def test_other_traces_of_compaction_explain_a_gap(stopped: Path, evidence: str) -> None:
    first, second, third = segments(stopped)
    remove(second)
    if evidence == "swap":
        first.rename(f"{first}.swap")
    elif evidence == "deleted":
        Path(f"{second}.deleted").touch()
    else:
        last = batches_of(first)[-1]
        data = bytearray(first.read_bytes())
        data[last.position + 22] |= 0x40  # the delete horizon of tombstones
        struct.pack_into(">I", data, last.position + 17, crc32c(data[last.position + 21 :]))
        first.write_bytes(data)
    assert Reading(stopped).offsets() == [*range(int(second.stem)), *range(int(third.stem), RECORDS)]


def test_retention_during_the_read_is_not_taken_for_a_loss(stopped: Path) -> None:
    first, second, _ = segments(stopped)
    second.rename(stopped / "hidden")
    reading = Reading(stopped)
    Path(f"{first}.deleted").write_bytes(b"")
    first.rename(f"{first}.deleted")
    with pytest.raises(SegmentGoneError, match="read again"):
        reading.rows()
    allowed = Reading(stopped, failOnDataLoss="false")
    assert allowed.offsets() == list(range(int(segment_of(stopped, "orders").stem), RECORDS))


def test_a_log_is_read_without_false_alarm_before_during_and_after_each_compaction(tmp_path: Path) -> None:
    """Batches of one record show no trace of compaction."""
    compacted = Compacted(tmp_path / "logs")

    def read_after_each_swap(job: CleaningJob, state: CleaningState) -> Answers:
        for answer in in_process(compacted.resources)(job, state):
            yield answer
            compacted.log_dir.deletions.run_due()  # the replaced segments would also be evidence
            rows = Reading(compacted.path).rows()
            assert [(row["offset"], row["key"], row["value"]) for row in rows] == compacted.left()

    for number in range(3):
        for index in range(60):
            compacted.put(b"k%d" % (index % 4), b"%d" % index)
        compacted.roll()
        assert len(Reading(compacted.path).rows()) >= 60, number
        assert compacted.compact(read_after_each_swap)
    compacted.log_dir.close()
    assert len(Reading(compacted.path).rows()) < 20


def test_deleted_records_and_aborted_transactions_are_no_gaps(writing: Writing) -> None:
    for number in range(60):
        fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number * A_BATCH, "is_transactional": True}
        writing.append(A_BATCH, **fields)
        writing.append_marker(7, commit=number % 2 == 0)
    log = writing.log
    log.advance_high_watermark(log.log_end_offset)
    log.update_log_start_offset(1000)
    writing.close()
    offsets = [offset for offset in range(1000, 60 * (A_BATCH + 1)) if offset % (A_BATCH + 1) != A_BATCH]
    assert Reading(writing.path, minPartitions="20").offsets() == offsets
    committed = [offset for offset in offsets if offset // (A_BATCH + 1) % 2 == 0]
    assert Reading(writing.path, isolation__level="read_committed", minPartitions="20").offsets() == committed
