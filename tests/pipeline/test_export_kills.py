"""An export whose process is killed with -9 in the middle, and run again: each record is in the files once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from broker.storage.log_config import LogConfig
from pipeline.jobs import run
from pipeline.taxi.own_broker import environment
from tests.peers import odradek
from tests.storage.logs import TOPIC_ID, append, open_log_dir

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PARTITIONS = 3
COUNT = 3000
_LOOKED_EVERY_S = 0.02


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    written = open_log_dir(tmp_path / "log")
    for index in range(PARTITIONS):
        log = written.create_log("t", index, TOPIC_ID, LogConfig())
        for number in range(index, COUNT, PARTITIONS):
            append(log, b"%d" % number)
        log.advance_high_watermark(log.log_end_offset)
    written.close()
    return tmp_path / "log"


def test_an_export_of_a_log_directory(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    export = ["export", "--log-dir", str(log_dir), "--topic", "t", "--output", str(output)]
    kill_when_there(export, output / "_staging" / "0")
    assert not (output / "_checkpoint" / "commits" / "0").exists()
    assert_whole(spark, export, output)


def test_an_export_of_a_topic(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    server = odradek.prepare(tmp_path).start()
    output = tmp_path / "out"
    export = ["export", "--bootstrap-server", server.bootstrap, "--topic", "t", "--output", str(output)]
    export += ["--option", "maxOffsetsPerTrigger=500"]
    commits = output / "_checkpoint" / "commits"
    try:
        kill_when_there(export, commits / "1")
        assert not (commits / "5").exists()
        assert_whole(spark, export, output)
    finally:
        server.stop()


def kill_when_there(job: list[str], sign: Path) -> None:
    """Run a job as a process of its own, and kill it with all that it has started as soon as there is such a file."""
    command = [sys.executable, "-m", "pipeline", *job, "--master", "local[2]"]
    process = subprocess.Popen(command, env=environment(), start_new_session=True)
    try:
        while not sign.exists():
            try:
                raise AssertionError(f"it ended with {process.wait(_LOOKED_EVERY_S)}")
            except subprocess.TimeoutExpired:
                continue
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def assert_whole(spark: SparkSession, export: list[str], output: Path) -> None:
    """Running it again, and once more, leaves every record in the files once."""
    for _ in range(2):
        assert run(export) == 0
        values = spark.read.parquet(str(output)).selectExpr("cast(cast(value as string) as int) as number").collect()
        assert sorted(row.number for row in values) == list(range(COUNT))
