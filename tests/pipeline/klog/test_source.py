"""Log directories read without a broker: logs of Apache Kafka, pruning, live directories, damage."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan

from odradek.broker.storage.log_config import LogConfig
from odradek.client.record import TopicPartition
from odradek.pipeline.klog import plan as klog_plan
from odradek.pipeline.klog import segment_reader
from odradek.pipeline.klog.options import klog_options
from odradek.pipeline.klog.plan import KlogPartition, OffsetRangeError
from odradek.pipeline.klog.segment_reader import SegmentGoneError
from odradek.pipeline.klog.segments import LogDirectory, NoLogDirError
from odradek.pipeline.klog.source import KlogReader
from odradek.pipeline.records.damage import CorruptRecordsError
from odradek.pipeline.schema import column_names
from tests.storage.logs import NOW, batch, marker, open_log_dir

STORAGE = Path(__file__).parents[2] / "storage"
GOLDEN = STORAGE / "golden_dirs"
TOPICS = ("codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd", "rolled", "logappend", "compacted",
          "idempotent", "transactional")  # fmt: skip
ALL = column_names(include_headers=True, include_corrupt=True)


class Reading:
    """A source with options, without Spark: its tasks and their rows."""

    def __init__(self, path: Path, filters: list[Filter] | None = None, **options: str) -> None:
        given = {name.replace("__", "."): value for name, value in options.items()}
        self.reader = KlogReader(klog_options({"path": str(path)} | given), ALL)
        if filters is not None:
            assert self.reader.pushFilters(filters) == filters
        self.tasks: list[KlogPartition] = self.reader.partitions()

    @property
    def bytes(self) -> int:
        return sum(task.range.end - task.range.begin for task in self.tasks if task.range is not None)

    def rows(self) -> list[dict[str, Any]]:
        return [row for task in self.tasks for batch in self.reader.read(task) for row in batch.to_pylist()]

    def offsets(self) -> list[int]:
        return [row["offset"] for row in self.rows()]


def expected(name: str) -> list[dict[str, Any]]:
    path = STORAGE / "golden_expected" / f"{name}.jsonl"
    text = path.read_text() if path.exists() else gzip.decompress(path.with_suffix(".jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def as_expected(row: dict[str, Any]) -> dict[str, Any]:
    def text(value: bytes | None) -> str | None:
        return None if value is None else base64.b64encode(value).decode()

    return {
        "offset": row["offset"],
        "timestamp": round(row["timestamp"].timestamp() * 1000),
        "timestamp_type": row["timestampType"] + 1,
        "key": text(row["key"]),
        "value": text(row["value"]),
        "headers": [[header["key"], text(header["value"])] for header in row["headers"] or ()],
    }


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A copy of a log directory of Kafka, which tests damage."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "golden"))


class Writing:
    """The log of `orders-0`, as a broker writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened = open_log_dir(path)
        self.log = self._opened.create_log(
            "orders", 0, bytes(range(1, 17)), LogConfig(segment_bytes=200_000, index_interval_bytes=4096)
        )

    def append(self, count: int, **how: Any) -> None:
        values = [b"v" * 100] * count
        self.log.append_as_leader(batch(*values, timestamp=NOW + self.log.log_end_offset, **how), 0, NOW)

    def append_marker(self, producer_id: int, *, commit: bool) -> None:
        self.log.append_as_leader(marker(producer_id, 0, commit=commit), 0, NOW, from_client=False)

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    written = Writing(tmp_path / "logs")
    yield written
    written.close()


def segments(path: Path) -> list[Path]:
    return sorted((path / "orders-0").glob("*.log"))


# ---------------------------------------------------------------------------------------------- contents of a directory


@pytest.mark.parametrize("topic", TOPICS)
def test_logs_of_kafka_are_read_as_by_its_consumers(topic: str) -> None:
    reading = Reading(GOLDEN, subscribe=topic, maxPartitionBytes="8000")
    found = reading.rows()
    assert [as_expected(row) for row in found] == expected(f"{topic}.records")
    assert {(row["topic"], row["partition"], row["_corrupt_record"]) for row in found} == {(topic, 0, None)}


def test_read_committed_leaves_out_the_same_records_as_kafka() -> None:
    for size in ("1", "100000"):
        reading = Reading(GOLDEN, subscribe="transactional", isolation__level="read_committed", maxPartitionBytes=size)
        assert [as_expected(row) for row in reading.rows()] == expected("transactional.read_committed")


