"""A job on Spark that reads and writes topics through `format("broker")`, tested with the fixture `kafka`.

`tests/testing/test_examples.py` runs this file in a process of its own, which has one Spark session.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from odradek.pipeline import session
from odradek.testing import Kafka


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session("shop", master="local[1]", config={"spark.ui.enabled": "false"})
    yield started
    started.stop()


def confirm_all(spark: SparkSession, bootstrap: str) -> None:
    """The program under test."""
    orders: DataFrame = (
        spark.read.format("broker").option("kafka.bootstrap.servers", bootstrap).option("subscribe", "orders").load()
    )
    confirmations = orders.selectExpr("key", "concat('confirmed: ', cast(value AS string)) AS value")
    writer = confirmations.write.format("broker").option("kafka.bootstrap.servers", bootstrap)
    writer.option("topic", "confirmations").mode("append").save()


def test_all_orders_are_confirmed(kafka: Kafka, spark: SparkSession) -> None:
    kafka.topic("orders", partitions=2)
    kafka.produce("orders", [(b"customer 7", b"three socks"), (b"customer 8", b"a shoe")])

    confirm_all(spark, kafka.bootstrap)

    values = {record.value for record in kafka.wait_for_records("confirmations", 2)}
    assert values == {b"confirmed: three socks", b"confirmed: a shoe"}
