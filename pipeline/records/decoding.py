"""Decode record batches into Arrow columns, some megabytes at a time, never record by record.

```
bytes ─► batches and their headers                                                (`whole_batches`)
            │ leave out: markers, aborted batches, batches outside the range      (here, `aborted`)
            │ checksum and decompression, batch by batch
            ▼
         a group of decompressed batches ─► positions of records                  (`record_starts`)
                                         ─► positions of fields                   (`record_fields`)
                                         ─► a pyarrow.RecordBatch                 (`columns`)
```
A group ends when it has `GROUP_BYTES`. Memory is bounded by this and by the largest batch, and Arrow's 32-bit offsets
suffice. Messages of magic 0 and 1 are decoded one by one (`old_messages`).

A damaged batch is handled according to the mode (`damage`), and decoding continues behind it. If the length of a batch
is impossible, the rest of the buffer is one damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final

import numpy as np
import pyarrow as pa

from odradek.pipeline.records.arrow_values import Booleans
from odradek.pipeline.records.columns import record_columns
from odradek.pipeline.records.damage import CorruptRecordsError, Damage, Mode
from odradek.pipeline.records.old_messages import message_columns
from odradek.pipeline.records.record_fields import RecordFields, read_fields
from odradek.pipeline.records.varints import Ints
from odradek.pipeline.records.whole_batches import WholeBatches, numbers
from odradek.pipeline.schema import CORRUPT_RECORD, PLAIN_COLUMNS, arrow_schema
from odradek.protocol.buffer import Buffer
from odradek.protocol.checksum import crc32c
from odradek.protocol.compression.codecs import decompress
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.aborted_filter import AbortedFilter
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    CODEC_BITS,
    CONTROL_BIT,
    CRC_START,
    TRANSACTIONAL_BIT,
    codec_of,
    read_batch_header,
)

GROUP_BYTES: Final = 4_000_000  # a group has a fixed cost, here and in Spark; groups of 2 MB are slower
MAX_OFFSET: Final = (1 << 63) - 1
_BASE_OFFSET: Final = Struct(">q")


def decode(
    batches: WholeBatches,
    *,
    topic: str,
    partition: int,
    columns: Sequence[str] = PLAIN_COLUMNS,
    start_offset: int = 0,
    end_offset: int = MAX_OFFSET,
    aborted: Iterable[tuple[int, int]] = (),
    mode: Mode = Mode.FAILFAST,
    source: str = "",
    position: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of `batches` with offsets in [start_offset, end_offset), as columns of `schema.arrow_schema`.

    `columns` are any of `schema.column_names`, in any order. `aborted` are the transactions to leave out: producer id
    and first offset, as in a Fetch response. Errors name `source` and `position` as the origin of the data. The arrays
    do not reference the data. Raises CorruptRecordsError under FAILFAST, after the records before the damage.
    """
    source = source or f"{topic}-{partition}"
    reading = _Reading(batches, source, position, topic, partition, tuple(columns), start_offset, end_offset, mode)
    return reading.run(tuple(aborted))


