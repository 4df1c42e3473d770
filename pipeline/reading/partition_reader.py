"""The work of a task: read ranges of partitions as Arrow batches, and report lost records (`data_loss`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from odradek.client.errors import OffsetOutOfRangeError, UnknownTopicError
from odradek.pipeline.options.broker_options import ReadOptions
from odradek.pipeline.reading.data_loss import report_data_loss
from odradek.pipeline.reading.fetch_client import EndOfLogError, FetchClient, TopicRecreatedError
from odradek.pipeline.reading.offsets import ClusterOffsets
from odradek.pipeline.reading.ranges import OffsetRange
from odradek.pipeline.records.decoding import decode
from odradek.pipeline.spark.garbage_collection import freeze_modules
from odradek.pipeline.worker_clients import worker_client

if TYPE_CHECKING:
    import pyarrow as pa


def read_ranges(
    options: ReadOptions, columns: Sequence[str], offset_ranges: Sequence[OffsetRange]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of ranges, megabytes at a time. Raises ClientError, CorruptRecordsError, DataLossError."""
    freeze_modules()
    cluster = options.cluster
    with worker_client(cluster.client_config(), cluster.timeout_ms) as client:
        fetches = FetchClient(client, cluster)
        for offset_range in offset_ranges:
            yield from _read_range(fetches, options, columns, offset_range)


def _read_range(
    client: FetchClient, options: ReadOptions, columns: Sequence[str], offset_range: OffsetRange
) -> Iterator[pa.RecordBatch]:
    try:
        while offset_range.size > 0:
            try:
                yield from _read(client, options, columns, offset_range)
                return
            except OffsetOutOfRangeError:
                offset_range = offset_range._replace(start=_skip(options, offset_range))
    except (EndOfLogError, TopicRecreatedError, UnknownTopicError) as error:
        report_data_loss(options, f"{error}.")


def _read(
    client: FetchClient, options: ReadOptions, columns: Sequence[str], offset_range: OffsetRange
) -> Iterator[Any]:
    topic, index = offset_range.partition
    for fetched in client.fetch(offset_range, isolation_level=options.isolation_level, fetch_bytes=options.fetch_bytes):
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
