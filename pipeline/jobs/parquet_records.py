"""Parquet as records that can be sent: what `export` has written, or files of other tools.

| column | type | where it is missing |
|---|---|---|
| value | binary or string | it is needed |
| key | binary or string | the records have no keys |
| headers | array of struct key string, value binary | the records have no headers |
| topic | string | the records are of one topic, whose name is empty |
| partition | integer | null |
| offset | integer | the file and the number of the row in it: files follow each other by their paths |

Other columns are left out. A column may also be directories, such as `topic=trips`. One that only some files have is
null for the rows of the others.
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
}  # of a topic, too, the type is looked at when it is read: of the directory topic=7 Spark says that it is a number
_READ = f"key binary, value binary, headers {_HEADERS}, topic string, partition bigint, offset bigint"
_NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"


def stored_records(spark: SparkSession, directory: str, needed: tuple[str, ...] = ()) -> DataFrame:
    """The columns of the table above, all six, with `offset` as a struct where there are no offsets.

    Raises `JobError` where a column is of another type, or there is no `value` or none of the columns `needed`; what is
    wrong with one file alone is told by Spark when it is read, with the names of the file and the column.
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
    """That of one of the files, as Spark infers it, with the columns that are directories."""
    from pyspark.errors import AnalysisException

    before = spark.conf.get(_NANOSECONDS)
    spark.conf.set(_NANOSECONDS, "true")  # times as pandas writes them, which we do not read, would be an error
    try:
        return spark.read.parquet(directory).schema
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        raise JobError(f"{directory} has no Parquet; if its directories have, name them: '{directory}/*'") from None
    finally:
        spark.conf.set(_NANOSECONDS, str(before))
