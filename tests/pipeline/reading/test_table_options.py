"""Tables of a catalog: `CREATE TABLE … USING broker OPTIONS (…)`, beside the same with Spark's connector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.pipeline.tables import assert_same, send

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("kind", ["odradek"])]

COUNT = 20


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[Callable[..., str]]:
    """A function that creates a table of a format and returns its name. The tables are dropped at the end."""
    created = []

    def create(source: str, bootstrap: str, **options: object) -> str:
        name = f"{source}_{len(created)}"
        given = {"kafka.bootstrap.servers": bootstrap, **options}
        written = ", ".join(f"`{option}` '{value}'" for option, value in given.items())
        spark.sql(f"CREATE TABLE {name} USING {source} OPTIONS ({written})")
        created.append(name)
        return name

    yield create
    for name in created:
        spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def topic(bootstrap: str, make_topic: Callable[..., str]) -> str:
    name = make_topic(2)
    send(bootstrap, name, [(number % 2, 1000 + number, b"k", b"%d" % number, []) for number in range(COUNT)])
    return name


@pytest.mark.parametrize("headers", ["false", "true"])
def test_a_table_has_the_rows_of_the_same_table_of_the_connector(
    spark: SparkSession, bootstrap: str, topic: str, tables: Callable[..., str], headers: str
) -> None:
    ours, theirs = (
        tables(source, bootstrap, subscribe=topic, startingOffsets="earliest", includeHeaders=headers)
        for source in ("broker", "kafka")
    )
    found = spark.table(ours)
    plain = spark.createDataFrame(found.rdd, spark.table(theirs).schema)  # without the metadata of columns
    assert found.dtypes == spark.table(theirs).dtypes
    assert assert_same(plain, spark.table(theirs)) == COUNT
    assert spark.sql(f"SELECT count(*) AS n FROM {ours} WHERE partition = 1").first().n == COUNT // 2


def test_options_of_a_query_override_those_of_the_table(
    spark: SparkSession, bootstrap: str, topic: str, tables: Callable[..., str]
) -> None:
    name = tables("broker", bootstrap, subscribe=topic)
    assert spark.sql(f"SELECT * FROM {name} WITH (startingTimestamp = '1010')").count() == COUNT - 10


def test_a_table_is_read_as_a_stream(
    spark: SparkSession, bootstrap: str, topic: str, tables: Callable[..., str], tmp_path: Path, checkpoint: str
) -> None:
    name = tables("broker", bootstrap, subscribe=topic, startingOffsets="earliest")
    writer = spark.readStream.table(name).writeStream.format("parquet").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    query.awaitTermination()
    assert spark.read.parquet(str(tmp_path / "out")).count() == COUNT


def test_the_schema_of_a_table_has_no_effect_on_another_query(
    spark: SparkSession, bootstrap: str, topic: str, make_topic: Callable[..., str], tables: Callable[..., str]
) -> None:
    name = tables("broker", bootstrap, subscribe=topic)
    reader = spark.read.format("broker").schema(spark.table(name).schema)
    other = f"{topic}-other"
    send(bootstrap, other, [(0, 1000, b"k", b"v", [])])
    assert reader.option("kafka.bootstrap.servers", bootstrap).option("subscribe", other).load().count() == 1


def test_a_wrong_option_is_refused_when_the_table_is_created(
    bootstrap: str, topic: str, tables: Callable[..., str]
) -> None:
    with pytest.raises(PySparkException, match=r"isolation\.level is 'none'"):
        tables("broker", bootstrap, **{"subscribe": topic, "isolation.level": "none"})


def test_neither_format_allows_insert_into(
    spark: SparkSession, bootstrap: str, topic: str, tables: Callable[..., str]
) -> None:
    for source in ("broker", "kafka"):
        name = tables(source, bootstrap, subscribe=topic, topic=topic)
        with pytest.raises(PySparkException, match=r"INSERT INTO a table is not supported|NOT_ALLOWED"):
            spark.sql(f"INSERT INTO {name} (value) SELECT cast('v' AS binary)")
