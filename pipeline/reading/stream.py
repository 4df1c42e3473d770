"""`readStream` of `format("broker")`: from one trigger to the next, which offsets belong to it.

| question of Spark | answer |
|---|---|
| initialOffset | `startingOffsets` and its like: of a query's first start only |
| latestOffset | the end of every partition; with `maxOffsetsPerTrigger` a share of it for each |
| partitions | the ranges between two offsets; a partition that is new starts at its earliest offset |
| prepareForTriggerAvailableNow | the end of every partition, kept: nothing behind it is read |

Offsets are `{"topic": {"0": 12}}`, exclusive ends, as Spark's connector writes them into a checkpoint: a query may be
stopped with one format and go on with the other. Spark stores an offset before it reads up to it. So after a crash the
same ranges are read again, and a sink that knows its batches by number, as the file sink does, holds each record once.
Source: Spark `KafkaMicroBatchStream`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from odradek.pipeline.options.bounds import Numbers, flat_offsets, nested_offsets
from odradek.pipeline.options.broker_options import ReadOptions, stream_read_options
from odradek.pipeline.reading.data_loss import report_data_loss
from odradek.pipeline.reading.offsets import ClusterOffsets, starting_offsets
from odradek.pipeline.reading.ranges import OffsetRange, share
from odradek.pipeline.reading.source import RangePartition, columns_of, plan

if TYPE_CHECKING:
    import pyarrow as pa

Offsets = dict[str, dict[str, int]]


class BrokerStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query's reader, on the driver; `read` alone runs in tasks, in copies of it.

    What is wrong with the options is told by the first question: of an exception in here Spark loses the text.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(options)
        self._schema = schema
        self._offsets: ClusterOffsets | None = None
        self._target: Numbers | None = None  # where a query that reads what is available now ends
        self._triggered_at = time.monotonic()

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_offsets": None}  # connections stay on the driver

    @cached_property
    def _options(self) -> ReadOptions:
        return stream_read_options(self._given)

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        return columns_of(self._schema)

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's names, here and below
        partitions = self._asked().partitions(self._options.subscription)
        return nested_offsets(starting_offsets(self._asked(), self._options, partitions))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_offsets is not None:
            return ReadMaxRows(self._options.max_offsets)
        if self._options.min_offsets is not None:
            return ReadMinRows(self._options.min_offsets)
        return ReadAllAvailable()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        starts = flat_offsets(start)
        ends = self._ends()
        starts |= self._starts_of_new(starts, ends)
        if isinstance(limit, ReadAllAvailable):
            return nested_offsets(ends)
        if self._is_too_little(sum(ends[one] - starts[one] for one in ends)):
            return start
        if isinstance(limit, ReadMaxRows):
            ends = share(starts, ends, limit.max_rows)
        return nested_offsets(ends)

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802
        return nested_offsets(self._ends())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ends()

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        starts, ends = flat_offsets(start), flat_offsets(end)
        new = self._starts_of_new(starts, ends)
        for (topic, index), offset in new.items():
            if offset > 0:
                report_data_loss(
                    self._options, f"The new partition {topic}-{index} begins at offset {offset}, not at 0."
                )
        gone = starts.keys() - ends.keys()
        if gone:
            report_data_loss(
                self._options, f"{', '.join(f'{topic}-{index}' for topic, index in sorted(gone))} are gone."
            )
        starts |= new
        return plan(self._options, [OffsetRange(one, starts[one], ends[one]) for one in sorted(ends)])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from odradek.pipeline.reading.partition_reader import read_range

        assert isinstance(partition, RangePartition)
        return read_range(self._options, self._columns, partition.wanted)

    def stop(self) -> None:
        if self._offsets is not None:
            self._offsets.close()
            self._offsets = None

    def _asked(self) -> ClusterOffsets:
        if self._offsets is None:
            self._offsets = ClusterOffsets(self._options.cluster, self._options.isolation_level)
        return self._offsets

    def _ends(self) -> Numbers:
        if self._target is not None:
            return dict(self._target)
        return self._asked().latest(self._asked().partitions(self._options.subscription))

    def _starts_of_new(self, known: Numbers, ends: Numbers) -> Numbers:
        """Where the partitions start that were not there before: at their earliest offset, at most where they end."""
        new = ends.keys() - known.keys()
        earliest = self._asked().earliest(sorted(new))
        return {partition: min(offset, ends[partition]) for partition, offset in earliest.items()}

    def _is_too_little(self, available: int) -> bool:
        """Whether to wait for `minOffsetsPerTrigger`: no longer than `maxTriggerDelay`, nor if no more will come."""
        least = self._options.min_offsets
        waited_ms = (time.monotonic() - self._triggered_at) * 1000
        if least is None or self._target is not None or available >= least or waited_ms >= self._options.max_delay_ms:
            self._triggered_at = time.monotonic()
            return False
        return True
