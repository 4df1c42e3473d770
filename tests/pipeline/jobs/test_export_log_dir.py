"""Exports of a log directory: each record is in the files once, or the job says why it cannot be."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.broker.storage.log_config import LogConfig
from odradek.pipeline.jobs import run
from odradek.pipeline.jobs.results.filesystem import FileSystem
from tests.storage.logs import CLUSTER, NOW, OTHER_ID, TOPIC_ID, append, open_log_dir

pytestmark = pytest.mark.spark

Records = Counter[tuple[str, int, int, str]]


def write(path: Path, *values: str, topic: str = "t", partition: int = 0, topic_id: bytes = TOPIC_ID) -> None:
    """Append records with these values, and stop cleanly; the topic is created if it is missing."""
    log_dir = open_log_dir(path)
    if (topic, partition) not in log_dir.logs:
        log_dir.create_log(topic, partition, topic_id, LogConfig())
    log = log_dir.logs[topic, partition]
    log.advance_high_watermark(log.log_end_offset)
    for value in values:
        append(log, value.encode(), timestamp=NOW + log.log_end_offset)
    log.advance_high_watermark(log.log_end_offset)
    log_dir.close()


def truncate(path: Path, offset: int, *, from_start: bool = False) -> None:
    log_dir = open_log_dir(path)
    log = log_dir.logs["t", 0]
    log.advance_high_watermark(log.log_end_offset)
    if from_start:
        log.update_log_start_offset(offset)
    else:
        log.truncate_to(offset)
    log_dir.close()


def exported(spark: SparkSession, output: Path) -> Records:
    """The records in the files: topic, partition, offset and value of each, with the number of times it is there."""
    rows = spark.read.parquet(str(output)).selectExpr("topic", "partition", "offset", "string(value)").collect()
    return Counter((row.topic, row.partition, row.offset, row.value) for row in rows)


def records(*values: str, start: int = 0, topic: str = "t", partition: int = 0) -> Records:
    return Counter((topic, partition, offset, value) for offset, value in enumerate(values, start))


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., int]:
    def run_export(*flags: str, log_dir: str = "log", topic: str = "t") -> int:
        source = ["--log-dir", str(tmp_path / log_dir), *(["--topic", topic] if topic else [])]
        return run(["export", *source, "--output", str(tmp_path / "out"), *flags])

    return run_export


@pytest.mark.parametrize(
    "option",
    ["startingTimestamp=0", "endingTimestamp=1", "startingOffsets=latest", "ENDINGOFFSETS=earliest", "subscribe=u",
     'startingOffsetsByTimestamp={"t":{"0":0}}', "failOnDataLoss=false", 'assign={"t":[0]}'],
)  # fmt: skip
def test_an_option_that_the_job_plans_is_refused(
    option: str, export: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "log", "a")
    assert export("--option", option) == 2
    assert f"--option {option.partition('=')[0]} is not accepted" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_every_spelling_of_read_committed_stops_at_an_open_transaction(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path
) -> None:
    write(tmp_path / "log", "a")
    log_dir = open_log_dir(tmp_path / "log")
    log = log_dir.logs["t", 0]
    transaction = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    append(log, b"open", base_sequence=0, **transaction)
    log.advance_high_watermark(log.log_end_offset)
    log_dir.close()
    assert export("--option", "Isolation.Level=READ_COMMITTED") == 0
    assert exported(spark, tmp_path / "out") == records("a")
    assert export() == 0
    assert exported(spark, tmp_path / "out") == records("a", "open")


def test_a_topic_that_was_made_again_is_reported_and_exported_from_its_start(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "log", "a", "b", "c")
    assert export() == 0
    shutil.rmtree(tmp_path / "log" / "t-0")
    write(tmp_path / "log", "new", topic_id=OTHER_ID)
    assert export() == 1
    assert "t was deleted and created again" in capsys.readouterr().err
    assert exported(spark, tmp_path / "out") == records("a", "b", "c")
    for _ in range(2):
        assert export("--on-data-loss", "continue") == 0
        assert exported(spark, tmp_path / "out") == records("a", "b", "c") + records("new")
    assert export() == 0


def test_a_log_that_was_truncated_is_reported_even_if_it_has_grown_again(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "log", "a", "b", "c")
    assert export() == 0
    truncate(tmp_path / "log", 1)
    assert export() == 1
    assert "t-0 was exported up to offset 3, and now ends at 1" in capsys.readouterr().err
    log_dir = open_log_dir(tmp_path / "log")
    for value in (b"B", b"C", b"D"):
        append(log_dir.logs["t", 0], value, leader_epoch=1)
    log_dir.logs["t", 0].advance_high_watermark(4)
    log_dir.close()
    assert export() == 1
    assert "t-0 was exported up to offset 3, and was truncated to offset 1 since then" in capsys.readouterr().err
    assert export("--on-data-loss", "continue") == 0
    assert exported(spark, tmp_path / "out") == records("a", "b", "c") + records("B", "C", "D", start=1)
    assert export() == 0


def test_records_that_retention_removed_before_their_export_are_reported(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "log", "a")
    assert export() == 0
    write(tmp_path / "log", "b", "c")
    truncate(tmp_path / "log", 2, from_start=True)
    assert export() == 1
    assert "t-0 was exported up to offset 1, and now starts at 2" in capsys.readouterr().err
    assert export("--on-data-loss", "continue") == 0
    assert exported(spark, tmp_path / "out") == records("a") + records("c", start=2)
    assert export() == 0


def test_a_log_directory_of_another_cluster_is_reported(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "log", "a", "b")
    write(tmp_path / "other", "x")
    meta = tmp_path / "other" / "meta.properties"
    meta.write_text(meta.read_text().replace(CLUSTER, "anothercluster00000000"))
    assert export() == 0
    assert export(log_dir="other") == 1
    assert f"cluster {CLUSTER}, this is one of anothercluster00000000" in capsys.readouterr().err
    assert exported(spark, tmp_path / "out") == records("a", "b")


def test_a_partition_that_is_gone_is_reported_until_it_is_accepted(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for topic in ("t", "u"):
        write(tmp_path / "log", "a", topic=topic)
    pattern = ["--topic-pattern", "[tu]"]
    assert export(*pattern, topic="") == 0
    (tmp_path / "log" / "u-0").rename(tmp_path / "u-0")
    assert export(*pattern, topic="") == 1
    assert "the log directory no longer has u-0" in capsys.readouterr().err
    assert export(*pattern, "--on-data-loss", "continue", topic="") == 0
    assert export(*pattern, topic="") == 0
    (tmp_path / "u-0").rename(tmp_path / "log" / "u-0")
    write(tmp_path / "log", "b", topic="u")
    assert export(*pattern, topic="") == 0
    assert exported(spark, tmp_path / "out") == records("a") + records("a", "b", topic="u")


def test_a_pattern_leaves_out_internal_topics_and_names_may_have_spaces(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path
) -> None:
    for topic in ("t", "u", "__consumer_offsets"):
        write(tmp_path / "log", "a", topic=topic)
    assert export("--topic-pattern", ".*", topic="") == 0
    assert exported(spark, tmp_path / "out") == records("a") + records("a", topic="u")
    assert export(topic="t, u") == 1  # other settings
    shutil.rmtree(tmp_path / "out")
    for names in ("t, u", "t,u"):
        assert export(topic=names) == 0
        assert exported(spark, tmp_path / "out") == records("a") + records("a", topic="u")


def test_what_a_kill_left_does_not_stop_the_next_run(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path
) -> None:
    write(tmp_path / "log", "a")
    (tmp_path / "out" / "_checkpoint").mkdir(parents=True)
    (tmp_path / "out" / "_checkpoint" / "export.json.tmp").write_text('{"topic":')
    assert export() == 0
    (tmp_path / "out" / "_checkpoint" / "commits" / "1.tmp").write_text('{"start":')
    write(tmp_path / "log", "b")
    assert export() == 0
    assert exported(spark, tmp_path / "out") == records("a", "b")


def test_the_settings_may_change_after_a_run_without_a_commit(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path
) -> None:
    write(tmp_path / "log", "a")
    write(tmp_path / "log", "b", topic="u")
    damaged = tmp_path / "log" / "u-0" / "00000000000000000000.log"
    sound = damaged.read_bytes()
    damaged.write_bytes(sound[:-1] + b"x")
    assert export(topic="t,u") == 1
    assert export() == 0
    assert exported(spark, tmp_path / "out") == records("a")


class Killed(BaseException):
    """A kill: this call and all later ones of the run do nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--overwrite"]])