def test_all_topics_are_read_except_internal_ones() -> None:
    assert {task.topic for task in Reading(GOLDEN).tasks} == set(TOPICS)
    assert {task.topic for task in Reading(GOLDEN, subscribePattern="codec-.*").tasks} == set(TOPICS[:5])
    assert {task.topic for task in Reading(GOLDEN, subscribe="__consumer_offsets").tasks} == {"__consumer_offsets"}
    assert {task.topic for task in Reading(GOLDEN, assign='{"rolled": [0]}').tasks} == {"rolled"}


@pytest.mark.parametrize("option", [{"subscribe": "nothing"}, {"assign": '{"rolled": [0, 7]}'}])
def test_missing_topics_and_partitions_are_reported(option: dict[str, str]) -> None:
    with pytest.raises(OffsetRangeError, match=r"golden_dirs does not contain (nothing|rolled-7)"):
        Reading(GOLDEN, **option)


def test_offsets_of_a_partition_are_found_without_reading_records() -> None:
    directory = LogDirectory(str(GOLDEN))
    log = directory.open(TopicPartition("transactional", 0))
    assert (log.start_offset, log.end_offset, log.last_stable_offset()) == (0, 66, 66)
    assert directory.open(TopicPartition("rolled", 0)).end_offset == 20000


@pytest.mark.parametrize("make", [False, True])
def test_a_path_that_is_not_a_log_directory_is_reported(tmp_path: Path, make: bool) -> None:
    path = tmp_path / "elsewhere"
    if make:
        path.mkdir()
        (path / "notes.txt").write_text("hello")
    with pytest.raises(NoLogDirError, match="elsewhere"):
        Reading(path)


# ------------------------------------------------------------------------------------------------------- parts of a log


def test_a_large_segment_is_divided_between_tasks_at_index_entries() -> None:
    whole, pieces = Reading(GOLDEN, subscribe="rolled"), Reading(GOLDEN, subscribe="rolled", minPartitions="20")
    assert len(whole.tasks) < 10
    assert len(pieces.tasks) > 15
    assert pieces.bytes == whole.bytes
    assert len({task.range.path for task in pieces.tasks if task.range}) == len(whole.tasks)
    assert pieces.offsets() == whole.offsets()


def test_every_processor_gets_a_task_if_the_log_is_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    few = len(Reading(GOLDEN, subscribe="rolled").tasks)
    monkeypatch.setattr("os.cpu_count", lambda: 20)
    assert len(Reading(GOLDEN, subscribe="rolled").tasks) == few
    monkeypatch.setattr(klog_plan, "_FEWEST_BYTES", 1)
    assert len(Reading(GOLDEN, subscribe="rolled").tasks) > 15
    assert len(Reading(GOLDEN, subscribe="rolled", maxPartitionBytes=str(1 << 20)).tasks) == few
    assert len(Reading(GOLDEN, subscribe="rolled", minPartitions="1").tasks) == few


def test_only_the_bytes_of_a_range_of_offsets_are_read() -> None:
    part = Reading(GOLDEN, subscribe="rolled", startingOffsets='{"rolled":{"0":9000}}',
                   endingOffsets='{"rolled":{"0":9010}}')  # fmt: skip
    assert part.offsets() == list(range(9000, 9010))
    assert part.bytes < Reading(GOLDEN, subscribe="rolled").bytes / 50


def test_filters_are_pushed_down_to_the_indexes() -> None:
    whole = Reading(GOLDEN, subscribe="rolled")
    young = datetime.fromtimestamp(whole.rows()[15_000]["timestamp"].timestamp(), UTC)
    by_offset = Reading(
        GOLDEN, [GreaterThanOrEqual(("offset",), 9000), LessThan(("offset",), 9010)], subscribe="rolled"
    )
    assert set(range(9000, 9010)) <= set(by_offset.offsets()) <= set(range(9000, 9011))
    assert by_offset.bytes < whole.bytes / 50
    by_time = Reading(GOLDEN, [GreaterThan(("timestamp",), young)], subscribe="rolled")
    assert {row["offset"] for row in whole.rows() if row["timestamp"] > young} <= set(by_time.offsets())
    assert by_time.bytes < whole.bytes / 3
    by_topic = Reading(GOLDEN, [In(("topic",), ("codec-lz4", "rolled")), EqualTo(("partition",), 0)])
    assert {task.topic for task in by_topic.tasks} == {"codec-lz4", "rolled"}
    assert Reading(GOLDEN, [EqualTo(("partition",), 1)]).tasks == []


