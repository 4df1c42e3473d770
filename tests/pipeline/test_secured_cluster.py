"""`format("broker")` and a job at an Apache Kafka with TLS and SASL, and where Spark shows options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.jobs import run
from tests.peers import secured_server
from tests.peers.secured_server import USERS, SecuredServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.timeout(300)]

SECRET = USERS["admin"]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    kafka = secured_server.prepare("apache", tmp_path_factory.mktemp("secured"))
    kafka.server.start()
    yield kafka
    kafka.server.stop()


def options(kafka: SecuredServer, password: str = SECRET) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "kafka.bootstrap.servers": kafka.address("SASL_SSL"),
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": kafka.ca,
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{module} required username="admin" password="{password}";',
    }


def explained(frame: object) -> str:
    """Every form of a plan, as `explain` and Spark's web interface show it."""
    execution = frame._jdf.queryExecution()  # type: ignore[attr-defined] # noqa: SLF001 - PySpark has no other way
    modes = ("extended", "codegen", "cost", "formatted")
    utils = frame.sparkSession._jvm.PythonSQLUtils  # type: ignore[attr-defined] # noqa: SLF001
    plans = (execution.logical(), execution.analyzed(), execution.optimizedPlan(), execution.executedPlan())
    return "\n".join([*(utils.explainString(execution, mode) for mode in modes), *(one.toString() for one in plans)])


def test_a_sink_a_source_and_a_stream_with_the_options_of_the_connector(
    spark: SparkSession, kafka: SecuredServer, tmp_path: Path
) -> None:
    secured = options(kafka)
    sent = spark.range(100).selectExpr("cast(id as string) as value", "'secured' as topic")
    sent.write.format("broker").options(**secured).mode("append").save()
    ours = spark.read.format("broker").options(**secured, subscribe="secured").load()
    assert sorted(int(row.value) for row in ours.select("value").collect()) == list(range(100))
    theirs = spark.read.format("kafka").options(**secured, subscribe="secured").load()
    assert theirs.count() == 100  # the same options serve Spark's connector
    assert "broker" in explained(ours)
    assert SECRET not in explained(ours)
    stream = spark.readStream.format("broker").options(**secured, subscribe="secured", startingOffsets="earliest")
    writer = stream.load().selectExpr("value", "'copied' as topic").writeStream.format("broker").options(**secured)
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    assert SECRET not in str(query.recentProgress) + str(query.status)
    assert all(SECRET not in one.read_text(errors="replace") for one in tmp_path.rglob("*") if one.is_file())
    copied = spark.read.format("broker").options(**secured, subscribe="copied").load()
    assert copied.count() == 100


def test_a_wrong_password_is_an_error_without_it(spark: SparkSession, kafka: SecuredServer) -> None:
    wrong = options(kafka, "wr0ng password")
    with pytest.raises(Exception, match="AuthenticationFailedError") as raised:
        spark.read.format("broker").options(**wrong, subscribe="secured").load().count()
    assert "the broker refused: Authentication failed" in str(raised.value)
    assert "wr0ng" not in str(raised.value)


def test_a_table_of_the_catalog_refuses_a_secret(spark: SparkSession, kafka: SecuredServer) -> None:
    given = ", ".join(f"'{name}' '{value}'" for name, value in options(kafka).items())
    with pytest.raises(Exception, match=r"kafka\.sasl\.jaas\.config: the catalog would show the value"):
        spark.sql(f"CREATE TABLE secured_table USING broker OPTIONS ({given}, 'subscribe' 'secured')")


def test_a_job_reads_a_file_of_kafkas_tools(
    spark: SparkSession, kafka: SecuredServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    secured, config = options(kafka), tmp_path / "client.properties"
    given = {name: value for name, value in secured.items() if name != "kafka.bootstrap.servers"}
    config.write_text("".join(f"{name.removeprefix('kafka.')}={value}\n" for name, value in given.items()))
    sent = spark.range(10).selectExpr("cast(id as string) as value", "'of-job' as topic")
    sent.write.format("broker").options(**secured).mode("append").save()
    place = ["--bootstrap-server", kafka.address("SASL_SSL"), "--command-config", str(config)]
    assert run(["export", *place, "--topic", "of-job", "--output", str(tmp_path / "out")]) == 0
    assert spark.read.parquet(str(tmp_path / "out")).count() == 10
    assert run(["replay", *place, "--input", str(tmp_path / "out"), "--topic", "of-job", "--append"]) == 0
    again = spark.read.format("broker").options(**secured, subscribe="of-job").load()
    assert again.count() == 20
    printed = capfd.readouterr()
    assert SECRET not in printed.out + printed.err
