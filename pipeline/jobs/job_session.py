"""The Spark session of a job: created and stopped, or the existing session of the process.

```
check for Java ─► create the session, which sends the code to workers ─► run the job ─► stop the session
```
On a terminal Spark's own progress bar shows the number of finished tasks.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.client.cli.output.terminal import is_terminal
from odradek.pipeline.jobs import JobError
from odradek.pipeline.spark.error_cause import cause_of
from odradek.pipeline.spark.spark_session import check_requirements, register, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GATEWAY = "java_gateway"  # the module of Py4J that calls the JVM
_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # PySpark logs errors of queries here


@contextmanager
def spark_session_for(job: str, arguments: argparse.Namespace) -> Iterator[SparkSession]:
    """Yield a session with the settings of `--master` and `--conf`, and stop it. Raises `JobError` for Spark's errors.

    If the process has a session already, as in a notebook, yield that one and do not stop it. Raises
    RequirementMissingError if Spark cannot run.
    """
    check_requirements()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    settings = {"spark.ui.showConsoleProgress": str(is_terminal(sys.stderr)).lower(), **dict(arguments.conf)}
    spark = SparkSession.getActiveSession()
    is_ours = spark is None
    if is_ours:
        logging.getLogger().addFilter(is_not_from_py4j)
    error_loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS] if is_ours else []
    for logger in error_loggers:
        logger.disabled = True
    try:
        if spark is not None:
            register(spark)
        spark = spark or session(app_name=f"odradek-{job}", master=arguments.master, config=settings, reports=False)
        if is_ours:
            spark.sparkContext.setLogLevel("OFF")  # a job prints its error in one line
        yield spark
    except (PySparkException, Py4JError) as error:
        raise JobError(cause_of(error)) from error
    finally:
        if is_ours and spark is not None:
            spark.stop()
        logging.getLogger().removeFilter(is_not_from_py4j)
        for logger in error_loggers:
            logger.disabled = False


def is_not_from_py4j(record: logging.LogRecord) -> bool:
    """Filter of the root logger: suppress the stack trace that Py4J logs after Ctrl-C."""
    return record.module != _GATEWAY
