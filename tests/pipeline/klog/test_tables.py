"""Tables of a catalog: `CREATE TABLE … USING klog OPTIONS (…)`. The log directory is only read, also by DROP TABLE."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.pipeline.klog.readings import GOLDEN

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NAME = "files"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A copy, because a mistake in Spark's catalog could delete it; its name has characters that a URI encodes."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "logs of ä%20"))


@pytest.fixture
def create(spark: SparkSession) -> Iterator[Callable[[str], str]]:
    """A function that creates a table and returns its name. The table is dropped at the end."""

    def table(definition: str) -> str:
        spark.sql(f"CREATE TABLE {NAME} USING klog {definition}")
        return NAME

    yield table
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")


@pytest.mark.parametrize(
    "clauses", ["OPTIONS (path '{}', subscribe 'rolled')", "OPTIONS (subscribe 'rolled') LOCATION '{}'"]
)
def test_a_table_has_the_rows_of_its_log_directory(
    spark: SparkSession, log_dir: Path, create: Callable[[str], str], clauses: str
) -> None:
    files = {path: path.read_bytes() for path in log_dir.rglob("*") if path.is_file()}
    name = create(clauses.format(log_dir))
    rows = spark.table(name)
    assert rows.dtypes == spark.read.format("klog").load(str(log_dir)).dtypes
    assert rows.where("offset >= 9000 and offset < 9010").count() == 10
    last = '{"rolled":{"0":19000}}'
    assert spark.sql(f"SELECT * FROM {name} WITH (startingOffsets = '{last}')").count() == 1000
    with pytest.raises(PySparkException, match=r"format\(\"klog\"\) only reads, because a broker owns the files"):
        spark.sql(f"INSERT INTO {name} SELECT * FROM {name}")
    spark.sql(f"DROP TABLE {name}")
    assert {path: path.read_bytes() for path in log_dir.rglob("*") if path.is_file()} == files


def test_the_options_of_a_table_determine_its_columns(
    spark: SparkSession, log_dir: Path, create: Callable[[str], str]
) -> None:
    name = create(f"OPTIONS (path '{log_dir}', includeHeaders 'true', mode 'PERMISSIVE')")
    assert spark.table(name).columns[-2:] == ["headers", "_corrupt_record"]
    assert spark.table(name).where("_corrupt_record IS NOT NULL").count() == 0


def test_the_schema_of_a_table_has_no_effect_on_another_query(
    spark: SparkSession, log_dir: Path, create: Callable[[str], str]
) -> None:
    schema = spark.table(create(f"OPTIONS (path '{log_dir}', subscribe 'rolled')")).schema
    assert spark.read.format("klog").schema(schema).option("subscribe", "codec-lz4").load(str(GOLDEN)).count() == 200


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("OPTIONS (subscribe 'rolled')", "needs a log directory: .*path"),
        ("OPTIONS (path '{}', minPartitions 'x')", "minpartitions is 'x'"),
        ("OPTIONS (path '{}', topic 'rolled')", "option 'topic' is not supported"),
    ],
)
def test_a_wrong_option_is_refused_when_the_table_is_created(
    log_dir: Path, create: Callable[[str], str], definition: str, message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        create(definition.format(log_dir))