def test_a_range_of_time_is_found_through_the_time_index() -> None:
    whole = Reading(GOLDEN, subscribe="rolled")
    rows = whole.rows()
    start, end = (round(rows[number]["timestamp"].timestamp() * 1000) for number in (5000, 5100))
    part = Reading(GOLDEN, subscribe="rolled", startingTimestamp=str(start), endingTimestamp=str(end))
    first = next(row["offset"] for row in rows if row["timestamp"].timestamp() * 1000 >= start)
    last = next(row["offset"] for row in rows if row["timestamp"].timestamp() * 1000 >= end)
    assert part.offsets() == list(range(first, last))
    assert part.bytes < whole.bytes / 20


def test_a_time_after_the_last_record_is_an_error_or_the_end() -> None:
    late = str(NOW * 2)
    with pytest.raises(OffsetRangeError, match="rolled-0 has no record as late as"):
        Reading(GOLDEN, subscribe="rolled", startingTimestamp=late)
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert Reading(GOLDEN, subscribe="rolled", startingTimestamp=late, **strategy).tasks == []
    assert len(Reading(GOLDEN, subscribe="rolled", endingTimestamp=late).offsets()) == 20_000


def test_missing_offsets_are_an_error_unless_fail_on_data_loss_is_false() -> None:
    asked = {"subscribe": "rolled", "endingOffsets": '{"rolled":{"0":20001}}'}
    with pytest.raises(OffsetRangeError, match="offset 20001 of rolled-0"):
        Reading(GOLDEN, **asked)
    assert len(Reading(GOLDEN, failOnDataLoss="false", **asked).offsets()) == 20_000


# -------------------------------------------------------------------------------------------------- while it is written