class _Group:
    """Batches whose records are decoded together: their numbers, and the decompressed records of each."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.records: list[Buffer] = []
        self.size = 0

    def add(self, batch: int, records: Buffer) -> None:
        self.batches.append(batch)
        self.records.append(records)
        self.size += len(records)


class _Reading:
    """One call of `decode`. Batches are identified by their numbers in the buffer."""

    def __init__(
        self,
        batches: WholeBatches,
        source: str,
        origin: int,
        topic: str,
        partition: int,
        columns: tuple[str, ...],
        start_offset: int,
        end_offset: int,
        mode: Mode,
    ) -> None:
        self._batches = batches
        self._data = batches.data
        self._positions = batches.positions
        self._headers = batches.headers()
        self._checksums = self._headers["crc"].tolist()
        self._codecs = (self._headers["attributes"] & CODEC_BITS).tolist()
        self._source = source
        self._origin = origin
        self._topic = topic
        self._partition = partition
        self._columns = columns
        self._start = start_offset
        self._end = end_offset
        self._mode = mode
        self._group = _Group()

    def run(self, aborted: Sequence[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        filter_ = AbortedFilter(aborted)
        is_old = self._headers["magic"] == 0
        is_plain = ~is_old & self._are_selected(has_aborted=bool(aborted))
        for batch, (old, plain) in enumerate(zip(is_old.tolist(), is_plain.tolist(), strict=True)):
            if old:
                yield from self._flushed()
                yield from self._messages(batch)
                continue
            try:
                if plain or self._is_selected(batch, filter_):
                    self._group.add(batch, self._records(batch))
            except RemoteProtocolError as error:
                yield from self._flushed()
                yield from self._damaged(batch, str(error))
            if self._group.size >= GROUP_BYTES:
                yield from self._flushed()
        yield from self._flushed()
        if self._batches.flaw is not None:
            rest = len(self._data) - self._batches.size
            yield from self._reported(self._batches.size, rest, self._batches.flaw)

    def _are_selected(self, *, has_aborted: bool) -> Booleans:
        """Return which batches hold records of the range and need no check for aborted transactions."""
        base_offset, last_delta = numbers(self._headers["base_offset"]), numbers(self._headers["last_offset_delta"])
        needs_check = CONTROL_BIT | TRANSACTIONAL_BIT if has_aborted else CONTROL_BIT
        is_selected: Booleans = (base_offset >= self._start - last_delta) & (base_offset < self._end)
        is_selected &= self._headers["attributes"] & needs_check == 0
        return is_selected

    def _is_selected(self, batch: int, filter_: AbortedFilter) -> bool:
        """Check one batch, in order. Raises RemoteProtocolError for a malformed marker."""
        at = self._positions[batch]
        header = read_batch_header(self._data, at)
        if filter_.skips(self._data, at, header):
            return False
        return header.last_offset >= self._start and header.base_offset < self._end

    def _records(self, batch: int) -> Buffer:
        """Return the decompressed records of a batch. Raises RemoteProtocolError if the checksum is wrong."""
        at, end = self._positions[batch], self._positions[batch + 1]
        if crc32c(self._data[at + CRC_START : end]) != self._checksums[batch]:
            raise RemoteProtocolError("the checksum of the batch is wrong")
        stored = self._data[at + BATCH_HEADER_SIZE : end]
        codec = self._codecs[batch]
        return decompress(codec_of(codec), stored) if codec else stored

    def _flushed(self) -> Iterator[pa.RecordBatch]:
        group, self._group = self._group, _Group()
        return self._decoded(group.batches, group.records)

    def _decoded(self, batches: Sequence[int], records: Sequence[Buffer]) -> Iterator[pa.RecordBatch]:
        if not batches:
            return
        try:
            fields = read_fields(*self._sections(batches, records), self._headers[batches])
        except RemoteProtocolError as error:
            if len(batches) == 1:
                yield from self._damaged(batches[0], str(error))
                return
            for batch, of_batch in zip(batches, records, strict=True):  # one batch is malformed; decode each alone
                yield from self._decoded([batch], [of_batch])
            return
        chosen = self._chosen(fields)
        if len(fields.offset if chosen is None else chosen):
            yield record_columns(fields, self._columns, self._topic, self._partition, chosen)

    def _sections(self, batches: Sequence[int], records: Sequence[Buffer]) -> tuple[Buffer, Ints, Ints]:
        """Return one buffer with the records of the batches, and the start and end of each batch's records in it.

        Decompressed records are joined. Records that were not compressed stay where they are, between the headers of
        batches: copying them would cost more than decoding them.
        """
        if not any(self._codecs[batch] for batch in batches):
            positions, numbered = np.array(self._positions), np.array(batches)
            return self._data, positions[numbered] + BATCH_HEADER_SIZE, positions[numbered + 1]
        sizes = np.fromiter(map(len, records), dtype=np.int64)
        ends = np.cumsum(sizes)
        return b"".join(records), ends - sizes, ends

    def _chosen(self, fields: RecordFields) -> Ints | None:
        """Return the numbers of the records in the range; None if all are. The header may not tell the truth."""
        is_inside = (fields.offset >= self._start) & (fields.offset < self._end)
        return None if is_inside.all() else np.flatnonzero(is_inside)

    def _messages(self, batch: int) -> Iterator[pa.RecordBatch]:
        message = self._data[self._positions[batch] : self._positions[batch + 1]]
        try:
            found = message_columns(message, self._columns, self._topic, self._partition, self._start, self._end)
        except RemoteProtocolError as error:
            yield from self._damaged(batch, str(error))
        else:
            if found.num_rows:
                yield found

    def _damaged(self, batch: int, reason: str) -> Iterator[pa.RecordBatch]:
        at = self._positions[batch]
        return self._reported(at, self._positions[batch + 1] - at, reason)

    def _reported(self, at: int, size: int, reason: str) -> Iterator[pa.RecordBatch]:
        offset = _BASE_OFFSET.unpack_from(self._data, at)[0] if size >= _BASE_OFFSET.size else None
        damage = Damage(self._source, self._origin + at, size, offset, reason)
        return report(damage, self._mode, self._columns, self._topic, self._partition)


def report(damage: Damage, mode: Mode, columns: Sequence[str], topic: str, partition: int) -> Iterator[pa.RecordBatch]:
    """Yield a row for the damage under PERMISSIVE, nothing under DROPMALFORMED. Raises CorruptRecordsError."""
    if mode is Mode.FAILFAST:
        raise CorruptRecordsError(damage)
    if mode is Mode.PERMISSIVE:
        known = {"topic": topic, "partition": partition, "offset": damage.offset, CORRUPT_RECORD: str(damage)}
        row = {name: [known.get(name)] for name in columns}
        yield pa.RecordBatch.from_pydict(row, schema=arrow_schema(columns))
