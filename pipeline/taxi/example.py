"""`run taxi`: every step of the example, each said as it begins, and at the end whether the totals agree.

```
1 produce    trips, late events and corrections, in the order of time
2 stream     a process of its own, which is killed (-9, with everything it has started) in the middle of its work
3 resume     the same command again: it goes on where the checkpoints say
4 check      the Parquet files, and the state restored from the compacted topic, against the generator's totals
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
from odradek.pipeline.jobs.job_session import spark_for
from odradek.pipeline.jobs.results.summary import Summary, say
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
_BATCHES = 5  # that the trips are cut into, so that there is a middle to be killed in
_POLLED_S = 0.1


def run_example(arguments: argparse.Namespace) -> int:
    """Run it as the flags of `odradek.pipeline.jobs.run` say; 0 if the totals agree. Raises `JobError`, `OSError`."""
    directory = _claim(Path(arguments.output), overwrite=arguments.overwrite)
    summary = Summary("taxi")
    trips = Trips(arguments.trips, arguments.seed)
    with _cluster(arguments, directory) as bootstrap_server:
        records, late = pluralize(len(trips), "record", spec=","), f"{trips.late:,} of them late"
        say(f"1 produce: {records}, {late}, {pluralize(trips.corrections, 'correction', spec=',')}")
        asyncio.run(fill(bootstrap_server, trips, overwrite=arguments.overwrite))
        _stream(arguments, bootstrap_server, directory / _STREAM, len(trips) // _BATCHES)
        with spark_for("taxi", arguments) as spark:
            say("4 check")
            files = totals_of(spark.read.parquet(str(directory / _STREAM / "revenue")))
            held = totals_of(_restored(spark, bootstrap_server))
    agree = _compare("the Parquet files", files, trips.totals) & _compare("the state topic", held, trips.totals)
    counts = {"records": len(trips), "windows": len(files), "revenue_cents": sum(files.values()), "agree": agree}
    summary.tell(counts, as_json=arguments.json)
    return 0 if agree else FAILED


def totals_of(rows: DataFrame) -> Totals:
    """The rows of `revenue` as totals. Raises `JobError` if a zone has an hour twice."""
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
        say(f"  {name}: all {pluralize(len(found), 'window is', 'windows are', spec=',')} the generator's")
        return True
    for key in sorted(wrong)[:10]:
        say(f"  {name}: {key} has {found.get(key)} cents, the generator {expected.get(key)}")
    say(f"  {name}: {len(wrong)} of {pluralize(len(expected), 'window')} differ")
    return False


# ------------------------------------------------------------------------------------------------ the stream's process


def _stream(arguments: argparse.Namespace, bootstrap_server: str, directory: Path, per_trigger: int) -> None:
    """Run the stream to its end, and kill it on the way. Raises `JobError` if it fails."""
    command = [sys.executable, "-m", "odradek.pipeline.taxi.revenue", "--bootstrap-server", bootstrap_server]
    command += ["--output", str(directory), "--per-trigger", str(max(per_trigger, 1))]
    command += [] if arguments.master is None else ["--master", arguments.master]
    command += [part for name, value in arguments.conf for part in ("--conf", f"{name}={value}")]
    if arguments.kill_after:
        say(f"2 stream: to be killed after {pluralize(arguments.kill_after, 'batch', 'batches')}")
        with _process(command) as stream:
            if _killed_in_the_middle(stream, directory, arguments.kill_after):
                say("  killed")
        say("3 resume")
    else:
        say("2 stream")
    with _process(command) as stream:
        status = stream.wait()
    if status:
        raise JobError(f"the stream ended with exit status {status}")


def _killed_in_the_middle(stream: subprocess.Popen[bytes], directory: Path, batches: int) -> bool:
    """Wait for so many batches and kill the process; False if it had ended by then. Raises `JobError` if it failed."""
    while stream.poll() is None:
        done = [len(list((directory / "checkpoints" / name / "commits").glob("[0-9]*"))) for name in ("files", "state")]
        if min(done) >= batches:
            os.killpg(stream.pid, signal.SIGKILL)  # its JVM and Python workers, too
            return True
        time.sleep(_POLLED_S)
    if stream.returncode:
        raise JobError(f"the stream ended with exit status {stream.returncode}")
    say("  it had ended before")
    return False


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, which is gone when the `with` ends."""
    process = subprocess.Popen(command, env=environment(), start_new_session=True)  # noqa: S603 - our own command
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# --------------------------------------------------------------------------------------------------- where it all goes


@contextmanager
def _cluster(arguments: argparse.Namespace, directory: Path) -> Iterator[str]:
    """The bootstrap servers: those that were named, or of a broker of our own with its log in the directory."""
    if arguments.bootstrap_server is not None:
        yield arguments.bootstrap_server
        return
    with own_broker(directory) as server:
        say(f"a broker is at {server}")
        yield server


def _claim(directory: Path, *, overwrite: bool) -> Path:
    """An empty directory. Raises `JobError` if there is something in it that may not go."""
    import shutil

    if directory.exists() and any(directory.iterdir()):
        if not overwrite:
            raise JobError(f"{directory} exists; --overwrite replaces it")
        shutil.rmtree(directory)
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()
