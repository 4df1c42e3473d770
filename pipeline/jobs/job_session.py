"""The Spark session that a job runs in: made, or the one that is there already, and stopped at the end.

```
is there a Java? ─► session ─► the code is sent to the workers ─► the job ─► the session stops
```
On a terminal Spark's own bar shows how many tasks are done.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from odradek.client.cli.output.terminal import is_terminal
from odradek.pipeline.jobs import JobError
from odradek.pipeline.spark.spark_session import check_requirements, is_submitted, register, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = "local"
_GATEWAY = "java_gateway"  # the module of Py4J that sends what Python asks of the JVM
_QUERY_CONTEXTS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # PySpark tells them a query's error as JSON
_CALLING = "An error occurred while calling"  # what Py4J puts before an exception of the JVM


@contextmanager
def spark_for(job: str, arguments: argparse.Namespace) -> Iterator[SparkSession]:
    """A session as `--master` and `--conf` say, stopped at the end. Raises `JobError`, also for what Spark raises.

    Where the process has a session already, as a notebook does, it is that one, and goes on. Raises
    RequirementMissingError where Spark cannot run.
    """
    check_requirements()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    settings = {"spark.ui.showConsoleProgress": str(is_terminal(sys.stderr)).lower(), **dict(arguments.conf)}
    spark = SparkSession.getActiveSession()
    is_ours = spark is None
    archives = TemporaryDirectory()  # workers fetch the archive when they begin, so it stays as long as the session
    if is_ours:
        logging.getLogger().addFilter(is_for_users)
    query_contexts = [PySparkLogger.getLogger(name) for name in _QUERY_CONTEXTS] if is_ours else []
    for logger in query_contexts:
        logger.disabled = True
    try:
        if spark is not None:
            register(spark)
        spark = spark or session(app_name=f"odradek-{job}", master=arguments.master, config=settings)
        if is_ours:
            spark.sparkContext.setLogLevel("OFF")  # what ends a job is told in a line, without Java's stacks
        _send_code(spark, Path(archives.name))
        yield spark
    except (PySparkException, Py4JError) as error:
        raise JobError(cause_of(error)) from error
    finally:
        if is_ours and spark is not None:
            spark.stop()
        logging.getLogger().removeFilter(is_for_users)
        for logger in query_contexts:
            logger.disabled = False
        archives.cleanup()


def _send_code(spark: SparkSession, directory: Path) -> None:
    """Workers on other machines get our packages; what these need must be installed there (docs/pipeline.md)."""
    if is_submitted() or str(spark.sparkContext.master).startswith(_LOCAL):  # spark-submit was given it, by --py-files
        return
    from odradek.pipeline.jobs.package import write_package

    archive = directory / "odradek.zip"
    write_package(archive)
    spark.sparkContext.addPyFile(str(archive))


def is_for_users(record: logging.LogRecord) -> bool:
    """A filter of the root logger: whoever ends a job by Ctrl-C need not see where Py4J was waiting for an answer."""
    return record.module != _GATEWAY


def cause_of(error: Exception) -> str:
    """What a person should read of an exception of Spark's, which repeats a worker's traceback at length."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    starts = [number for number, line in enumerate(lines) if "Traceback (most recent call" in line]
    if starts:
        for line in lines[starts[-1] + 1 :]:
            if not line.startswith((" ", "\t")):
                return line.strip()
    if lines[0].startswith(_CALLING) and len(lines) > 1:
        return lines[1].removeprefix(": ")
    return lines[0]
