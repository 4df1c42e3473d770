"""`odradek consume --log-dir DIR`: the records of a topic in a log directory, printed without a broker.

It is here because it needs both the formats and filters of the client's commands, and the broker's log. Flags, formats
and ranges are those of `consume`; reading ends at the end of each partition, and partitions are read one after another.
The directory is opened as by `inspect`: nothing in it is changed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from odradek.argument_parser import nearest
from odradek.broker.inspection.findings import collected
from odradek.broker.inspection.text import error_text
from odradek.broker.storage import StoredLogDir, StoredPartition, open_log_dir
from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.offline.listing import NoLogDirError
from odradek.client.cli import fail
from odradek.client.cli.output.record_formats import Format
from odradek.client.cli.reading_range import ReadingRange, first_offset
from odradek.client.cli.record_filter import Condition
from odradek.client.record import ConsumerRecord
from odradek.protocol.errors import KafkaError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import NO_TIMESTAMP, TimestampType

_CHUNK = 500  # records that are printed at once


def print_records(
    arguments: argparse.Namespace, wanted: ReadingRange, conditions: Sequence[Condition], output_format: Format
) -> int:
    """Print the records that the flags of `consume` choose, and return the exit status."""
    try:
        with collected() as findings, open_log_dir(arguments.log_dir) as log_dir:
            partitions = _chosen(log_dir, arguments)
            for line in (line for each in partitions for line in findings.about(each.directory)):
                sys.stderr.write(f"warning: {line}\n")
            records = (record for each in partitions for record in _records(each, wanted, arguments.isolation_level))
            found = (record for record in records if all(holds(record) for holds in conditions))
            _print(islice(found, arguments.max_messages), output_format)
    except BrokenPipeError:
        raise
    except (OSError, MalformedFileError, CorruptBatchError, KafkaError, RemoteProtocolError) as error:
        return fail(error_text(error))
    return 0


def _print(records: Iterator[ConsumerRecord], output_format: Format) -> None:
    """Print records, also those in front of an error or of Ctrl-C, and then their number."""
    count = 0
    chunk: list[bytes] = []
    try:
        for record in records:
            chunk.append(output_format(record))
            count += 1
            if len(chunk) == _CHUNK:
                sys.stdout.buffer.write(b"".join(chunk))
                chunk.clear()
    finally:
        sys.stdout.buffer.write(b"".join(chunk))
        sys.stdout.buffer.flush()
        sys.stderr.write(f"Processed a total of {pluralize(count, 'message')}\n")


def _chosen(log_dir: StoredLogDir, arguments: argparse.Namespace) -> list[StoredPartition]:
    """Return the partitions of `--topic` and `--partition`. Raises FileNotFoundError for one that is not there."""
    topics = log_dir.topics()
    if log_dir.meta is None and not topics:
        raise NoLogDirError(arguments.log_dir)
    if arguments.topic not in topics:
        near = nearest(arguments.topic, topics)
        raise FileNotFoundError(
            f"there is no topic {arguments.topic} in {arguments.log_dir}{f'; {near}' if near else ''}"
        )
    there = {each.partition: each for each in topics[arguments.topic]}
    numbers = list(there) if arguments.partition is None else arguments.partition
    for number in numbers:
        if number not in there:
            raise FileNotFoundError(f"there is no {arguments.topic}-{number} in {arguments.log_dir}")
    return [there[number] for number in numbers]


def _records(partition: StoredPartition, wanted: ReadingRange, isolation_level: str) -> Iterator[ConsumerRecord]:
    """Yield the records of the range; of read_committed without those of aborted and open transactions."""
    is_committed = isolation_level == "read_committed"
    end = partition.last_stable_offset if is_committed else partition.log_end_offset
    if wanted.from_timestamp is None:
        start = first_offset(wanted.start, partition.log_start_offset, end)
    else:
        place = partition.offset_for_timestamp(wanted.from_timestamp)
        start = end if place is None else place.offset
    if wanted.to_offset is not None:
        end = min(end, wanted.to_offset)
    if start >= end:
        return
    for header, record in partition.records_with_headers(start, end, decided_only=is_committed):
        if wanted.to_timestamp is not None and record.timestamp >= wanted.to_timestamp:
            return
        kind = None if record.timestamp == NO_TIMESTAMP else TimestampType.CREATE_TIME
        yield ConsumerRecord(
            partition.topic,
            partition.partition,
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            tuple(record.headers),
            kind if header is None else header.timestamp_type,
            -1 if header is None else header.partition_leader_epoch,
        )
