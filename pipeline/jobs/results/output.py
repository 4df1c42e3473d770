"""Where a job's result goes: a directory that is empty, or that `--overwrite` gives up, in one of three formats.

Parquet is Spark's own. Delta and Iceberg are packages, each release of which is made for one Spark; none that fits
PySpark 4.3 was there when this was written, so a session that lacks them is told before the job begins. The newest of
Delta fits PySpark 4.2, under which the pipeline runs, too; that of Iceberg PySpark 4.1, which has not all that our
streams need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.results.filesystem import FileSystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ("parquet", "delta", "iceberg")

_SOURCES = {
    "delta": ("io.delta.sql.DeltaSparkSessionExtension", "io.delta:delta-spark_4.2_2.13:4.4.0", "4.2"),
    "iceberg": (
        "org.apache.iceberg.spark.SparkCatalog",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "4.1",
    ),
}


def prepare_output(spark: SparkSession, directory: str, *, overwrite: bool) -> FileSystem:
    """The directory, which is then not there. Raises `JobError` if it is and may not be replaced."""
    files = FileSystem(spark, directory)
    if files.exists() and files.names():
        if not overwrite:
            raise JobError(f"{directory} exists; --overwrite replaces it")
        files.delete()
    return files


def check_format(spark: SparkSession, name: str) -> None:
    """Raise `JobError` where the session has no package for the format."""
    if name not in _SOURCES:
        return
    class_name, package, made_for = _SOURCES[name]
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - only the JVM knows its classes
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(class_name)
    except Py4JJavaError:
        raise JobError(
            f"this session has no package for {name}. The newest that we know of is {package}, for Spark {made_for},"
            f" and this is Spark {spark.version}. docs/pipeline.md says what fits, and how to give it to a session"
        ) from None
