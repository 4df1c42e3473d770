"""What a task reads: one range of one partition, as Arrow batches, with what to do where records have gone.

`failOnDataLoss` is the connector's: records that were planned to be read and are not in the log any more (deleted by
retention, or with their topic) are an error, or are passed over with a warning. What compaction or an aborted
transaction took away is no loss: there, offsets simply have no records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from client.errors import OffsetOutOfRangeError, UnknownTopicError
from pipeline.offsets import ClusterOffsets
from pipeline.options import ReadOptions
from pipeline.ranges import OffsetRange
from pipeline.records import decode
from pipeline.wire import EndOfLogError, Wire
from pipeline.worker_process import spare_collections

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger(__name__)

_FAIL = (
    "So records that were to be read are lost: retention has deleted them, or somebody has, perhaps with their topic. "
    "Set failOnDataLoss to false to go on without them."
)


class DataLossError(Exception):
    """Records that were to be read are gone, and failOnDataLoss is true."""


def report_data_loss(options: ReadOptions, what: str) -> None:
    """Raise DataLossError, or log a warning, as the options say."""
    if options.fail_on_data_loss:
        raise DataLossError(f"{what} {_FAIL}")
    _LOG.warning("%s Records may be lost; failOnDataLoss is false, so the query goes on.", what)


def read_range(options: ReadOptions, columns: Sequence[str], wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range, megabytes at a time. Raises ClientError, CorruptRecordsError, DataLossError."""
    spare_collections()
    try:
        with Wire(options.cluster) as wire:
            start = wanted.start
            while start < wanted.end:
                try:
                    yield from _read(wire, options, columns, wanted._replace(start=start))
                    return
                except OffsetOutOfRangeError:
                    start = _skip(options, wanted._replace(start=start))
    except (EndOfLogError, UnknownTopicError) as error:
        report_data_loss(options, f"{error}.")


def _read(wire: Wire, options: ReadOptions, columns: Sequence[str], wanted: OffsetRange) -> Iterator[Any]:
    topic, index = wanted.partition
    for fetched in wire.fetch(
        wanted.partition,
        wanted.start,
        wanted.end,
        isolation_level=options.isolation_level,
        fetch_bytes=options.fetch_bytes,
    ):
        yield from decode(
            fetched.batches,
            topic=topic,
            partition=index,
            columns=columns,
            start_offset=wanted.start,
            end_offset=wanted.end,
            aborted=fetched.aborted,
        )


def _skip(options: ReadOptions, wanted: OffsetRange) -> int:
    """Where to go on after `wanted.start` was refused: at the earliest offset, or the end. Raises DataLossError."""
    with closing(ClusterOffsets(options.cluster, options.isolation_level)) as offsets:
        earliest = offsets.earliest([wanted.partition])[wanted.partition]
    start = min(earliest, wanted.end) if earliest > wanted.start else wanted.end
    topic, index = wanted.partition
    report_data_loss(options, f"The offsets from {wanted.start} to {start} of {topic}-{index} are gone.")
    return start
