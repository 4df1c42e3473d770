"""The records of a task's pieces, with its findings handled according to `mode` and `failOnDataLoss`.

| finding | FAILFAST | PERMISSIVE | DROPMALFORMED |
|---|---|---|---|
| damage | an error | a row | nothing |
| missing offsets that nothing explains | an error; nothing if `failOnDataLoss` is `false` | a row | nothing |
| a segment that was removed after the plan | an error; nothing if `failOnDataLoss` is `false` | same | same |

What becomes neither an error nor a row is a warning in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from struct import Struct
from typing import Final

import pyarrow as pa

from odradek.broker.storage.offline.missing_offsets import MissingOffsets, SegmentGoneError, is_explained
from odradek.pipeline.klog import segment_reader
from odradek.pipeline.klog.chunks import Chunk
from odradek.pipeline.klog.joint_decoding import SMALL, JointDecoding
from odradek.pipeline.klog.offset_check import OffsetCheck
from odradek.pipeline.klog.options import KlogOptions
from odradek.pipeline.klog.segment_reader import Found, read_range
from odradek.pipeline.klog.tasks import KlogPiece
from odradek.pipeline.records.damage import Damage, Mode
from odradek.pipeline.records.decoding import decode, report

_LOG = logging.getLogger(__name__)
_BASE_OFFSET: Final = Struct(">q")
_JOINED_BYTES: Final = 1 << 20  # a batch of fewer bytes costs Spark as much as one of these


def read_pieces(
    pieces: Sequence[KlogPiece], options: KlogOptions, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of the pieces in order. Raises CorruptRecordsError, SegmentGoneError, OSError."""
    joint = JointDecoding(columns, partial(_decoded, options, columns))
    buffer = bytearray(min(segment_reader.CHUNK_BYTES, max((piece.weight for piece in pieces), default=0)))
    for piece in pieces:
        try:
            yield from _PieceReader(piece, options, columns, joint, buffer).run()
        except SegmentGoneError as error:
            if options.fail_on_data_loss:
                raise
            _LOG.warning("skipped: %s", error)
    yield from joint.flush()


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in fewer batches, none of them small. They need not be of one partition."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in batches:
            gathered.append(batch)
            size += batch.nbytes
            if size >= _JOINED_BYTES:
                yield _concatenated(gathered)
                gathered, size = [], 0
    except Exception:
        if gathered:
            yield _concatenated(gathered)  # the records in front of the damage
        raise
    if gathered:
        yield _concatenated(gathered)


def _concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class _PieceReader:
    def __init__(
        self,
        piece: KlogPiece,
        options: KlogOptions,
        columns: tuple[str, ...],
        joint: JointDecoding,
        buffer: bytearray,
    ) -> None:
        self._piece = piece
        self._options = options
        self._columns = columns
        self._joint = joint
        self._buffer = buffer
        self._check = OffsetCheck(has_gaps=piece.has_gaps)

    def run(self) -> Iterator[pa.RecordBatch]:
        piece = self._piece
        found: Iterable[Found] = () if piece.range is None else read_range(piece.range, self._check, self._buffer)
        if piece.finding is not None:
            found = (piece.finding,)
        for each in found:
            if isinstance(each, Chunk):
                if each.batches.size < SMALL and not piece.aborted:
                    yield from self._joint.add(piece, each)
                else:
                    yield from self._joint.flush()
                    yield from _decoded(self._options, self._columns, piece, each)
            elif isinstance(each, Damage):
                yield from self._reported(each)
            elif each.overlaps(piece.start_offset, piece.end_offset):
                yield from self._missing(each)

    def _missing(self, missing: MissingOffsets) -> Iterator[pa.RecordBatch]:
        options = self._options
        try:
            if is_explained(missing, self._piece.topic, self._piece.partition):
                self._check.has_gaps = True
                return
        except SegmentGoneError as error:
            if options.fail_on_data_loss:
                raise
            _LOG.warning("skipped: %s", error)
            return
        if options.mode is Mode.FAILFAST and not options.fail_on_data_loss:
            _LOG.warning("skipped: %s", _damage(missing))
            return
        yield from self._reported(_damage(missing))

    def _reported(self, damage: Damage) -> Iterator[pa.RecordBatch]:
        if self._options.mode is Mode.DROPMALFORMED:
            _LOG.warning("skipped: %s", damage)
        yield from self._joint.flush()
        yield from report(damage, self._options.mode, self._columns, self._piece.topic, self._piece.partition)


def _damage(missing: MissingOffsets) -> Damage:
    return Damage(missing.path, missing.position, 0, missing.first, missing.reason)


def _decoded(
    options: KlogOptions, columns: tuple[str, ...], piece: KlogPiece, chunk: Chunk
) -> Iterator[pa.RecordBatch]:
    assert piece.range is not None
    (first_offset,) = _BASE_OFFSET.unpack_from(chunk.batches.data)
    return decode(
        chunk.batches,
        topic=piece.topic,
        partition=piece.partition,
        columns=columns,
        start_offset=piece.start_offset,
        end_offset=piece.end_offset,
        aborted=[(producer, first) for producer, first, last in piece.aborted if last >= first_offset],
        mode=options.mode,
        source=piece.range.path,
        position=chunk.position,
    )
