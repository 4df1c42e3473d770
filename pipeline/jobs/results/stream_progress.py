"""What a stream says while it runs: a line for each batch that had records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipeline.jobs.results.summary import say
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLLED_S = 1


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
