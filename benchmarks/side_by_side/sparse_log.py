"""Logs of any size, in seconds and on little disk: record batches whose values are zeros, kept as holes in files.

```
┌ batch ─────────────────────────────────┐                    ┌ batch ┐
│ header, start of the value │ ········· │   …   × size / 2   │ 1 KB  │   …   × size / 2      · a hole: reads as zeros
└────────────────────────────────────────┘                    └───────┘
```

Our storage writes them into the log directory of a stopped broker, Apache Kafka's or ours, into existing partitions.
Segments, indexes and checkpoints are like those of a produced log. Every byte can be read, and every checksum is right.
"""

from __future__ import annotations

from collections.abc import Mapping
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

_VALUE_BYTES = 1_000_000
_SECOND = 1000
_EDGE_BYTES = 4096
_OFFSET_BYTES = 8


class _SparseFiles(OsFiles):
    """Files that write only the two ends of a large piece; the bytes between are zeros here."""

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        if len(data) < _VALUE_BYTES:
            super().pwrite(descriptor, data, position)
        else:
            super().pwrite(descriptor, data[:_EDGE_BYTES], position)
            super().pwrite(descriptor, data[-_EDGE_BYTES:], position + len(data) - _EDGE_BYTES)


def fill(log_dir: Path, sizes: Mapping[str, int], segment_bytes: int, middle: bytes) -> dict[str, int]:
    """Fill partition 0 of each topic with so many MB, with the batch `middle` in the middle; return its offset in each.

    The broker must have stopped cleanly. The batches before `middle` are a second older than load.TIMESTAMP, those
    after it a second newer.
    """
    config = LogConfig(segment_bytes=segment_bytes)
    directory = LogDir(log_dir, clock=SystemClock(), randomness=SystemRandomness(), files=_SparseFiles())
    directory.open(lambda _: config, node_id=1)
    directory.broker_epoch = directory.last_broker_epoch or -1
    try:
        return {topic: _fill(directory.logs[topic, 0], megabytes, middle) for topic, megabytes in sizes.items()}
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


def _append(log: Log, batch: bytearray, times: int) -> None:
    for _ in range(times):
        batch[:_OFFSET_BYTES] = bytes(_OFFSET_BYTES)  # the previous append has set an offset
        log.append_as_leader(memoryview(batch), 0, load.TIMESTAMP)


def _large_batch(timestamp: int) -> bytearray:
    builder = BatchBuilder(Codec.NONE)
    builder.append(timestamp, None, bytes(_VALUE_BYTES))
    return bytearray(builder.build())