def test_nothing_past_the_high_watermark_is_read(golden: Path) -> None:
    checkpoint = golden / "replication-offset-checkpoint"
    checkpoint.write_text(checkpoint.read_text().replace("rolled 0 20000", "rolled 0 12345"))
    begin_a_batch(segment_of(golden, "rolled"))
    assert Reading(golden, subscribe="rolled").offsets() == list(range(12345))
    (golden / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    with pytest.raises(CorruptRecordsError, match="ends inside a batch"):
        Reading(golden, subscribe="rolled").offsets()


def test_without_a_high_watermark_the_end_is_the_last_complete_batch(golden: Path) -> None:
    (golden / "replication-offset-checkpoint").unlink()
    begin_a_batch(segment_of(golden, "rolled"))
    assert len(Reading(golden, subscribe="rolled").offsets()) == 20_000


def test_a_running_broker_is_read_up_to_its_checkpoint(writing: Writing) -> None:
    path = writing.path
    for _ in range(100):
        writing.append(100)
    assert len(segments(path)) > 3
    complete = f"0\n1\norders 0 {writing.log.log_end_offset}\n"
    (path / "replication-offset-checkpoint").write_text(complete)
    writing.append(10)
    reading = Reading(path, minPartitions="8")
    assert len(reading.tasks) > 5
    assert reading.offsets() == list(range(10_000))


def test_a_new_segment_without_index_entries_logs_no_warning(
    writing: Writing, caplog: pytest.LogCaptureFixture
) -> None:
    writing.append(2)
    writing.append(2)
    assert Reading(writing.path, startingOffsets='{"orders":{"0":1}}').offsets() == [1, 2, 3]
    assert not caplog.records


def test_read_committed_stops_at_an_open_transaction(writing: Writing) -> None:
    path = writing.path
    writing.append(10)
    writing.append(5, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    writing.append(10)
    assert Reading(path, isolation__level="read_committed").offsets() == list(range(10))
    assert len(Reading(path).offsets()) == 25
    writing.append_marker(7, commit=False)
    writing.append(1, producer_id=7, producer_epoch=0, base_sequence=5, is_transactional=True)
    writing.append_marker(7, commit=True)
    assert Reading(path, isolation__level="read_committed").offsets() == [*range(10), *range(15, 25), 26]


def test_a_renamed_segment_is_read_and_a_deleted_one_is_reported(writing: Writing) -> None:
    path = writing.path
    for _ in range(50):
        writing.append(100)
    writing.close()
    reading = Reading(path)
    first, second = segments(path)[:2]
    first.rename(f"{first}.deleted")
    assert reading.offsets() == list(range(5000))
    second.rename(f"{second}.old")
    shutil.copy(f"{second}.old", second)  # another file with the same name, as after compaction
    with pytest.raises(SegmentGoneError, match=f"{second.name} was removed .* read again"):
        reading.offsets()
    allowed = Reading(path, failOnDataLoss="false")
    Path(f"{first}.deleted").unlink()
    second.unlink()
    assert allowed.offsets() == list(range(int(segments(path)[0].stem), 5000))


def test_an_interrupted_swap_is_read_as_completed(golden: Path) -> None:
    directory = golden / "rolled-0"
    first = min(directory.glob("*.log"))
    first.rename(f"{first}.swap")
    (directory / "00000000000000099999.log.cleaned").write_bytes(b"unfinished")
    assert len(Reading(golden, subscribe="rolled").offsets()) == 20_000


# --------------------------------------------------------------------------------------------------------------- damage


def segment_of(path: Path, topic: str, number: int = -1) -> Path:
    return sorted((path / f"{topic}-0").glob("*.log"))[number]


def begin_a_batch(path: Path) -> None:
    """Change the segment to the active segment of a running broker."""
    beginning = path.read_bytes()[:100]
    with path.open("ab") as segment:
        segment.write(beginning)


def spoil(path: Path, position: int, value: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(value)


def test_a_flipped_byte_is_reported_with_file_and_position(golden: Path) -> None:
    segment = segment_of(golden, "rolled", 0)
    whole = Reading(golden, subscribe="rolled").rows()
    spoil(segment, 100, bytes([segment.read_bytes()[100] ^ 1]))
    with pytest.raises(CorruptRecordsError, match=f"{segment} at position 0 .*checksum"):
        Reading(golden, subscribe="rolled").rows()
    found = Reading(golden, subscribe="rolled", mode="PERMISSIVE").rows()
    [damaged] = [row for row in found if row["_corrupt_record"]]
    assert (damaged["topic"], damaged["partition"], damaged["value"]) == ("rolled", 0, None)
    assert f"{segment} at position 0 " in damaged["_corrupt_record"]
    kept = [row for row in found if not row["_corrupt_record"]]
    assert 0 < len(whole) - len(kept) < 200
    assert kept == whole[len(whole) - len(kept) :]
    assert Reading(golden, subscribe="rolled", mode="dropMalformed").rows() == kept


def test_reading_continues_at_an_index_entry_after_an_invalid_header(golden: Path) -> None:
    segment = segment_of(golden, "rolled", 0)
    spoil(segment, 8, b"\xff\xff\xff\xff")
    found = Reading(golden, subscribe="rolled", mode="PERMISSIVE").rows()
    [damaged] = [row for row in found if row["_corrupt_record"]]
    assert "at position 0 " in damaged["_corrupt_record"]
    assert 19_000 < len(found) < 20_000
    assert found[-1]["offset"] == 19_999


def test_a_truncated_tail_below_the_high_watermark_is_reported(golden: Path) -> None:
    segment = segment_of(golden, "rolled")
    size = segment.stat().st_size
    os.truncate(segment, size - 10)
    with pytest.raises(CorruptRecordsError, match=f"{segment} at position .*ends inside a batch"):
        Reading(golden, subscribe="rolled").rows()
    found = Reading(golden, subscribe="rolled", mode="PERMISSIVE").rows()
    assert [row["_corrupt_record"] is None for row in found[-2:]] == [True, False]


def test_a_file_truncated_between_batches_is_reported(golden: Path) -> None:
    os.truncate(segment_of(golden, "codec-none"), 0)
    with pytest.raises(CorruptRecordsError, match=r"codec-none-0/0+\.log .* below its high watermark 200"):
        Reading(golden, subscribe="codec-none").rows()


def test_a_foreign_file_is_reported(golden: Path) -> None:
    segment = segment_of(golden, "codec-none")
    segment.write_text("This is no segment, and was never one. " * 100)
    with pytest.raises(CorruptRecordsError, match=f"{segment} at position 0 .*unknown magic"):
        Reading(golden, subscribe="codec-none").rows()


def test_missing_indexes_do_not_change_the_result(golden: Path) -> None:
    for pattern in ("*.index", "*.timeindex"):
        for index in (golden / "rolled-0").glob(pattern):
            index.unlink()
    before = sorted((golden / "rolled-0").iterdir())
    assert Reading(golden, subscribe="rolled", minPartitions="10").offsets() == list(range(20_000))
    assert sorted((golden / "rolled-0").iterdir()) == before


def test_a_batch_larger_than_a_chunk_is_read_whole(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    path = writing.path
    for count in (1, 1000, 2, 500):
        writing.append(count)
    writing.close()
    monkeypatch.setattr(segment_reader, "CHUNK_BYTES", 1000)
    assert Reading(path).offsets() == list(range(1503))


def test_an_unknown_option_is_reported() -> None:
    with pytest.raises(ValueError, match="'maxoffsetspertrigger' is not supported"):
        Reading(GOLDEN, maxOffsetsPerTrigger="1")
    with pytest.raises(ValueError, match="mode is 'LENIENT'"):
        Reading(GOLDEN, mode="LENIENT")
