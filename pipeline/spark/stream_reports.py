"""Log lines about the streams of a session: the lag after each batch, and the cause when a stream fails.

```
INFO   stream orders, batch 7: 120 to 450 offsets behind, 285.0 on average
ERROR  stream orders failed: DataLossError: The end of orders-0 is below its start offset. …
DEBUG  Traceback (most recent call last): …
```
They are lines of Python's logging, by the logger `odradek.pipeline.spark.stream_reports`, so errors are visible
without any setting. Spark's own line about a stream that fails has a stack of a hundred lines; a session of ours turns
it off.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from odradek.pipeline.spark.error_cause import cause_of_text
from odradek.pipeline.spark.stream_lag import SECONDS, lags, with_lag

if TYPE_CHECKING:
    from uuid import UUID

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

_LOG = logging.getLogger(__name__)

_OF_SPARK: Final = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"
_MOST_NAMES: Final = 1000  # of streams that run; those of a session that lost events are forgotten


class StreamReports(StreamingQueryListener):
    """The listener of a session. Spark calls it in a thread of its own, for one event after the other."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = options
        self._names: dict[UUID, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names, here and below
        if len(self._names) >= _MOST_NAMES:
            self._names.clear()
        self._names[event.runId] = event.name or str(event.id)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        if not _LOG.isEnabledFor(logging.INFO):
            return
        progress = with_lag(event.progress, self._options)
        for lag in lags(progress):
            _LOG.info(
                "stream %s, batch %d: %s to %s offsets behind, %s on average%s",
                progress["name"] or progress["id"],
                progress["batchId"],
                lag["minOffsetsBehindLatest"],
                lag["maxOffsetsBehindLatest"],
                lag["avgOffsetsBehindLatest"],
                f"; {lag[SECONDS]} s behind" if SECONDS in lag else "",
            )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """An idle stream has no lag that changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        name = self._names.pop(event.runId, str(event.id))
        if event.exception is not None:
            _LOG.error("stream %s failed: %s", name, cause_of_text(event.exception))
            _LOG.debug("%s", event.exception)


def report_streams(spark: SparkSession, options: Mapping[str, str] | None = None) -> StreamReports:
    """Log about all streams of a session from now on; `spark.streams.removeListener` ends it.

    With `options`, those of the sources, lines about the lag have seconds, too (`stream_lag`).
    """
    reports = StreamReports(options)
    spark.streams.addListener(reports)
    return reports


def silence_spark(spark: SparkSession) -> None:
    """Turn off the log lines of Spark's class that runs streams, which are mostly those of a failing one."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark sets the level of all loggers only
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_OF_SPARK, log4j.Level.OFF)
