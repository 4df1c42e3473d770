"""Parts of the tests of logs: real resources on a temporary directory, batches to append."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from odradek.broker.randomness import SeededRandomness
from odradek.broker.storage.disk.deletions import Deletions
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import Files, OsFiles
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.producers.producer_state import ProducerEntry
from odradek.broker.storage.resources import LogResources
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import assign_offsets, batch_headers
from odradek.protocol.records.control_records import ControlRecordType, EndTxnMarker, build_end_txn_marker
from odradek.protocol.records.record_iterator import Record, iter_records

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(1, 17))
OTHER_ID = bytes(range(20, 36))
NODE = 1
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def make_resources(path: Path, files: Files | None = None, clock: ManualClock | None = None) -> LogResources:
    files = files or OsFiles()
    clock = clock or ManualClock(NOW)
    failure = DiskFailure(str(path))
    return LogResources(DescriptorCache(files), clock, SeededRandomness(1), Deletions(files, clock, failure), failure)


def make_log_dir(path: Path, clock: ManualClock | None = None, **options: Any) -> LogDir:
    return LogDir(path, clock=clock or ManualClock(NOW), randomness=SeededRandomness(1), **options)


def open_log_dir(path: Path, config: LogConfig = LogConfig(), **options: Any) -> LogDir:  # noqa: B008
    """An opened log directory; `config` applies to every topic."""
    log_dir = make_log_dir(path, **options)
    log_dir.open(lambda _: config, node_id=NODE, cluster_id=CLUSTER)
    return log_dir


def batch(*values: bytes | None, timestamp: int = NOW, key: bytes | None = b"k", **fields: Any) -> memoryview:
    """A batch with these values, their timestamps a millisecond apart; `fields` are BatchBuilder's."""
    builder = BatchBuilder(**fields)
    for index, value in enumerate(values):
        builder.append(timestamp + index, key, value)
    return memoryview(builder.build())


def marker(
    producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0, timestamp: int = NOW
) -> memoryview:
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    built = build_end_txn_marker(EndTxnMarker(kind, coordinator_epoch), producer_id, epoch, timestamp)
    return memoryview(built)


def follower_batch(*values: bytes, base_offset: int, leader_epoch: int = 0, **fields: Any) -> bytes:
    """A batch as a leader stores it: offsets and epoch assigned."""
    data = bytearray(batch(*values, **fields))
    assign_offsets(data, 0, base_offset, leader_epoch)
    return bytes(data)


def crowd(log: Log, count: int, timestamp: int = NOW) -> None:
    """Load this many producers into a log, from id 0 on, as if each had written a batch."""
    entries = [ProducerEntry(producer_id, 0, last_timestamp=timestamp) for producer_id in range(count)]
    log.producers.load(entries, log.log_end_offset)


def append(log: Log, *values: bytes | None, leader_epoch: int = 0, now_ms: int = NOW, **fields: Any) -> int:
    """Append a batch of these values and return its base offset."""
    return log.append_as_leader(batch(*values, **fields), leader_epoch, now_ms).base_offset


def records_in(data: bytes) -> list[Record]:
    """All records of the whole batches in `data`, without control batches."""
    found: list[Record] = []
    for position, header in batch_headers(data):
        if not header.is_control:
            found += iter_records(data, position, header)
    return found


def read_all(log: Log, start: int | None = None, end: int | None = None, max_bytes: int = 1 << 20) -> list[Record]:
    """The records of [start, end), read slice by slice as a consumer does."""
    offset = log.log_start_offset if start is None else start
    first, end = offset, log.log_end_offset if end is None else end
    found: list[Record] = []
    while offset < end:
        with log.read(offset, max_bytes, end) as data:
            chunk = data.read()
        headers = list(batch_headers(chunk))
        if not headers:
            break
        found += (record for record in records_in(chunk) if first <= record.offset < end)
        offset = headers[-1][1].next_offset
    return found


def values_of(log: Log, **bounds: Any) -> list[bytes | None]:
    return [record.value for record in read_all(log, **bounds)]


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def open_files(path: Path) -> list[str]:
    links = (os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir())
    return [link for link in links if link.startswith(str(path))]
