"""The three formats of a result.

Spark includes Parquet. Delta and Iceberg are packages, and each of their releases is built for one Spark. There was
none for PySpark 4.3 when this was written, so a session without the package is reported before the job starts. The
newest Delta is for PySpark 4.2, which the pipeline also supports; the newest Iceberg is for PySpark 4.1, which lacks
parts that our streams need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipeline.jobs import JobError

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


def check_format(spark: SparkSession, name: str) -> None:
    """Raise `JobError` if the session has no package for the format."""
    if name not in _SOURCES:
        return
    class_name, package, made_for = _SOURCES[name]
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - only the JVM knows its classes
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(class_name)
    except Py4JJavaError:
        raise JobError(
            f"this session has no package for {name}. The newest known is {package}, for Spark {made_for},"
            f" and this is Spark {spark.version}. docs/pipeline.md says how to add one to a session"
        ) from None
