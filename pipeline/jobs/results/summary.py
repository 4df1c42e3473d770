"""What a job says: lines on the way, and at its end what it has done, with rates.

All of it goes to standard error, so that standard output has a job's result alone, or with `--json` the summary.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLLED_S = 1


def say(text: str) -> None:
    """A line about what the job does now."""
    print(text, file=sys.stderr, flush=True)


class Summary:
    """What a job has done: named counts, and from `records` and `bytes` the rates. Begins when it is made."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._began = time.monotonic()

    def tell(self, counts: Mapping[str, object], *, as_json: bool) -> None:
        """Print the counts, which may include `records` and `bytes`, with the seconds and rates."""
        seconds = max(time.monotonic() - self._began, 1e-6)
        told: dict[str, object] = {"job": self._job, **counts, "seconds": round(seconds, 2)}
        for name in ("records", "bytes"):
            count = counts.get(name)
            if isinstance(count, int):
                told[f"{name}_per_second"] = round(count / seconds)
        if as_json:
            print(json.dumps(told, default=str))
            return
        parts = [f"{_count_text(value)} {name.replace('_', ' ')}" for name, value in told.items() if name != "job"]
        say(f"{self._job}: {', '.join(parts)}")


def _count_text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def follow(query: StreamingQuery) -> list[Any]:
    """Wait until the stream has ended, and return what Spark tells of its batches. Raises what ended it.

    Spark keeps the last hundred batches; this looks once a second, so none of a longer stream is missed.
    """
    told: dict[int, Any] = {}
    ended = False
    while not ended:
        ended = bool(query.awaitTermination(_POLLED_S))
        for progress in query.recentProgress:
            known = told.get(progress["batchId"])
            if known is not None and known["numInputRows"] >= progress["numInputRows"]:
                continue  # an idle trigger is told under the number of the batch before it
            told[progress["batchId"]] = progress
            if progress["numInputRows"]:
                rate = progress["processedRowsPerSecond"]
                name = f"{query.name}, " if query.name else ""
                records = pluralize(progress["numInputRows"], "record", spec=",")
                say(f"{name}batch {progress['batchId']}: {records}, {rate:,.0f}/s")
    return list(told.values())
