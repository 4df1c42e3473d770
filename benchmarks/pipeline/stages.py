"""The work of a Python worker without Spark, stage by stage, in nanoseconds of processor time a record.

The reader of `klog` runs in this process, on a topic's files, so that the stages can be measured. `klog` and `broker`
differ in the first stage only.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from time import thread_time_ns
from typing import Any

import pyarrow as pa

from odradek.pipeline.klog.chunks import Chunk
from odradek.pipeline.klog.offset_check import OffsetCheck
from odradek.pipeline.klog.options import klog_options
from odradek.pipeline.klog.segment_reader import CHUNK_BYTES, read_range
from odradek.pipeline.klog.source import KlogReader
from odradek.pipeline.records.decoding import decode
from odradek.pipeline.schema import PLAIN_COLUMNS
from odradek.protocol.checksum import crc32c
from odradek.protocol.records.batch_header import CRC_START

ROUNDS = 7
_SOCKET_BYTES = 65536  # Spark's `spark.buffer.size`


def stages(log_dir: Path, topic: str) -> dict[str, float]:
    """Return the best of some rounds for each stage of a worker that reads the topic."""
    reader = KlogReader(klog_options({"path": str(log_dir), "subscribe": topic}), tuple(PLAIN_COLUMNS))
    ranges = [piece.range for task in reader.partitions() for piece in task.pieces if piece.range is not None]
    buffer = bytearray(CHUNK_BYTES)

    def chunks() -> Iterator[Chunk]:
        for range_ in ranges:
            found = read_range(range_, OffsetCheck(has_gaps=False), buffer)
            yield from (each for each in found if isinstance(each, Chunk))

    def batches(columns: tuple[str, ...] = PLAIN_COLUMNS) -> Iterator[pa.RecordBatch]:
        for chunk in chunks():
            yield from decode(chunk.batches, topic=topic, partition=0, columns=columns)

    read, checked, positions, columns, sent = _best(
        lambda: _exhaust(chunks()),
        lambda: _check(chunks()),
        lambda: _exhaust(batches(())),
        lambda: _exhaust(batches()),
        lambda: _send(batches()),
    )
    records = sum(batch.num_rows for batch in batches())
    found = {
        "read the file, find the batches": read,
        "checksums": checked - read,
        "decompress, positions of the fields": positions - checked,
        "Arrow columns": columns - positions,
        "Arrow IPC into a Unix socket": sent - columns,
        "all": sent,
    }
    return {name: round(spent / records, 1) for name, spent in found.items()}


def _best(*works: Callable[[], object]) -> list[int]:
    """Run the works in turns; return the processor time of the best round of each."""
    times: list[list[int]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, found in zip(works, times, strict=True):
            start = thread_time_ns()
            work()
            found.append(thread_time_ns() - start)
    return [min(found) for found in times]


def _exhaust(values: Iterator[Any]) -> None:
    for _ in values:
        pass


def _check(chunks: Iterator[Chunk]) -> None:
    """Calculate the checksums of all batches."""
    for chunk in chunks:
        data = chunk.batches.data
        for at, end in pairwise(chunk.batches.positions):
            crc32c(data[at + CRC_START : end])


def _send(batches: Iterator[pa.RecordBatch]) -> None:
    """Write the batches as PySpark does, each as one column of structs; another thread discards them."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    receiver = threading.Thread(target=_discard, args=[theirs])
    receiver.start()
    with ours, ours.makefile("wb", _SOCKET_BYTES) as stream:
        writer = None
        for batch in batches:
            rows = pa.StructArray.from_arrays(batch.columns, names=batch.schema.names)
            wrapped = pa.RecordBatch.from_arrays([rows], ["_0"])
            writer = writer or pa.RecordBatchStreamWriter(stream, wrapped.schema)
            writer.write_batch(wrapped)
        if writer is not None:
            writer.close()
    receiver.join()


def _discard(connection: socket.socket) -> None:
    room = bytearray(_SOCKET_BYTES)
    with connection:
        while connection.recv_into(room):
            pass
