"""The decoding of small chunks of many partitions at once.

```
chunks      t-0: batch | batch     t-1: batch     t-2: batch | batch | batch
together    batch | batch | batch | batch | batch | batch                       decoded as if of one partition
rows        t-0 ......... | t-1 . | t-2 .............                           counted by the headers
```
A call of the decoder takes about 1 ms however few records there are. If a batch needs anything but decoding (a checksum
is wrong, it is a marker, only a part of its records is in the range), each chunk is decoded by itself. Reading a
thousand partitions of a thousand records so took 0.4 s of processor time in place of 1.7 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from odradek.pipeline.klog.chunks import Chunk
from odradek.pipeline.klog.tasks import KlogPiece
from odradek.pipeline.records.damage import CorruptRecordsError
from odradek.pipeline.records.decoding import decode
from odradek.pipeline.records.varints import Ints
from odradek.pipeline.records.whole_batches import WholeBatches, numbers
from odradek.pipeline.schema import arrow_schema
from odradek.protocol.records.batch_header import CONTROL_BIT, MAGIC

_MOST_BYTES: Final = 4_000_000  # decoded at once; also the size of a group of the decoder
SMALL: Final = _MOST_BYTES // 4  # a chunk of fewer bytes is worth it

DecodeOne = Callable[[KlogPiece, Chunk], Iterator[pa.RecordBatch]]


class _Part(NamedTuple):
    """A chunk among others: its piece, its position in its file, and its first batch and first byte among all."""

    piece: KlogPiece
    position: int
    batch: int
    begin: int


class JointDecoding:
    """Chunks that wait to be decoded together. `decode_one` decodes a chunk by itself."""

    def __init__(self, columns: Sequence[str], decode_one: DecodeOne) -> None:
        self._columns = tuple(columns)
        self._decode_one = decode_one
        self._buffer = bytearray()
        self._positions = [0]
        self._parts: list[_Part] = []

    def add(self, piece: KlogPiece, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """Add a small chunk, whose bytes are copied; yield the records that were waiting if there are many."""
        begin = len(self._buffer)
        self._parts.append(_Part(piece, chunk.position, len(self._positions) - 1, begin))
        self._buffer += chunk.batches.data[: chunk.batches.size]
        self._positions += [begin + position for position in chunk.batches.positions[1:]]
        if len(self._buffer) >= _MOST_BYTES - SMALL:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield the records of all chunks that wait."""
        if not self._parts:
            return
        parts, self._parts = self._parts, []
        batches = WholeBatches(memoryview(self._buffer), self._positions, None)
        self._buffer, self._positions = bytearray(), [0]
        decoded = self._together(parts, batches) if len(parts) > 1 else None
        if decoded is not None:
            yield from decoded
            return
        for part, end in zip(parts, [*(part.batch for part in parts[1:]), len(batches.positions) - 1], strict=True):
            chunk = Chunk(0, batches).part(part.batch, end)
            yield from self._decode_one(part.piece, chunk._replace(position=part.position))

    def _together(self, parts: list[_Part], batches: WholeBatches) -> list[pa.RecordBatch] | None:
        """Decode all chunks together; None if one of them needs more."""
        headers = batches.headers()
        firsts = np.array([part.batch for part in parts])
        batch_counts = np.diff(firsts, append=len(headers))
        bases = numbers(headers["base_offset"])
        lasts = bases + numbers(headers["last_offset_delta"])
        starts = np.repeat([part.piece.start_offset for part in parts], batch_counts)
        ends = np.repeat([part.piece.end_offset for part in parts], batch_counts)
        is_plain = (headers["magic"] >= MAGIC) & (headers["attributes"] & CONTROL_BIT == 0)
        if not (is_plain & (bases >= starts) & (lasts < ends)).all():
            return None
        try:
            found = list(decode(batches, topic="", partition=0, columns=self._columns))
        except CorruptRecordsError:
            return None
        row_counts = np.add.reduceat(numbers(headers["records_count"]), firsts)
        if sum(each.num_rows for each in found) != row_counts.sum():
            return None
        return list(self._named(found, np.repeat(np.arange(len(parts)), row_counts), parts))

    def _named(self, found: list[pa.RecordBatch], part_of_row: Ints, parts: list[_Part]) -> Iterator[pa.RecordBatch]:
        """Put topics and partitions into records that were decoded as if of one partition."""
        topics = pa.array([part.piece.topic for part in parts], pa.string())
        partitions = pa.array([part.piece.partition for part in parts], pa.int32())
        begin = 0
        for batch in found:
            of_rows = pa.array(part_of_row[begin : begin + batch.num_rows])
            begin += batch.num_rows
            replaced = {"topic": topics, "partition": partitions}
            arrays = [
                replaced[name].take(of_rows) if name in replaced else column
                for name, column in zip(self._columns, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._columns))
