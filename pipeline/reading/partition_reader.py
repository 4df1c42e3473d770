"""The work of a task: read one range of one partition as Arrow batches, and report lost records (`data_loss`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from odradek.client.errors import OffsetOutOfRangeError, UnknownTopicError
from odradek.pipeline.options.broker_options import ReadOptions
from odradek.pipeline.reading.data_loss import report_data_loss
from odradek.pipeline.reading.fetch_client import EndOfLogError, FetchClient
from odradek.pipeline.reading.offsets import ClusterOffsets
from odradek.pipeline.reading.ranges import OffsetRange
from odradek.pipeline.records.decoding import decode
from odradek.pipeline.spark.garbage_collection import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa


def read_range(options: ReadOptions, columns: Sequence[str], offset_range: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range, megabytes at a time. Raises ClientError, CorruptRecordsError, DataLossError."""
    freeze_modules()
    try:
        with FetchClient(options.cluster) as client:
            start = offset_range.start
            while start < offset_range.end:
                try:
                    yield from _read(client, options, columns, offset_range._replace(start=start))
                    return
                except OffsetOutOfRangeError:
                    start = _skip(options, offset_range._replace(start=start))
    except (EndOfLogError, UnknownTopicError) as error:
        report_data_loss(options, f"{error}.")


def _read(
    client: FetchClient, options: ReadOptions, columns: Sequence[str], offset_range: OffsetRange
) -> Iterator[Any]:
    topic, index = offset_range.partition
    for fetched in client.fetch(
        offset_range.partition,
        offset_range.start,
        offset_range.end,
        isolation_level=options.isolation_level,
        fetch_bytes=options.fetch_bytes,
    ):
        yield from decode(
            fetched.batches,
            topic=topic,
            partition=index,
            columns=columns,
            start_offset=offset_range.start,
            end_offset=offset_range.end,
            aborted=fetched.aborted,
        )


def _skip(options: ReadOptions, offset_range: OffsetRange) -> int:
    """Return the offset to continue at after OFFSET_OUT_OF_RANGE: the earliest or the end. Raises DataLossError."""
    with closing(ClusterOffsets(options.cluster, options.isolation_level)) as offsets:
        earliest = offsets.earliest([offset_range.partition])[offset_range.partition]
    start = min(earliest, offset_range.end) if earliest > offset_range.start else offset_range.end
    topic, index = offset_range.partition
    report_data_loss(options, f"The offsets from {offset_range.start} to {start} of {topic}-{index} no longer exist.")
    return start
