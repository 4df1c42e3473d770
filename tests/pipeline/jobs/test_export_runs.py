"""The parts of an export of a log directory: wherever one is cut off, each record is there once in the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.export import claim_directory
from odradek.pipeline.jobs.export_runs import ExportRun, move_committed
from odradek.pipeline.jobs.results.filesystem import FileSystem

pytestmark = pytest.mark.spark

LAST = ("t", 0)


def test_runs_follow_each_other(spark: SparkSession, tmp_path: Path) -> None:
    files = FileSystem(spark, str(tmp_path))
    first = ExportRun(files, {LAST: 3}, {LAST: 10})
    assert (first.starts, first.ends, first.has_records) == ({LAST: 3}, {LAST: 10}, True)
    first.commit()
    assert not ExportRun(files, {LAST: 3}, {LAST: 10}).has_records
    second = ExportRun(files, {LAST: 5, ("t", 1): 0}, {LAST: 12, ("t", 1): 4})
    assert (second.starts, second.ends) == ({LAST: 10, ("t", 1): 0}, {LAST: 12, ("t", 1): 4})
    second.commit()
    assert ExportRun(files, {LAST: 20}, {LAST: 25}).starts == {LAST: 20}  # retention was faster than the export


def test_a_run_that_was_cut_off_before_its_commit_is_done_again(spark: SparkSession, tmp_path: Path) -> None:
    files = FileSystem(spark, str(tmp_path))
    cut_off = ExportRun(files, {LAST: 0}, {LAST: 10})
    _write(tmp_path / cut_off.staging, {"date=1/a.parquet": "half"})
    move_committed(files)
    again = ExportRun(files, {LAST: 0}, {LAST: 99})
    assert (again.starts, again.ends, again.staging) == ({LAST: 0}, {LAST: 10}, cut_off.staging)
    assert not (tmp_path / again.staging).exists()
    assert not (tmp_path / "date=1").exists()


def test_a_run_that_was_cut_off_behind_its_commit_is_finished(spark: SparkSession, tmp_path: Path) -> None:
    files = FileSystem(spark, str(tmp_path))
    cut_off = ExportRun(files, {LAST: 0}, {LAST: 10})
    _write(tmp_path / cut_off.staging, {"date=1/a.parquet": "a", "date=1/b c.parquet": "b", "_SUCCESS": ""})
    cut_off.commit()
    (tmp_path / "date=1").mkdir()
    (tmp_path / cut_off.staging / "date=1/a.parquet").rename(tmp_path / "date=1/a.parquet")
    for _ in range(2):
        move_committed(FileSystem(spark, str(tmp_path)))
    assert {path.name: path.read_text() for path in (tmp_path / "date=1").glob("*.parquet")} == {
        "a.parquet": "a",
        "b c.parquet": "b",
    }
    assert not (tmp_path / cut_off.staging).exists()


def test_a_directory_of_other_settings_or_of_something_else_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    files = FileSystem(spark, str(tmp_path / "out"))
    claim_directory(files, {"topic": "t", "partition_by": "date"}, overwrite=False)
    claim_directory(files, {"topic": "t", "partition_by": "date"}, overwrite=False)
    _write(tmp_path / "out", {"_checkpoint/offsets/0": "1"})
    with pytest.raises(JobError, match="other settings: partition_by was date, now topic; --overwrite replaces it"):
        claim_directory(files, {"topic": "t", "partition_by": "topic"}, overwrite=False)
    _write(tmp_path / "foreign", {"precious": "data"})
    with pytest.raises(JobError, match="exists and is not an export"):
        claim_directory(FileSystem(spark, str(tmp_path / "foreign")), {}, overwrite=False)


def test_a_run_that_failed_before_its_first_record_leaves_the_settings_open(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = FileSystem(spark, str(tmp_path / "out"))
    claim_directory(files, {"topic": "wrong"}, overwrite=False)
    _write(tmp_path / "out", {"_checkpoint/metadata": "the id of a stream"})
    claim_directory(files, {"topic": "right"}, overwrite=False)
    assert json.loads(files.read("_checkpoint/export.json")) == {"topic": "right"}
    assert not files.exists("_checkpoint/metadata")


def _write(directory: Path, contents: Mapping[str, str]) -> None:
    for name, text in contents.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
