"""The batches of a log directory as rows, from their headers, with samples of records from each segment.

A header contains the batch's size, record count, codec and times. Keys, and the size before compression, come from up
to eight batches of every segment, evenly spread; that gives shares and ratios with an error of a few hundredths.
Messages of magic 0 and 1 are skipped. Reading of a segment stops at damage or preallocated space; `damage` describes
it, except in the active segment. Checksums are checked in sampled batches only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from odradek.broker.storage.batch_scan import CorruptBatchError, StoredBatch, scan_headers
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.names import LOG_SUFFIX
from odradek.broker.storage.offline.listing import list_partitions
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.log_directories.task_shares import divide, task_count
from odradek.pipeline.schema import LARGEST_MS, SMALLEST_MS
from odradek.protocol.compression.codecs import decompress
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, BatchHeader, crc_is_valid, read_batch_header
from odradek.protocol.records.record_iterator import iter_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = """topic string, partition int, offset bigint, records bigint, bytes bigint, codec string,
    first_timestamp bigint, timestamp bigint, raw_bytes bigint, sampled_bytes bigint, keys array<binary>,
    damage string"""
"""`offset` is the base offset; times are in ms. `raw_bytes` and `sampled_bytes` (of the records before and after
compression) and `keys` are null except in sampled batches."""

SAMPLES = 8

Segment = tuple[str, int, str, int, bool]
"""Topic, partition, path, size in bytes, and whether it is the active one."""


def stored_batches(spark: SparkSession, directory: str, topics: list[str] | None = None) -> DataFrame:
    """Return the batches of these topics, or of all. Every worker must be able to read the directory.

    Raises `OSError` if it is not a log directory, `JobError` if a topic is missing.
    """
    segments = list(_segments(directory, topics))
    context = spark.sparkContext
    shares = divide([(each[3], each) for each in segments], task_count(spark))
    rows = context.parallelize(shares, max(len(shares), 1)).flatMap(batches_of)
    return spark.createDataFrame(rows, SCHEMA)


def _segments(directory: str, topics: list[str] | None) -> Iterator[Segment]:
    partitions = list_partitions(ReadOnlyFiles(), directory)
    missing = set(topics or ()) - {partition.key[0] for partition in partitions}
    if missing:
        raise JobError(f"{directory} has no topic {', '.join(sorted(missing))}")
    for partition in partitions:
        topic, number = partition.key
        if topics is not None and topic not in topics:
            continue
        logs = partition.logs
        for base in logs:
            size = partition.segments[base][LOG_SUFFIX]
            yield topic, number, partition.path_of(base, LOG_SUFFIX), size, base == logs[-1]


def batches_of(segments: list[Segment]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of segments on a worker."""
    descriptors = DescriptorCache(ReadOnlyFiles())
    try:
        for segment in segments:
            yield from _rows(descriptors, segment)
            descriptors.forget(segment[2])
    finally:
        descriptors.close()


def _rows(descriptors: DescriptorCache, segment: Segment) -> Iterator[tuple[Any, ...]]:
    topic, partition, path, size, is_active = segment
    found: list[tuple[StoredBatch, BatchHeader]] = []
    damage: list[str] = []
    try:
        found.extend(each for each in scan_headers(descriptors, path, 0, size) if not each[1].is_control)
    except CorruptBatchError as error:
        if not is_active:
            damage.append(f"{error}; the rest of this segment is not counted")
    step = max(len(found) // SAMPLES, 1)
    for number, (batch, header) in enumerate(found):
        sample: tuple[Any, ...] = (None, None, None)
        if number % step == 0 and number // step < SAMPLES:
            try:
                sample = _sample(descriptors, path, batch)
            except CorruptBatchError as error:
                damage.append(str(error))
        has_one_time = header.has_append_time or header.has_delete_horizon
        first = header.max_timestamp if has_one_time else header.base_timestamp
        yield (
            topic,
            partition,
            header.base_offset,
            header.records_count,
            batch.size,
            header.codec.name.lower(),
            _timestamp(first),
            _timestamp(header.max_timestamp),
            *sample,
            None,
        )
    for text in damage:
        yield (topic, partition, -1, 0, 0, None, None, None, None, None, None, text)


def _timestamp(milliseconds: int) -> int | None:
    """Return the timestamp, or None where the sources have null: so sums and differences fit into 64 bits."""
    return milliseconds if SMALLEST_MS <= milliseconds <= LARGEST_MS else None


def _sample(descriptors: DescriptorCache, path: str, batch: StoredBatch) -> tuple[int, int, list[bytes | None]]:
    """Return the bytes of the records before and after compression, and their keys. Raises CorruptBatchError."""
    with descriptors.pinned(path) as number:
        data = descriptors.files.pread(number, batch.size, batch.position)
    header = read_batch_header(data)
    if not crc_is_valid(data, 0, header):
        raise CorruptBatchError(path, batch.position, "the checksum is wrong")
    stored = len(data) - BATCH_HEADER_SIZE
    raw = len(decompress(header.codec, data[BATCH_HEADER_SIZE:])) if header.codec else stored
    return raw, stored, [record.key for record in iter_records(data, 0, header)]
