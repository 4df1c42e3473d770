"""The output of a job beside its result: progress lines, and at the end a summary with rates.

It goes to standard error. Standard output contains only the job's result, or with `--json` the summary.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odradek.pipeline.spark.stream_lag import offsets_behind
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_INTERVAL_S = 1


def print_status(text: str) -> None:
    """Print one line about the current work of the job."""
    print(text, file=sys.stderr, flush=True)


class Summary:
    """The summary of a job: named counts, the duration since this object was created, and rates."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._began = time.monotonic()

    def print(self, counts: Mapping[str, object], *, as_json: bool) -> None:
        """Print the counts, the duration, and the rates of the counts `records` and `bytes`."""
        seconds = max(time.monotonic() - self._began, 1e-6)
        summary: dict[str, object] = {"job": self._job, **counts, "seconds": round(seconds, 2)}
        for name in ("records", "bytes"):
            count = counts.get(name)
            if isinstance(count, int):
                summary[f"{name}_per_second"] = round(count / seconds)
        if as_json:
            print(json.dumps(summary, default=str))
            return
        parts = [f"{_count_text(value)} {name.replace('_', ' ')}" for name, value in summary.items() if name != "job"]
        print_status(f"{self._job}: {', '.join(parts)}")


def _count_text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def print_progress(query: StreamingQuery) -> list[Any]:
    """Print a line for each batch of a stream until it ends; return Spark's progress reports. Raises its failure.

    Spark keeps the last hundred reports. This polls once a second, so that none is missed.
    """
    reports: dict[int, Any] = {}
    ended = False
    while not ended:
        ended = bool(query.awaitTermination(_POLL_INTERVAL_S))
        for progress in query.recentProgress:
            known = reports.get(progress["batchId"])
            if known is not None and known["numInputRows"] >= progress["numInputRows"]:
                continue  # an idle trigger is reported under the number of the batch before it
            reports[progress["batchId"]] = progress
            if progress["numInputRows"]:
                rate = progress["processedRowsPerSecond"]
                name = f"{query.name}, " if query.name else ""
                records = pluralize(progress["numInputRows"], "record", spec=",")
                behind = offsets_behind(progress)
                left = f", {behind:,} behind" if behind else ""
                print_status(f"{name}batch {progress['batchId']}: {records}, {rate:,.0f}/s{left}")
    return list(reports.values())
