"""Runs of an export of a log directory: each record is exported once, wherever a run is interrupted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.client.record import TopicPartition
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.export import claim_directory
from odradek.pipeline.jobs.export_runs import ExportRun, move_committed
from odradek.pipeline.jobs.log_directories.log_offsets import LogState
from odradek.pipeline.jobs.results.filesystem import FileSystem

pytestmark = pytest.mark.spark

PARTITION = TopicPartition("t", 0)


def log(end: int) -> LogState:
    return LogState({PARTITION: 0}, {PARTITION: end}, {PARTITION: end}, {PARTITION: []}, {}, None)


def test_a_run_interrupted_before_its_commit_is_repeated(spark: SparkSession, tmp_path: Path) -> None:
    files = FileSystem(spark, str(tmp_path))
    interrupted = ExportRun(files, log(10))
    _write(tmp_path / interrupted.staging, {"date=1/a.parquet": "half"})
    move_committed(files)
    again = ExportRun(files, log(99))
    assert (again.range.starts, again.range.ends) == ({PARTITION: 0}, {PARTITION: 99})
    assert again.staging == interrupted.staging
    assert not (tmp_path / again.staging).exists()
    assert not (tmp_path / "date=1").exists()
    again.commit()
    assert ExportRun(files, log(100)).range.starts == {PARTITION: 99}


def test_the_files_of_a_run_interrupted_after_its_commit_are_moved(spark: SparkSession, tmp_path: Path) -> None:
    files = FileSystem(spark, str(tmp_path))
    interrupted = ExportRun(files, log(10))
    _write(tmp_path / interrupted.staging, {"date=1/a.parquet": "a", "date=1/b c.parquet": "b", "_SUCCESS": ""})
    interrupted.commit()
    (tmp_path / "date=1").mkdir()
    (tmp_path / interrupted.staging / "date=1/a.parquet").rename(tmp_path / "date=1/a.parquet")
    for _ in range(2):
        move_committed(FileSystem(spark, str(tmp_path)))
    assert {path.name: path.read_text() for path in (tmp_path / "date=1").glob("*.parquet")} == {
        "a.parquet": "a",
        "b c.parquet": "b",
    }
    assert not (tmp_path / interrupted.staging).exists()


@pytest.mark.parametrize("text", ["", "{}", "[]"])
def test_a_commit_of_an_earlier_version_is_an_error(spark: SparkSession, tmp_path: Path, text: str) -> None:
    files = FileSystem(spark, str(tmp_path))
    ExportRun(files, log(10)).commit()
    (tmp_path / "_checkpoint/commits/.0.crc").unlink()  # Spark's checksum
    (tmp_path / "_checkpoint/commits/0").write_text(text)
    with pytest.raises(JobError, match="commits/0 is not the commit of an export: --overwrite exports everything"):
        ExportRun(files, log(10))


def test_a_directory_with_other_settings_or_other_files_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    files = FileSystem(spark, str(tmp_path / "out"))
    claim_directory(files, {"topic": "t", "partition_by": "date"})
    claim_directory(files, {"topic": "t", "partition_by": "date"})
    _write(tmp_path / "out", {"_checkpoint/offsets/0": "1"})
    with pytest.raises(JobError, match="other settings: partition_by was date, now topic; --overwrite replaces it"):
        claim_directory(files, {"topic": "t", "partition_by": "topic"})
    _write(tmp_path / "foreign", {"precious": "data"})
    with pytest.raises(JobError, match="exists and is not an export"):
        claim_directory(FileSystem(spark, str(tmp_path / "foreign")), {})


def test_settings_may_change_after_a_run_that_failed_before_its_first_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = FileSystem(spark, str(tmp_path / "out"))
    claim_directory(files, {"topic": "wrong"})
    _write(tmp_path / "out", {"_checkpoint/metadata": "the id of a stream"})
    claim_directory(files, {"topic": "right"})
    assert json.loads(files.read("_checkpoint/export.json")) == {"topic": "right"}
    assert not files.exists("_checkpoint/metadata")


def _write(directory: Path, contents: Mapping[str, str]) -> None:
    for name, text in contents.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
