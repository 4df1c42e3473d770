"""Gather the rows of a task into record batches: encode rows when they arrive, and join them when a batch is full.

```
rows from Spark ──► chunks of 16 MB ──► sorted by partition ──► encoded together ──► pieces ──► batches ──► sent
                                                                     a piece waits for more rows of its partition
```
Encoding many records at once costs little more than encoding one, so a chunk is encoded as a whole, for all
partitions. The batch of a record must be known before, because a record contains its number in the batch.

A piece keeps its chunk in memory. A batch that has waited while `HELD_BYTES` of other rows arrived is therefore sent
although it is not full. This bounds the memory for topics of many partitions and for partitions of few rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow.compute as pc

from odradek.client.record import TopicPartition
from odradek.pipeline.options.broker_options import WriteOptions
from odradek.pipeline.records.arrow_values import number_array, number_scalar, numbers_of
from odradek.pipeline.records.encoding import encode_records, join_batch
from odradek.pipeline.writing.delivery import Delivery
from odradek.protocol.buffer import Buffer
from odradek.protocol.compression.codecs import Codec

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

CHUNK_BYTES: Final = 16 << 20  # what Spark sends at once, unless single values are larger
HELD_BYTES: Final = 32 << 20

_RECORD_OVERHEAD: Final = 16  # approximate bytes of a record beside its data


class Rows(NamedTuple):
    """Keys and values of records, and headers or None: arrays of the same length."""

    keys: Any
    values: Any
    headers: Any | None

    def slice(self, start: int, count: int) -> Rows:
        return Rows(*(None if array is None else array.slice(start, count) for array in self))

    def take(self, numbers: Ints) -> Rows:
        """Return the rows with these numbers."""
        indices = number_array(numbers)
        return Rows(*(None if array is None else array.take(indices) for array in self))

    def sizes(self) -> Ints:
        """Return the approximate bytes of each record."""
        sizes = np.full(len(self.values), _RECORD_OVERHEAD, dtype=np.int64)
        for array in (self.keys, self.values):
            sizes += numbers_of(pc.fill_null(pc.binary_length(array), number_scalar(0)))
        if self.headers is not None and len(self.headers):
            sizes += self.headers.values.nbytes // len(self.headers)
        return sizes


class _Piece(NamedTuple):
    """Rows [start, end) that belong to one batch; the first of them is record number `first` of it."""

    partition: TopicPartition
    start: int
    end: int
    first: int


class _OpenBatch:
    """A batch that is not full: its encoded records, their count and size; `since`: bytes received before the first."""

    def __init__(self, since: int) -> None:
        self.pieces: list[memoryview] = []
        self.count = 0
        self.size = 0
        self.since = since


class Batches:
    """The batches of one task: any number of `add`, then `finish`. Methods raise ClientError."""

    def __init__(self, options: WriteOptions, delivery: Delivery) -> None:
        self._options = options
        self._codec = Codec[options.compression.upper()]
        self._delivery = delivery
        self._open: dict[TopicPartition, _OpenBatch] = {}  # the oldest first
        self._received_bytes = 0

    def add(self, topic: str, rows: Rows, partitions: Ints, sizes: Ints) -> None:
        """Add rows, with the partition and the bytes of each; send the batches that become full."""
        bounds = np.flatnonzero(np.diff(np.cumsum(sizes) // CHUNK_BYTES)) + 1
        for start, end in pairwise([0, *bounds.tolist(), len(sizes)]):
            order = start + np.argsort(partitions[start:end], kind="stable")
            self._add(topic, rows.take(order), partitions[order], sizes[order])

    def finish(self) -> None:
        """Send the batches that are not full."""
        for partition in list(self._open):
            self._send(partition)

    def _add(self, topic: str, rows: Rows, partitions: Ints, sizes: Ints) -> None:
        """Add a chunk of rows that are sorted by partition."""
        pieces = list(self._cut(topic, partitions, sizes))
        deltas = np.concatenate([np.arange(piece.first, piece.first + piece.end - piece.start) for piece in pieces])
        encoded = encode_records(*rows, offset_deltas=deltas)
        for piece in pieces:
            if not piece.first and piece.partition in self._open:
                self._send(piece.partition)  # it is full; the piece starts the next batch
            batch = self._open.setdefault(piece.partition, _OpenBatch(self._received_bytes))
            batch.pieces.append(encoded.part(piece.start, piece.end))
            batch.count += piece.end - piece.start
            batch.size += int(sizes[piece.start : piece.end].sum())
        self._received_bytes += int(sizes.sum())
        self._send_old()

    def _cut(self, topic: str, partitions: Ints, sizes: Ints) -> Iterator[_Piece]:
        """Divide rows into pieces: as many as fit into the open batch; a record larger than a batch alone."""
        bounds = np.flatnonzero(np.diff(partitions)) + 1
        for start, end in pairwise([0, *bounds.tolist(), len(partitions)]):
            partition = TopicPartition(topic, int(partitions[start]))
            batch = self._open.get(partition)
            count, size = (batch.count, batch.size) if batch else (0, 0)
            filled = np.cumsum(sizes[start:end])
            at = 0
            while at < len(filled):
                taken = int(filled[at - 1]) if at else 0
                until = int(np.searchsorted(filled, taken + self._options.batch_bytes - size, side="right"))
                if until > at or not count:
                    until = max(until, at + 1)
                    yield _Piece(partition, start + at, start + until, count)
                    at = until
                count = size = 0  # the remaining rows start another batch

    def _send(self, partition: TopicPartition) -> None:
        batch = self._open.pop(partition)
        now = time.time_ns() // 1_000_000

        def encode(producer_id: int, producer_epoch: int, base_sequence: int) -> Buffer:
            return join_batch(
                batch.pieces,
                batch.count,
                base_timestamp=now,
                max_timestamp=now,
                codec=self._codec,
                level=self._options.compression_level,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
            )

        self._delivery.send(partition, batch.count, encode)

    def _send_old(self) -> None:
        """Send the batches that keep too much memory."""
        while self._open:
            partition, oldest = next(iter(self._open.items()))
            if self._received_bytes - oldest.since <= HELD_BYTES:
                return
            self._send(partition)