def test_each_record_is_there_once_after_a_kill_at_each_write(
    flags: list[str],
    spark: SparkSession,
    export: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first call of the run that changes files is not made, then the second one, and so on."""
    write(tmp_path / "log", "a")
    assert export("--partition-by", "none") == 0
    saved = shutil.copytree(tmp_path / "out", tmp_path / "saved")
    write(tmp_path / "log", "b")
    for number in range(1, 100):
        shutil.rmtree(tmp_path / "out")
        for left in tmp_path.glob("_out.staging"):
            shutil.rmtree(left)
        shutil.copytree(saved, tmp_path / "out")
        with monkeypatch.context() as patch:
            was_killed = kill_at(number, patch)
            try:
                assert export("--partition-by", "none", *flags) == 0
            except Killed:
                pass
        assert export("--partition-by", "none") == 0
        assert exported(spark, tmp_path / "out") == records("a", "b"), f"killed at write {number}"
        assert not (tmp_path / "_out.staging").exists()
        if not was_killed():
            assert number > 5
            return
    raise AssertionError("the run never ended")


def kill_at(number: int, patch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Let the calls of `FileSystem` that change files raise Killed from this one on; return whether one did."""
    calls = 0

    def counting(name: str) -> None:
        original = getattr(FileSystem, name)

        def call(self: FileSystem, *arguments: str) -> None:
            nonlocal calls
            calls += 1
            if calls >= number:
                raise Killed
            original(self, *arguments)

        patch.setattr(FileSystem, name, call)

    for name in ("write", "move", "delete"):
        counting(name)
    return lambda: calls >= number


def test_the_commit_has_the_range_the_topic_ids_and_the_cluster(
    spark: SparkSession, export: Callable[..., int], tmp_path: Path
) -> None:
    write(tmp_path / "log", "a", "b")
    assert export() == 0
    commit = json.loads((tmp_path / "out" / "_checkpoint" / "commits" / "0").read_text())
    assert commit == {
        "start": {"t": {"0": 0}},
        "end": {"t": {"0": 2}},
        "epochs": {"t": {"0": 0}},
        "topic_ids": {"t": "AQIDBAUGBwgJCgsMDQ4PEA"},
        "cluster_id": CLUSTER,
    }
