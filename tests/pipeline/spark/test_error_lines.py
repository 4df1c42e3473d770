"""In a session of ours, a task and a stream that fail are a few lines on standard error, which name the cause."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

ROOT = Path(__file__).parents[3]

_PROGRAM = """
import logging, sys
from pyspark.errors import PySparkException
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType
from odradek.pipeline import session
from odradek.pipeline.spark.error_lines import shorten_errors

scratch, java = sys.argv[1:]
config = {
    "spark.driver.extraJavaOptions": java,
    "spark.driver.memory": "512m",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}

@udf(StringType())
def wrong(value):
    try:
        raise KeyError("a first error")
    except KeyError as error:
        raise ValueError(f"{value} is wrong\\nin two lines") from error

def fail(part, action):
    print(f"@@ {part}", file=sys.stderr, flush=True)
    try:
        action()
    except PySparkException as error:
        assert "0 is wrong" in str(error), error
    else:
        raise AssertionError(part)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    print("@@ other", file=sys.stderr, flush=True)

spark = session(master="local[1]", config=config, reports=False)
failing = spark.range(1).select(wrong("id"))
fail("Spark's own lines", failing.collect)
logger = logging.getLogger("odradek.pipeline.spark.error_lines")
logger.setLevel(logging.DEBUG)
shorten_errors(spark)
fail("a task at DEBUG", failing.collect)
logger.setLevel(logging.INFO)
session()
fail("a task", failing.collect)
fail("a write", lambda: failing.toDF("v").write.parquet(scratch + "/out"))
fail("a task in Java", lambda: spark.sql("SELECT raise_error('0 is wrong')").collect())
stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().select(wrong("value"))
writer = stream.writeStream.format("noop").queryName("failing").option("checkpointLocation", scratch + "/checkpoint")
fail("a stream", lambda: writer.start().awaitTermination())
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_errors_are_lines_with_the_cause(tmp_path: Path) -> None:
    from tests.peers.java import FOR_SECONDS

    environment = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path), FOR_SECONDS],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=550, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-20000:]
    parts: dict[str, list[str]] = {}
    for part in ended.stderr.split("@@ ")[1:]:
        name, *lines = part.splitlines()
        parts[name] = lines
    for name in ("Spark's own lines", "a task at DEBUG"):
        assert len(parts[name]) > 50, parts[name]
    for name in ("a task", "a write", "a task in Java", "a stream"):
        lines = [line for line in parts[name] if "ResolveWriteToStream" not in line]
        with_cause = [line for line in lines if "0 is wrong" in line]
        assert sum("TaskSetManager: " in line and "Lost task" in line for line in with_cause) == 1, lines
        assert len(with_cause) == (1 if name.startswith("a task") else 2), lines  # 2: the job or stream has a line, too
        assert len(lines) <= len(with_cause) + 1, lines  # "Task 0 in stage … failed 1 times; aborting job"
    assert "stream failing failed: ValueError: 0 is wrong" in parts["a stream"]
