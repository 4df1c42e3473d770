"""`--overwrite`: the earlier result stays until the new one is complete, and only results of jobs are deleted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.pipeline.jobs import JobError, run
from odradek.pipeline.jobs.results.replacement import MARKER, new_result, put_aside
from tests.pipeline.jobs.test_export_log_dir import Killed, kill_at, write

pytestmark = pytest.mark.spark


def values_in(output: Path) -> list[str]:
    return [path.read_text() for path in sorted(output.glob("*.parquet"))]


def write_result(spark: SparkSession, output: Path, text: str, *, overwrite: bool = False, times: int = 1) -> None:
    with new_result(spark, str(output), "compact", overwrite=overwrite) as directory:
        path = Path(directory.removeprefix("file:"))
        for _ in range(times):
            path.mkdir(parents=True)
            (path / "part.parquet").write_text(text)


def test_a_result_is_replaced_only_with_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    output = tmp_path / "out"
    write_result(spark, output, "first")
    with pytest.raises(JobError, match="out exists; --overwrite replaces it"):
        write_result(spark, output, "second")
    write_result(spark, output, "second", overwrite=True)
    assert values_in(output) == ["second"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_a_result_that_fails_leaves_the_earlier_one(spark: SparkSession, tmp_path: Path) -> None:
    write_result(spark, tmp_path / "out", "first")
    with pytest.raises(FileExistsError):
        write_result(spark, tmp_path / "out", "second", overwrite=True, times=2)
    assert values_in(tmp_path / "out") == ["first"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.parametrize("foreign", ["notes.txt", "t-0/00000000000000000000.log", "log/meta.properties"])
def test_what_no_job_wrote_is_not_deleted(foreign: str, spark: SparkSession, tmp_path: Path) -> None:
    output = tmp_path / "out"
    (output / foreign).parent.mkdir(parents=True)
    (output / foreign).touch()
    with pytest.raises(JobError, match=f"is not the result of a job: it has neither {MARKER} nor"):
        write_result(spark, output, "new", overwrite=True)
    shutil.rmtree(output)
    write_result(spark, output, "first")
    (output / foreign).parent.mkdir(parents=True, exist_ok=True)
    (output / foreign).touch()
    with pytest.raises(JobError, match=f"no job wrote {output}/{foreign}, so {output} is not deleted"):
        write_result(spark, output, "new", overwrite=True)
    assert values_in(output) == ["first"]
    foreign_staging = tmp_path / "_new.staging"
    foreign_staging.mkdir()
    (foreign_staging / "precious").touch()
    with pytest.raises(JobError, match=r"_new\.staging is not of a job"):
        write_result(spark, tmp_path / "new", "new", overwrite=True)
    assert (foreign_staging / "precious").exists()


def test_a_kill_at_each_write_leaves_the_earlier_result_or_the_new_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    for number in range(1, 100):
        output = tmp_path / str(number) / "out"
        write_result(spark, output, "first")
        with monkeypatch.context() as patch:
            was_killed = kill_at(number, patch)
            try:
                write_result(spark, output, "second", overwrite=True)
            except Killed:
                pass
        with pytest.raises(JobError, match="exists; --overwrite replaces it"):
            write_result(spark, output, "third")
        seen.add(tuple(values_in(output)))
        assert [path.name for path in output.parent.iterdir()] == ["out"]
        if not was_killed():
            break
    assert seen == {("first",), ("second",)}
    assert number > 5


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., int]:
    def run_job(name: str, output: Path, *flags: str) -> int:
        return run([name, "--log-dir", str(tmp_path / "data" / "log"), "--topic", "t", "--output", str(output), *flags])

    return run_job


@pytest.mark.parametrize("name", ["export", "compact", "restore"])
@pytest.mark.parametrize("flags", [["--overwrite"], []])
def test_the_log_directory_is_never_an_output(
    name: str, flags: list[str], job: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = tmp_path / "data" / "log"
    write(log_dir, "a")
    before = sorted(tmp_path.rglob("*"))
    (tmp_path / "link").symlink_to(log_dir)
    for output in (log_dir, tmp_path / "data", log_dir / "out", log_dir / ".." / "log", tmp_path / "link"):
        assert job(name, output, *flags) == 1
        assert "log" in capsys.readouterr().err.splitlines()[-1]
    (tmp_path / "link").unlink()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["export", "compact", "restore"])
def test_a_job_that_fails_with_overwrite_leaves_the_earlier_result(
    name: str, spark: SparkSession, job: Callable[..., int], tmp_path: Path
) -> None:
    log_dir, output = tmp_path / "data" / "log", tmp_path / "out"
    write(log_dir, "a")
    flags = [] if name == "export" else ["--whole-log"] if name == "compact" else []
    assert job(name, output, *flags) == 0
    before = spark.read.parquet(str(output)).collect()
    assert len(before) == 1
    write(log_dir, "b")
    segment = log_dir / "t-0" / "00000000000000000000.log"
    sound = segment.read_bytes()
    segment.write_bytes(sound[:-1] + b"x")
    assert job(name, output, *flags, "--overwrite") == 1
    assert spark.read.parquet(str(output)).collect() == before
    assert not list(tmp_path.glob("_out*"))
    segment.write_bytes(sound)
    assert job(name, output, *flags, "--overwrite") == 0
    assert spark.read.parquet(str(output)).count() == (2 if name == "export" else 1)


def test_the_example_deletes_only_its_own_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "log", "a")
    assert run(["run", "taxi", "--output", str(tmp_path / "log"), "--overwrite"]) == 1
    assert f"is not the result of this job, which has {MARKER}" in capsys.readouterr().err
    assert (tmp_path / "log" / "t-0").is_dir()


def test_a_second_job_on_an_output_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    output = tmp_path / "out"
    (tmp_path / "link").symlink_to(output)
    refused = r"another job writes to \S+: run this one when it has ended"
    with new_result(spark, str(output), "compact", overwrite=False) as directory:
        for same in (output, tmp_path / "link", f"file:{tmp_path}/./out"):
            with pytest.raises(JobError, match=refused), put_aside(spark, str(same), overwrite=True):
                pass
            with (
                pytest.raises(JobError, match=refused),
                new_result(spark, str(same), "compact", overwrite=True),
            ):
                pass
        write_result(spark, tmp_path / "other", "other")
        path = Path(directory.removeprefix("file:"))
        path.mkdir(parents=True)
        (path / "part.parquet").write_text("first")
    assert values_in(output) == ["first"]
    write_result(spark, output, "second", overwrite=True)
    assert values_in(output) == ["second"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "other", "out"]


def test_the_lock_of_a_killed_job_is_no_obstacle(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "_out.lock").touch()
    write_result(spark, tmp_path / "out", "first")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
