"""An export that is killed with SIGKILL and run again: each record is in the files once.

Of a topic it runs in an executor of its own, a Java machine beside the driver's, which is killed first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from odradek.broker.storage.log_config import LogConfig
from odradek.pipeline.jobs import run
from odradek.pipeline.taxi.processes import environment
from tests.peers import odradek
from tests.pipeline.quick_start import QUICK_START
from tests.pipeline.spark_cluster import SparkCluster
from tests.storage.logs import TOPIC_ID, append, open_log_dir

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PARTITIONS = 3
COUNT = 3000
ONE_EXECUTOR = "local-cluster[1,2,512]"
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


def test_a_killed_export_of_a_log_directory(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    export = ["export", "--log-dir", str(log_dir), "--topic", "t", "--output", str(output)]
    with started([*export, "--master", "local[2]"]) as driver:
        wait_for(output / "_staging" / "0", driver)
    assert not (output / "_checkpoint" / "commits" / "0").exists()
    assert_whole(spark, export, output)


def test_a_killed_export_of_a_topic(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    server = odradek.prepare(tmp_path).start()
    output = tmp_path / "out"
    export = ["export", "--bootstrap-server", server.bootstrap, "--topic", "t", "--output", str(output)]
    export += ["--option", "maxOffsetsPerTrigger=1000"]
    commits = output / "_checkpoint" / "commits"
    try:
        with started([*export, "--master", ONE_EXECUTOR, "--conf", "spark.executor.memory=512m"]) as driver:
            cluster = SparkCluster(ONE_EXECUTOR, [driver.pid])
            wait_for(commits / "0", driver)
            first = cluster.executors()
            os.kill(first[0], signal.SIGKILL)
            wait_for(commits / "1", driver)
            assert cluster.executors() != first
        assert not (commits / "2").exists()
        assert_whole(spark, export, output)
    finally:
        server.stop()


@contextmanager
def started(job: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a job as a process; kill it and its child processes when the `with` ends."""
    command = [sys.executable, "-m", "odradek.pipeline", *job, *QUICK_START]
    process = subprocess.Popen(command, env=environment(), start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(sign: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until such a file exists."""
    while not sign.exists():
        try:
            raise AssertionError(f"it ended with {process.wait(_LOOKED_EVERY_S)}")
        except subprocess.TimeoutExpired:
            continue


def assert_whole(spark: SparkSession, export: list[str], output: Path) -> None:
    """Run the export twice more, and check that the files contain every record once."""
    for _ in range(2):
        assert run(export) == 0
        values = spark.read.parquet(str(output)).selectExpr("cast(cast(value as string) as int) as number").collect()
        assert sorted(row.number for row in values) == list(range(COUNT))
