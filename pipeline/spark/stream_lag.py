"""The lag of a stream: how far it is behind the ends of its topics, in offsets and in seconds.

Spark's connector puts its lag into the progress of a query, as `metrics` of the source. Spark 4.3 requests metrics of
sources written in Java only: its class for streams in Python, PythonMicroBatchStream, does not implement
ReportsSourceMetrics, and `pyspark.sql.streaming.datasource` has no method for them. But the progress has the offsets
that a batch has reached and those at the ends of the topics, so the connector's metrics follow from it.

| metric | |
|---|---|
| minOffsetsBehindLatest, maxOffsetsBehindLatest, avgOffsetsBehindLatest | of the partitions, as in the connector |
| maxSecondsBehindLatest | the age of the oldest record that is not read yet, by its timestamp; 0 if there is none |

All refer to the ends of the topics when the batch was planned, as in the connector.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from odradek.client.errors import ClientError
from odradek.client.record import TopicPartition
from odradek.pipeline.options.bounds import Numbers, flat_offsets

_LOG = logging.getLogger(__name__)

SECONDS: Final = "maxSecondsBehindLatest"


def with_lag(progress: Any, options: Mapping[str, str] | None = None) -> Any:
    """Add the metrics to the sources of a progress report that read topics, and return the report.

    `progress` is `query.lastProgress`, one of `query.recentProgress`, or that of an event. Seconds are added if
    `options` has those of the source: a record is then read from each partition that is behind, which blocks.
    """
    for source in progress["sources"]:
        reached, ends = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
        if not reached or not ends:
            continue  # not a source of topics, or one without partitions
        behind = {one: max(end - reached.get(one, 0), 0) for one, end in ends.items()}
        metrics = {
            "minOffsetsBehindLatest": str(min(behind.values())),
            "maxOffsetsBehindLatest": str(max(behind.values())),
            "avgOffsetsBehindLatest": str(sum(behind.values()) / len(behind)),
        }
        if options is not None:
            metrics |= _seconds(options, {one: reached.get(one, 0) for one in behind if behind[one]}, ends)
        source["metrics"] = {**source.get("metrics", {}), **metrics}
    return progress


def lags(progress: Any) -> Iterator[dict[str, str]]:
    """Yield the metrics that `with_lag` has added, of each source that has them."""
    for source in progress["sources"]:
        if "maxOffsetsBehindLatest" in source.get("metrics", {}):
            yield source["metrics"]


def offsets_behind(progress: Any) -> int:
    """Return the number of offsets that a batch has left unread in all partitions."""
    total = 0
    for source in progress["sources"]:
        reached = _offsets(source["endOffset"])
        total += sum(max(end - reached.get(one, 0), 0) for one, end in _offsets(source["latestOffset"]).items())
    return total


def _offsets(text: str | None) -> Numbers:
    """Parse the offsets of a source; none for those of another kind of source."""
    try:
        return flat_offsets(json.loads(text or "{}") or {})
    except (ValueError, AttributeError, TypeError):
        return {}


def _seconds(options: Mapping[str, str], starts: Numbers, ends: Numbers) -> dict[str, str]:
    """Return the metric of seconds; nothing if the brokers do not answer."""
    try:
        oldest = min(
            filter(None, (_timestamp(options, one, start, ends[one]) for one, start in starts.items())), default=None
        )
    except ClientError as error:
        _LOG.debug("the lag in seconds is unknown: %s", error)
        return {}
    return {SECONDS: "0.0" if oldest is None else str(round(max(time.time() - oldest, 0.0), 3))}


def _timestamp(options: Mapping[str, str], partition: TopicPartition, start: int, end: int) -> float | None:
    """Return the time, in seconds since 1970, of the first record in [start, end); None if there is none."""
    # Imported here: the session imports this module, and these import pyarrow.
    from odradek.pipeline.options.broker_options import stream_read_options
    from odradek.pipeline.reading.partition_reader import read_ranges
    from odradek.pipeline.reading.ranges import OffsetRange

    one_batch = {"kafka.max.partition.fetch.bytes": "1", "failOnDataLoss": "false"}
    names = {name.lower() for name in one_batch}
    kept = {name: value for name, value in options.items() if name.lower() not in names}
    read = stream_read_options(kept | one_batch)
    for batch in read_ranges(read, ("timestamp",), [OffsetRange(partition, start, end)]):
        if batch.num_rows:
            return float(batch.column(0)[0].as_py().timestamp())
    return None
