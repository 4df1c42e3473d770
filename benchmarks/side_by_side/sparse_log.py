"""Logs of any size, in seconds and on little disk: record batches whose values are zeros, kept as holes in files.

```
┌ batch ─────────────────────────────────┐                    ┌ batch ┐
│ header, start of the value │ ········· │   …   × size / 2   │ 1 KB  │   …   × size / 2      · a hole: reads as zeros
└────────────────────────────────────────┘                    └───────┘
┌ batch of 16 KiB ────────────────────────────────────────┐
│ header, 15 records, start of the last value │ ········· │   …   × any number, each 16 ms newer
└─────────────────────────────────────────────────────────┘
```

Our storage writes them into the log directory of a stopped broker, Apache Kafka's or ours, into existing partitions.
Segments, indexes and checkpoints are like those of a produced log. Every byte can be read, and every checksum is right.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.side_by_side import load
from odradek.broker.clock import SystemClock
from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.disk.files import BytesLike, OsFiles
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import write_crc

EVEN_RECORDS = 16
"""The records of each batch of `fill_evenly`, a millisecond apart."""

_VALUE_BYTES = 1_000_000
_SECOND = 1000
_START_BYTES = 4096
_ZEROS = bytes(_VALUE_BYTES)
_OFFSET_BYTES = 8
_SMALL_VALUE_BYTES = 100
_LAST_VALUE_BYTES = 14_400
_TIMESTAMPS = struct.Struct(">qq")
_TIMESTAMPS_AT = 27


class _SparseFiles(OsFiles):
    """Files that write the start and the last byte of a piece with only zeros between: these are zeros here anyway."""

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        rest = bytes(data[_START_BYTES:])
        if rest and rest == _ZEROS[: len(rest)]:
            super().pwrite(descriptor, data[:_START_BYTES], position)
            super().pwrite(descriptor, data[-1:], position + len(data) - 1)
        else:
            super().pwrite(descriptor, data, position)


def fill(log_dir: Path, sizes: Mapping[str, int], segment_bytes: int, middle: bytes) -> dict[str, int]:
    """Fill partition 0 of each topic with so many MB, with the batch `middle` in the middle; return its offset in each.

    The broker must have stopped cleanly. The batches before `middle` are a second older than load.TIMESTAMP, those
    after it a second newer.
    """
    with _logs(log_dir, segment_bytes) as logs:
        return {topic: _fill(logs[topic, 0], megabytes, middle) for topic, megabytes in sizes.items()}


def fill_evenly(log_dir: Path, counts: Mapping[str, int], segment_bytes: int) -> None:
    """Fill partition 0 of each topic with so many batches of `even_batch`; the broker must have stopped cleanly.

    The record at offset n has the timestamp load.TIMESTAMP + n.
    """
    with _logs(log_dir, segment_bytes) as logs:
        for topic, count in counts.items():
            log, batch = logs[topic, 0], even_batch()
            for number in range(count):
                first = load.TIMESTAMP + number * EVEN_RECORDS
                _TIMESTAMPS.pack_into(batch, _TIMESTAMPS_AT, first, first + EVEN_RECORDS - 1)
                write_crc(batch, 0, len(batch))
                _append(log, batch, 1, first)
            log.flush()
            log.advance_high_watermark(log.log_end_offset)


def even_batch() -> bytearray:
    """Return a batch of a little less than 16 KiB."""
    builder = BatchBuilder(Codec.NONE)
    for number in range(EVEN_RECORDS):
        size = _LAST_VALUE_BYTES if number == EVEN_RECORDS - 1 else _SMALL_VALUE_BYTES
        builder.append(load.TIMESTAMP + number, None, bytes(size))
    return bytearray(builder.build())


@contextmanager
def _logs(log_dir: Path, segment_bytes: int) -> Iterator[Mapping[tuple[str, int], Log]]:
    config = LogConfig(segment_bytes=segment_bytes)
    directory = LogDir(log_dir, clock=SystemClock(), randomness=SystemRandomness(), files=_SparseFiles())
    directory.open(lambda _: config, node_id=1)
    directory.broker_epoch = directory.last_broker_epoch or -1
    try:
        yield directory.logs
    finally:
        directory.close()


def _fill(log: Log, megabytes: int, middle: bytes) -> int:
    _append(log, _large_batch(load.TIMESTAMP - _SECOND), megabytes // 2)
    at = log.log_end_offset
    _append(log, bytearray(middle), 1)
    _append(log, _large_batch(load.TIMESTAMP + _SECOND), megabytes // 2)
    log.flush()
    log.advance_high_watermark(log.log_end_offset)
    return at


def _append(log: Log, batch: bytearray, times: int, now_ms: int = load.TIMESTAMP) -> None:
    for _ in range(times):
        batch[:_OFFSET_BYTES] = bytes(_OFFSET_BYTES)  # the previous append has set an offset
        log.append_as_leader(memoryview(batch), 0, now_ms)


def _large_batch(timestamp: int) -> bytearray:
    builder = BatchBuilder(Codec.NONE)
    builder.append(timestamp, None, bytes(_VALUE_BYTES))
    return bytearray(builder.build())
