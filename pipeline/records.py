"""Record batches as Arrow columns, some megabytes at a time, never a record at a time.

```
raw ─► heads, one by one ─► left out: markers, aborted, outside the range      (here, `aborted`)
          │ checksum, decompression
          ▼
       a group of batches, decompressed ─► where records start                 (`record_starts`)
                                        ─► where their fields lie              (`record_fields`)
                                        ─► a pyarrow.RecordBatch               (`columns`)
```
A group ends once it has `GROUP_BYTES`, so memory is bounded by that and by the largest batch, and the 32 bits that
Arrow has for the places of bytes are enough. Messages of magic 0 and 1 go another, slow way (`old_messages`).

A damaged batch is reported as the mode says (`damage`), and those behind it are read. Where not even the length of a
batch can be true, what remains of the buffer is one damage.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.aborted import AbortedFilter
from pipeline.columns import record_columns
from pipeline.damage import CorruptRecordsError, Damage, Mode
from pipeline.old_messages import message_columns
from pipeline.record_fields import RecordFields, read_fields
from pipeline.schema import CORRUPT_RECORD, PLAIN_COLUMNS, arrow_schema
from pipeline.varints import Ints
from protocol.compression import decompress
from protocol.errors import RemoteProtocolError
from protocol.message_set import MAGIC_POSITION
from protocol.primitives import Buffer
from protocol.records import BATCH_HEADER_SIZE, LOG_OVERHEAD, BatchHeader, crc_is_valid, read_batch_header

GROUP_BYTES: Final = 4_000_000  # the fixed part of decoding a group is 0.4 ms: of 2 MB it would be half of all
MAX_OFFSET: Final = (1 << 63) - 1
_HEAD: Final = Struct(">qi")  # base offset, length: of every format
_MIN_LENGTH: Final = (14, 22, BATCH_HEADER_SIZE - LOG_OVERHEAD)  # by magic


class WholeBatches(NamedTuple):
    """What a buffer begins with: `size` bytes of complete batches; the offset behind the last one, None without any.

    If what follows is cut off, `needed` is how many bytes it takes, or 0 if not even that is there; if it can be no
    batch, `flaw` says why.
    """

    size: int
    next_offset: int | None
    needed: int = 0
    flaw: str | None = None


class _NoBatchError(RemoteProtocolError):
    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position


class _Batch(NamedTuple):
    position: int
    header: BatchHeader
    decompressed: bytes | None


def whole_batches(raw: Buffer) -> WholeBatches:
    """How much of `raw` is complete batches of any format, and where reading goes on, gaps and markers included.

    It ends where a batch is cut off, as the last one of an answer to Fetch may be, or has an impossible length.
    """
    view = memoryview(raw)
    position, next_offset = 0, None
    try:
        for position, size in _entries(view):
            base_offset = _HEAD.unpack_from(view, position)[0]
            is_batch = view[position + MAGIC_POSITION] >= 2
            next_offset = read_batch_header(view, position).next_offset if is_batch else base_offset + 1
            position += size
    except _NoBatchError as error:
        return WholeBatches(position, next_offset, flaw=str(error))
    has_length = len(view) - position > MAGIC_POSITION
    needed = LOG_OVERHEAD + _HEAD.unpack_from(view, position)[1] if has_length else 0
    return WholeBatches(position, next_offset, needed)


def decode(
    raw: Buffer,
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
    """Yield the records of `raw` with offsets in [start_offset, end_offset), as columns of `schema.arrow_schema`.

    `raw` is batches one after another and may end inside one, which is left out. `columns` are those of
    `schema.column_names`, in any number and order. `aborted` are transactions to leave out: producer id and first
    offset, as an answer to Fetch has them. `source` and `position` say in errors where `raw` comes from. The arrays
    yielded hold no reference to `raw`. Raises CorruptRecordsError under FAILFAST, after the records before the damage.
    """
    source = source or f"{topic}-{partition}"
    view = memoryview(raw)
    reading = _Reading(view, source, position, topic, partition, tuple(columns), start_offset, end_offset, mode)
    return reading.run(AbortedFilter(aborted))


class _Reading:
    """One call of `decode`."""

    def __init__(
        self,
        view: memoryview,
        source: str,
        origin: int,
        topic: str,
        partition: int,
        columns: tuple[str, ...],
        start_offset: int,
        end_offset: int,
        mode: Mode,
    ) -> None:
        self._view = view
        self._source = source
        self._origin = origin
        self._topic = topic
        self._partition = partition
        self._columns = columns
        self._start = start_offset
        self._end = end_offset
        self._mode = mode

    def run(self, filter_: AbortedFilter) -> Iterator[pa.RecordBatch]:
        group: list[_Batch] = []
        group_bytes = 0
        try:
            for at, size in _entries(self._view):
                if self._view[at + MAGIC_POSITION] < 2:
                    yield from self._decoded(group)
                    group, group_bytes = [], 0
                    yield from self._messages(at, size)
                    continue
                header = read_batch_header(self._view, at)
                try:
                    if filter_.leaves_out(self._view, at, header) or not self._concerns(header):
                        continue
                    batch = self._batch(at, header)
                except RemoteProtocolError as error:
                    yield from self._decoded(group)
                    group, group_bytes = [], 0
                    yield from self._damaged(at, size, str(error))
                    continue
                group.append(batch)
                group_bytes += header.size if batch.decompressed is None else len(batch.decompressed)
                if group_bytes >= GROUP_BYTES:
                    yield from self._decoded(group)
                    group, group_bytes = [], 0
        except _NoBatchError as error:
            yield from self._decoded(group)
            yield from self._damaged(error.position, len(self._view) - error.position, str(error))
        else:
            yield from self._decoded(group)

    def _concerns(self, header: BatchHeader) -> bool:
        return header.last_offset >= self._start and header.base_offset < self._end

    def _batch(self, at: int, header: BatchHeader) -> _Batch:
        if not crc_is_valid(self._view, at, header):
            raise RemoteProtocolError("the checksum of the batch is wrong")
        if not header.codec:
            return _Batch(at, header, None)
        return _Batch(at, header, decompress(header.codec, self._records(at, header)))

    def _records(self, at: int, header: BatchHeader) -> memoryview:
        return self._view[at + BATCH_HEADER_SIZE : at + header.size]

    def _decoded(self, group: Sequence[_Batch]) -> Iterator[pa.RecordBatch]:
        if not group:
            return
        try:
            fields = read_fields(*self._sections(group), [batch.header for batch in group])
        except RemoteProtocolError as error:
            if len(group) == 1:
                yield from self._damaged(group[0].position, group[0].header.size, str(error))
                return
            for batch in group:  # one of them is malformed; the others are whole
                yield from self._decoded([batch])
            return
        chosen = self._chosen(group, fields)
        if len(fields.offset if chosen is None else chosen):
            yield record_columns(fields, self._columns, self._topic, self._partition, chosen)

    def _sections(self, group: Sequence[_Batch]) -> tuple[Buffer, list[tuple[int, int]]]:
        """The records of the batches, in one buffer, and from where to where those of each lie in it.

        What was compressed has to be put together. All else is left where it is, in front of and behind the headers of
        batches: to copy it would cost more than to decode it.
        """
        if all(batch.decompressed is None for batch in group):
            first, last = group[0].position, group[-1].position + group[-1].header.size
            sections = [(at - first + BATCH_HEADER_SIZE, at - first + header.size) for at, header, _ in group]
            return self._view[first:last], sections
        pieces = [self._records(at, header) if found is None else found for at, header, found in group]
        ends = list(itertools.accumulate(map(len, pieces)))
        return b"".join(pieces), [(end - len(piece), end) for end, piece in zip(ends, pieces, strict=True)]

    def _chosen(self, group: Sequence[_Batch], fields: RecordFields) -> Ints | None:
        if group[0].header.base_offset >= self._start and group[-1].header.last_offset < self._end:
            return None
        return np.flatnonzero((fields.offset >= self._start) & (fields.offset < self._end))

    def _messages(self, at: int, size: int) -> Iterator[pa.RecordBatch]:
        message = self._view[at : at + size]
        try:
            found = message_columns(message, self._columns, self._topic, self._partition, self._start, self._end)
        except RemoteProtocolError as error:
            yield from self._damaged(at, size, str(error))
        else:
            if found.num_rows:
                yield found

    def _damaged(self, at: int, size: int, reason: str) -> Iterator[pa.RecordBatch]:
        offset = _HEAD.unpack_from(self._view, at)[0] if size >= _HEAD.size else None
        damage = Damage(self._source, self._origin + at, size, offset, reason)
        yield from report(damage, self._mode, self._columns, self._topic, self._partition)


def report(damage: Damage, mode: Mode, columns: Sequence[str], topic: str, partition: int) -> Iterator[pa.RecordBatch]:
    """The row that stands for a damage under PERMISSIVE; nothing if it is dropped, CorruptRecordsError if it fails."""
    if mode is Mode.FAILFAST:
        raise CorruptRecordsError(damage)
    if mode is Mode.PERMISSIVE:
        known = {"topic": topic, "partition": partition, "offset": damage.offset, CORRUPT_RECORD: str(damage)}
        row = {name: [known.get(name)] for name in columns}
        yield pa.RecordBatch.from_pydict(row, schema=arrow_schema(columns))


def _entries(view: memoryview) -> Iterator[tuple[int, int]]:
    """Position and size of every complete batch or message of any format.

    Raises _NoBatchError where none can be; one that is cut off ends the iteration.
    """
    at, end = 0, len(view)
    while end - at > MAGIC_POSITION:
        length, magic = _HEAD.unpack_from(view, at)[1], view[at + MAGIC_POSITION]
        if magic >= len(_MIN_LENGTH):
            raise _NoBatchError(at, f"a batch of magic {magic}, which is none")
        if length < _MIN_LENGTH[magic]:
            raise _NoBatchError(at, f"a batch of length {length}, less than its header takes")
        if at + LOG_OVERHEAD + length > end:
            return
        yield at, LOG_OVERHEAD + length
        at += LOG_OVERHEAD + length
