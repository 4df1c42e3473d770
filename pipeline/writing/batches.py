"""The rows that a task writes become record batches: encoded as they come, and joined when a batch of them is full.

```
rows as Spark sends them ──► chunks of 16 MB ──► by partition ──► encoded, all at once ──► pieces ──► batches ──► sent
                                                                                   each waits for more of its partition
```
To encode many records at once costs little more than to encode one, so a chunk is encoded whole, for all partitions.
Which batch a record goes to must be known before: a record holds how many are before it in its batch.

A piece keeps its chunk in memory. So what has waited for `HELD_BYTES` of other rows is sent, as a smaller batch:
topics of many partitions, and partitions of few rows, take no more memory than that.
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

CHUNK_BYTES: Final = 16 << 20  # what Spark sends at once, unless values are large
HELD_BYTES: Final = 32 << 20

_RECORD_OVERHEAD: Final = 16  # bytes of a record beside its data, about


class Rows(NamedTuple):
    """Keys and values of records, and headers if there are any: arrays of the same length."""

    keys: Any
    values: Any
    headers: Any | None

    def slice(self, start: int, count: int) -> Rows:
        return Rows(*(None if array is None else array.slice(start, count) for array in self))

    def take(self, numbers: Ints) -> Rows:
        """The rows of these numbers."""
        indices = number_array(numbers)
        return Rows(*(None if array is None else array.take(indices) for array in self))

    def sizes(self) -> Ints:
        """Bytes of each record, about."""
        sizes = np.full(len(self.values), _RECORD_OVERHEAD, dtype=np.int64)
        for array in (self.keys, self.values):
            sizes += numbers_of(pc.fill_null(pc.binary_length(array), number_scalar(0)))
        if self.headers is not None and len(self.headers):
            sizes += self.headers.values.nbytes // len(self.headers)
        return sizes


class _Piece(NamedTuple):
    """Rows from `start` to `end`, exclusive, that go into one batch, the first of them as its record number `first`."""

    partition: TopicPartition
    start: int
    end: int
    first: int


class _Waiting:
    """A batch that is not full: the bytes of its records, how many, their size, and what had come before the first."""

    def __init__(self, since: int) -> None:
        self.pieces: list[memoryview] = []
        self.count = 0
        self.size = 0
        self.since = since


class Batches:
    """The batches of one task; `add` rows as often as need be, then `finish`. Methods raise ClientError."""

    def __init__(self, options: WriteOptions, delivery: Delivery) -> None:
        self._options = options
        self._codec = Codec[options.compression.upper()]
        self._delivery = delivery
        self._waiting: dict[TopicPartition, _Waiting] = {}  # the longest first
        self._bytes = 0  # that have come

    def add(self, topic: str, rows: Rows, partitions: Ints, sizes: Ints) -> None:
        """Take rows, with the partition and the bytes of each; send the batches that are full."""
        bounds = np.flatnonzero(np.diff(np.cumsum(sizes) // CHUNK_BYTES)) + 1
        for start, end in pairwise([0, *bounds.tolist(), len(sizes)]):
            order = start + np.argsort(partitions[start:end], kind="stable")
            self._add(topic, rows.take(order), partitions[order], sizes[order])

    def finish(self) -> None:
        """Send what is left."""
        for partition in list(self._waiting):
            self._send(partition)

    def _add(self, topic: str, rows: Rows, partitions: Ints, sizes: Ints) -> None:
        """Take a chunk of rows in the order of their partitions."""
        pieces = list(self._cut(topic, partitions, sizes))
        deltas = np.concatenate([np.arange(piece.first, piece.first + piece.end - piece.start) for piece in pieces])
        encoded = encode_records(*rows, offset_deltas=deltas)
        for piece in pieces:
            if not piece.first and piece.partition in self._waiting:
                self._send(piece.partition)  # it is full: this begins another
            waiting = self._waiting.setdefault(piece.partition, _Waiting(self._bytes))
            waiting.pieces.append(encoded.part(piece.start, piece.end))
            waiting.count += piece.end - piece.start
            waiting.size += int(sizes[piece.start : piece.end].sum())
        self._bytes += int(sizes.sum())
        self._send_old()

    def _cut(self, topic: str, partitions: Ints, sizes: Ints) -> Iterator[_Piece]:
        """Which rows go into one batch: with those that wait, as many as it takes; larger ones alone."""
        bounds = np.flatnonzero(np.diff(partitions)) + 1
        for start, end in pairwise([0, *bounds.tolist(), len(partitions)]):
            partition = TopicPartition(topic, int(partitions[start]))
            waiting = self._waiting.get(partition)
            count, size = (waiting.count, waiting.size) if waiting else (0, 0)
            filled = np.cumsum(sizes[start:end])
            at = 0
            while at < len(filled):
                taken = int(filled[at - 1]) if at else 0
                until = int(np.searchsorted(filled, taken + self._options.batch_bytes - size, side="right"))
                if until > at or not count:
                    until = max(until, at + 1)
                    yield _Piece(partition, start + at, start + until, count)
                    at = until
                count = size = 0  # what is left begins another batch

    def _send(self, partition: TopicPartition) -> None:
        waiting = self._waiting.pop(partition)
        now = time.time_ns() // 1_000_000

        def encode(producer_id: int, producer_epoch: int, base_sequence: int) -> Buffer:
            return join_batch(
                waiting.pieces,
                waiting.count,
                base_timestamp=now,
                max_timestamp=now,
                codec=self._codec,
                level=self._options.compression_level,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
            )

        self._delivery.send(partition, waiting.count, encode)

    def _send_old(self) -> None:
        """Send what keeps too much in memory."""
        while self._waiting:
            partition, oldest = next(iter(self._waiting.items()))
            if self._bytes - oldest.since <= HELD_BYTES:
                return
            self._send(partition)
