"""Parquet files as records to send: the output of `export`, or files of other tools.

| column | type | if it is missing |
|---|---|---|
| value | binary or string | an error |
| key | binary or string | the records have no keys |
| headers | array of struct key string, value binary | the records have no headers |
| topic | string | an empty name |
| partition | integer | null |
| offset | integer | file path and row number give the order |

Other columns are ignored. A column may also be a directory name, such as `topic=trips`. A column that only some files
have is null in the rows of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipeline.jobs import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_BYTES = ("binary", "string")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_HEADERS = "array<struct<key:string,value:binary>>"
_TYPES = {
    "key": _BYTES,
    "value": _BYTES,
    "headers": (_HEADERS,),
    "partition": _INTEGERS,
    "offset": _INTEGERS,
}  # not of `topic`: Spark infers a number for the directory topic=7
_READ = f"key binary, value binary, headers {_HEADERS}, topic string, partition bigint, offset bigint"
_NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"


def stored_records(spark: SparkSession, directory: str, needed: tuple[str, ...] = ()) -> DataFrame:
    """Return the six columns of the table above; `offset` is a struct if the files have no offsets.

    Raises `JobError` if a column has another type, or if `value` or one of the columns `needed` is missing. Spark
    reports an error in a single file when it reads it, with the names of the file and the column.
    """
    from pyspark.sql import functions as f

    schema = _schema(spark, directory)
    missing = [name for name in ("value", *needed) if name not in schema.names]
    if missing:
        raise JobError(f"{directory} has no column {', '.join(missing)}, only {', '.join(schema.names)}")
    for name, types in _TYPES.items():
        given = schema[name].dataType.simpleString() if name in schema.names else types[0]
        if given not in types:
            raise JobError(f"{directory}: column {name} must be {' or '.join(types)}, not {given}")
    records = spark.read.schema(_READ).parquet(directory)
    place = f.struct("_metadata.file_path", "_metadata.row_index")
    return records.select(
        "key",
        "value",
        "headers",
        f.coalesce("topic", f.lit("")).alias("topic"),
        f.col("partition").cast("int"),
        (f.col("offset") if "offset" in schema.names else place).alias("offset"),
    )


def _schema(spark: SparkSession, directory: str) -> StructType:
    """Return the schema of one of the files, as Spark infers it, with columns of directory names."""
    from pyspark.errors import AnalysisException

    before = spark.conf.get(_NANOSECONDS)
    spark.conf.set(_NANOSECONDS, "true")  # otherwise timestamps of pandas are an error, though they are not read
    try:
        return spark.read.parquet(directory).schema
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        raise JobError(f"{directory} contains no Parquet; if its subdirectories do, use '{directory}/*'") from None
    finally:
        spark.conf.set(_NANOSECONDS, str(before))
