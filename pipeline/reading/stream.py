"""`readStream` of `format("broker")`: the offsets of each micro-batch.

| method that Spark calls | result |
|---|---|
| initialOffset | `startingOffsets` or one of its variants; only at the first start of a query |
| latestOffset | the end of every partition; with `maxOffsetsPerTrigger` part of the way to it |
| partitions | the ranges between two offsets; a new partition starts at its earliest offset |
| prepareForTriggerAvailableNow | stores the end of every partition: nothing after it is read |

Offsets are exclusive ends in the form of Spark's connector, with the ids of topics (`stream_offsets`). Spark stores an
offset before it reads up to it. After a crash it reads the same ranges again, so a sink that identifies batches by
number, as the file sink does, stores each record once.

A topic whose id has changed between two offsets was deleted and created again. That is data loss (`data_loss`); if the
query may continue, it reads the new topic from its start. While a topic that the subscription names does not exist,
such a query keeps its offsets, and waits for the topic; otherwise it fails.
Source: Spark `KafkaMicroBatchStream`.
"""

from __future__ import annotations

import logging
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

from odradek.pipeline.options.bounds import Numbers, nested_offsets
from odradek.pipeline.options.broker_options import ReadOptions, stream_read_options
from odradek.pipeline.reading.data_loss import report_data_loss
from odradek.pipeline.reading.offsets import ClusterOffsets, starting_offsets
from odradek.pipeline.reading.ranges import OffsetRange, limited_ends
from odradek.pipeline.reading.source import RangePartition, columns_of, plan
from odradek.pipeline.reading.stream_offsets import Offsets, StreamOffsets

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger(__name__)


class BrokerStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of one query, on the driver; only `read` runs in tasks, in copies of it.

    The first call reports errors in the options: Spark loses the text of an exception in the constructor.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(options)
        self._schema = schema
        self._offsets: ClusterOffsets | None = None
        self._target: StreamOffsets | None = None  # the end of a query with the trigger availableNow
        self._missing: set[str] = set()  # the topics that the subscription names, and that did not exist last time
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
        partitions, topic_ids = self._cluster_offsets().subscribed(self._options.subscription)
        numbers = self._options.start.numbers_of(partitions, "starting")
        starts = starting_offsets(self._cluster_offsets(), self._options, numbers)
        return StreamOffsets(starts, topic_ids).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_offsets is not None:
            return ReadMaxRows(self._options.max_offsets)
        if self._options.min_offsets is not None:
            return ReadMinRows(self._options.min_offsets)
        return ReadAllAvailable()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        given = StreamOffsets.from_json(start)
        end = self._end()
        end = end.keeping(self._missing, given)
        starts = given.without(given.recreated(end)).numbers
        starts |= self._starts_of_new_partitions(starts, end.numbers)
        if isinstance(limit, ReadAllAvailable):
            return end.to_json()
        if self._must_wait(sum(offset - starts[one] for one, offset in end.numbers.items())):
            return start
        if isinstance(limit, ReadMaxRows):
            end = end._replace(numbers=limited_ends(starts, end.numbers, limit.max_rows))
        return end.to_json()

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802
        return nested_offsets(self._end().numbers)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._end()

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        given, until = StreamOffsets.from_json(start), StreamOffsets.from_json(end)
        recreated = given.recreated(until)
        for topic in recreated:
            report_data_loss(
                self._options,
                f"Topic {topic} was deleted and created again: the checkpoint has offsets of the topic with id "
                f"{given.topic_ids[topic]}, and the id is now {until.topic_ids[topic]}. Records of the old topic that "
                f"the query had not read are lost. A query that continues reads the new topic from its start.",
            )
        starts, ends = given.without(recreated).numbers, until.numbers
        new = self._starts_of_new_partitions(starts, ends)
        for (topic, index), offset in new.items():
            if offset > 0:
                report_data_loss(
                    self._options, f"The new partition {topic}-{index} starts at offset {offset}, not at 0."
                )
        gone = starts.keys() - ends.keys()
        if gone:
            report_data_loss(
                self._options, f"{', '.join(f'{topic}-{index}' for topic, index in sorted(gone))} no longer exist."
            )
        starts |= new
        ids = until.topic_ids
        ranges = [OffsetRange(one, starts[one], ends[one], ids.get(one.topic, "")) for one in sorted(ends)]
        return plan(self._options, self._cluster_offsets(), ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from odradek.pipeline.reading.partition_reader import read_ranges

        assert isinstance(partition, RangePartition)
        return read_ranges(self._options, self._columns, partition.offset_ranges)

    def stop(self) -> None:
        if self._offsets is not None:
            self._offsets.close()
            self._offsets = None

    def _cluster_offsets(self) -> ClusterOffsets:
        if self._offsets is None:
            self._offsets = ClusterOffsets(
                self._options.cluster,
                self._options.isolation_level,
                skips_missing=not self._options.fail_on_data_loss,
            )
        return self._offsets

    def _end(self) -> StreamOffsets:
        if self._target is not None:
            return self._target
        partitions, topic_ids = self._cluster_offsets().subscribed(self._options.subscription)
        end = StreamOffsets(self._cluster_offsets().latest(partitions), topic_ids)
        self._find_missing(end)
        return end

    def _find_missing(self, end: StreamOffsets) -> None:
        """Store the topics that do not exist, which `end` lacks; log a warning about new ones."""
        missing = self._options.subscription.named_topics - {partition.topic for partition in end.numbers}
        for topic in sorted(missing - self._missing):
            _LOG.warning("Topic %s does not exist. failOnDataLoss is false, so the stream waits for it.", topic)
        self._missing = missing

    def _starts_of_new_partitions(self, known: Numbers, ends: Numbers) -> Numbers:
        """Return the start offsets of partitions that are not in `known`: the earliest, but not above the end.

        That of a partition that no longer exists is its end.
        """
        new = ends.keys() - known.keys()
        earliest = self._cluster_offsets().earliest(sorted(new))
        return {partition: min(earliest.get(partition, ends[partition]), ends[partition]) for partition in new}

    def _must_wait(self, available: int) -> bool:
        """Whether to wait for `minOffsetsPerTrigger`; never longer than `maxTriggerDelay`, nor under availableNow."""
        least = self._options.min_offsets
        waited_ms = (time.monotonic() - self._triggered_at) * 1000
        if least is None or self._target is not None or available >= least or waited_ms >= self._options.max_delay_ms:
            self._triggered_at = time.monotonic()
            return False
        return True
