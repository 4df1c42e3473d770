"""The lag of streams: as the connector reports it, and in seconds; and the log lines about streams."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryTerminatedEvent

from odradek.pipeline.spark.stream_lag import SECONDS, lags, offsets_behind, with_lag
from odradek.pipeline.spark.stream_reports import _OF_SPARK, StreamReports
from tests.pipeline.tables import send, stream

LOGGER = "odradek.pipeline.spark.stream_reports"


def progress(*sources: tuple[object, object]) -> dict[str, object]:
    return {"sources": [{"endOffset": json.dumps(end), "latestOffset": json.dumps(ends)} for end, ends in sources]}


def test_the_lag_is_over_the_partitions_of_a_source() -> None:
    reached, ends = {"t": {"0": 5, "1": 7}}, {"t": {"0": 5, "1": 17}, "u": {"0": 2}}
    (lag,) = lags(with_lag(progress((reached, ends))))
    assert lag == {"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": "10", "avgOffsetsBehindLatest": "4.0"}
    assert offsets_behind(progress((reached, ends), (reached, ends))) == 24


@pytest.mark.parametrize("offset", [None, 3, "text", ["t"], {}, {"rows": 4}])
def test_sources_without_topics_have_no_lag(offset: object) -> None:
    report = progress((offset, offset))
    assert list(lags(with_lag(report))) == []
    assert offsets_behind(report) == 0


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["odradek"])
def test_the_lag_of_a_stream_is_that_of_the_connector(
    spark: SparkSession, bootstrap: str, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(2)
    ago_ms = int(time.time() * 1000) - 100_000
    send(bootstrap, topic, [(number % 2, ago_ms + number * 1000, None, b"%d" % number, []) for number in range(30)])
    found = {}
    for source in ("broker", "kafka"):
        table = stream(spark, source, bootstrap, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=10)
        writer = table.writeStream.format("noop").option("checkpointLocation", str(tmp_path / source))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        found[source] = [each for each in query.recentProgress if each["numInputRows"]]
    theirs = [each["sources"][0]["metrics"] for each in found["kafka"]]
    assert [next(lags(with_lag(each))) for each in found["broker"]] == theirs
    assert [lag["maxOffsetsBehindLatest"] for lag in theirs] == ["10", "5", "0"]
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    for each, unread in zip(found["broker"][:2], (10, 20), strict=True):
        sent = ago_ms / 1000 + unread
        before = time.time()
        seconds = float(next(lags(with_lag(each, options)))[SECONDS])
        assert before - sent - 0.001 <= seconds <= time.time() - sent + 0.001
    assert next(lags(with_lag(found["broker"][2], options)))[SECONDS] == "0.0"


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["odradek"])
def test_lag_and_errors_of_streams_are_log_lines(
    spark: SparkSession, bootstrap: str, make_topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic(1)
    send(bootstrap, topic, [(0, 1000 + number, None, b"%d" % number, []) for number in range(4)])
    caplog.set_level(logging.DEBUG, LOGGER)
    ended: SimpleQueue[str] = SimpleQueue()

    class Ended(StreamReports):
        def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
            super().onQueryTerminated(event)
            ended.put(str(event.runId))

    reports = Ended()
    spark.streams.addListener(reports)
    try:
        table = stream(spark, "broker", bootstrap, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=3)
        wrong = table.selectExpr("raise_error(concat('wrong ', offset)) AS value").where("value IS NOT NULL")
        for name, rows in (("lagging", table), ("failing", wrong)):
            query = rows.writeStream.format("noop").queryName(name).trigger(availableNow=True).start()
            try:
                query.awaitTermination()
            except PySparkException:
                assert name == "failing"
            while ended.get(timeout=60) != str(query.runId):
                pass  # the end of a query of an earlier test
    finally:
        spark.streams.removeListener(reports)
    lines = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == LOGGER]
    assert ("INFO", "stream lagging, batch 0: 1 to 1 offsets behind, 1.0 on average") in lines
    (error,) = {message for level, message in lines if level == "ERROR"}
    assert error.startswith("stream failing failed: ")
    assert "wrong 0" in error
    assert "\n" not in error
    logger = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager.getLogger(_OF_SPARK)  # noqa: SLF001
    assert not logger.isErrorEnabled()  # a session of ours has turned Spark's own line off
    assert any("\n\tat " in message for level, message in lines if level == "DEBUG")
