"""`run taxi`: run the steps of the example, print each, and compare the totals at the end.

```
1 produce    send trips, late events and corrections, in the order of time
2 stream     start the stream as a process, and kill it (SIGKILL, with its child processes) in the middle
3 resume     run the same command again: it continues from its checkpoints
4 check      compare the Parquet files, and the state restored from the compacted topic, with the expected totals
```
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipeline.jobs import FAILED, JobError
from odradek.pipeline.jobs.job_session import spark_session_for
from odradek.pipeline.jobs.results.replacement import MARKER
from odradek.pipeline.jobs.results.summary import Summary, print_status
from odradek.pipeline.taxi.processes import environment, own_broker
from odradek.pipeline.taxi.revenue import REVENUE
from odradek.pipeline.taxi.topics import fill
from odradek.pipeline.taxi.trips import Trips
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Totals = dict[tuple[str, int], int]
"""Cents by zone and the start of the hour (seconds since 1970)."""

_STREAM = "stream"
_BATCHES = 5  # of the trips, so that the stream can be killed between them
_POLL_INTERVAL_S = 0.1


def run_example(arguments: argparse.Namespace) -> int:
    """Run the example; return 0 if the totals agree. Raises `JobError`, `OSError`."""
    directory = _empty_directory(Path(arguments.output), overwrite=arguments.overwrite)
    summary = Summary("taxi")
    trips = Trips(arguments.trips, arguments.seed)
    with _cluster(arguments, directory) as bootstrap_server:
        records, late = pluralize(len(trips), "record", spec=","), f"{trips.late:,} of them late"
        print_status(f"1 produce: {records}, {late}, {pluralize(trips.corrections, 'correction', spec=',')}")
        asyncio.run(fill(bootstrap_server, trips, overwrite=arguments.overwrite))
        _stream(arguments, bootstrap_server, directory / _STREAM, len(trips) // _BATCHES)
        with spark_session_for("taxi", arguments) as spark:
            print_status("4 check")
            files = totals_of(spark.read.parquet(str(directory / _STREAM / "revenue")))
            held = totals_of(_restored(spark, bootstrap_server))
    agree = _compare("the Parquet files", files, trips.totals) & _compare("the state topic", held, trips.totals)
    counts = {"records": len(trips), "windows": len(files), "revenue_cents": sum(files.values()), "agree": agree}
    summary.print(counts, as_json=arguments.json)
    return 0 if agree else FAILED


def totals_of(rows: DataFrame) -> Totals:
    """Return the rows of `revenue` as totals. Raises `JobError` if an hour of a zone occurs twice."""
    from pyspark.sql import functions as f

    found = rows.select("zone", f.col("hour").cast("bigint").alias("hour"), "cents").collect()
    totals = {(row.zone, row.hour): row.cents for row in found}
    if len(totals) != len(found):
        raise JobError(f"{pluralize(len(found) - len(totals), 'window was', 'windows were')} written twice")
    return totals


def _restored(spark: SparkSession, bootstrap_server: str) -> DataFrame:
    from odradek.pipeline.jobs.restore import as_table, state

    options = {"kafka.bootstrap.servers": bootstrap_server, "subscribe": REVENUE}
    records = spark.read.format("broker").options(**options).load()
    return as_table(state(records), value_schema="zone STRING, hour BIGINT, cents BIGINT")


def _compare(name: str, found: Totals, expected: Totals) -> bool:
    wrong = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
    if not wrong:
        print_status(
            f"  {name}: all {pluralize(len(found), 'window agrees', 'windows agree', spec=',')} with the generator"
        )
        return True
    for key in sorted(wrong)[:10]:
        print_status(f"  {name}: {key} has {found.get(key)} cents, the generator {expected.get(key)}")
    print_status(f"  {name}: {len(wrong)} of {pluralize(len(expected), 'window')} differ")
    return False


# ------------------------------------------------------------------------------------------------ the stream's process


def _stream(arguments: argparse.Namespace, bootstrap_server: str, directory: Path, per_trigger: int) -> None:
    """Run the stream to its end; kill it once before. Raises `JobError` if it fails."""
    command = [sys.executable, "-m", "odradek.pipeline.taxi.revenue", "--bootstrap-server", bootstrap_server]
    command += ["--output", str(directory), "--per-trigger", str(max(per_trigger, 1))]
    command += [] if arguments.master is None else ["--master", arguments.master]
    command += [part for name, value in arguments.conf for part in ("--conf", f"{name}={value}")]
    if arguments.kill_after:
        print_status(f"2 stream: kill it after {pluralize(arguments.kill_after, 'batch', 'batches')}")
        with _process(command) as stream:
            if _kill_after_batches(stream, directory, arguments.kill_after):
                print_status("  killed")
        print_status("3 resume")
    else:
        print_status("2 stream")
    with _process(command) as stream:
        status = stream.wait()
    if status:
        raise JobError(f"the stream ended with exit status {status}")


def _kill_after_batches(stream: subprocess.Popen[bytes], directory: Path, batches: int) -> bool:
    """Wait for `batches` and kill the process; False if it ended before. Raises `JobError` if it failed."""
    while stream.poll() is None:
        done = [len(list((directory / "checkpoints" / name / "commits").glob("[0-9]*"))) for name in ("files", "state")]
        if min(done) >= batches:
            os.killpg(stream.pid, signal.SIGKILL)  # with its JVM and Python workers
            return True
        time.sleep(_POLL_INTERVAL_S)
    if stream.returncode:
        raise JobError(f"the stream ended with exit status {stream.returncode}")
    print_status("  it ended before it was killed")
    return False


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in a group of its own; kill the group when the `with` ends."""
    process = subprocess.Popen(command, env=environment(), start_new_session=True)  # noqa: S603 - our own command
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# ------------------------------------------------------------------------------------------- the cluster and directory


@contextmanager
def _cluster(arguments: argparse.Namespace, directory: Path) -> Iterator[str]:
    """Yield the bootstrap servers: the given ones, or those of a broker that is started in the directory."""
    if arguments.bootstrap_server is not None:
        yield arguments.bootstrap_server
        return
    with own_broker(directory) as server:
        print_status(f"started a broker at {server}")
        yield server


def _empty_directory(directory: Path, *, overwrite: bool) -> Path:
    """Return an empty directory. Raises `JobError` if it has files that may not be replaced."""
    import shutil

    if directory.exists() and any(directory.iterdir()):
        if not overwrite:
            raise JobError(f"{directory} exists; --overwrite replaces it")
        if not (directory / MARKER).exists():
            raise JobError(f"{directory} is not the result of this job, which has {MARKER}: it is not deleted")
        shutil.rmtree(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MARKER).write_text('{"job": "run taxi"}\n')
    return directory.resolve()
