"""The batches that a snapshot leaves out: it keeps the last one of each producer, a client may repeat any of five.

After a crash a client repeats the requests whose answers it did not get, the oldest first. A log that knows only the
last batch of that client refuses the others, as if records were missing. So where the log is read anyway, after an
unclean stop or a truncation, the batches before a snapshot are looked up in the log.

Differs from Kafka: it knows one batch of each producer after a crash. The snapshots are the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from odradek.broker.storage.batch_scan import CorruptBatchError, StoredBatch
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.producers.producer_entry import BATCHES_KEPT, ProducerEntry
from odradek.broker.storage.producers.producer_state import ProducerState
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segments import Segments
from odradek.protocol.records.batch_header import BatchHeader

_LOG = logging.getLogger(__name__)

_WINDOWS = (1 << 20, 4 << 20, 16 << 20)
"""Bytes before a snapshot that are looked at, one after the other until enough is found: five batches of 16 KiB of a
dozen producers, of fifty, of two hundred. The heads of 16 MiB of such batches are read in 3 ms."""

_MOST_BATCHES = 10_000
"""A window that will have more is left out: of batches of 100 bytes the first one has six thousand. Five batches of two
thousand producers have then been looked at, in 30 ms."""


def complete_batches(state: ProducerState, segments: Segments, log_start_offset: int) -> None:
    """Give each producer of `state`, just loaded from a snapshot, its last five batches instead of the last one.

    A producer that last wrote long before the snapshot keeps what it has.
    """
    if not len(state):
        return
    try:
        for window in _WINDOWS:
            parts = _parts_before(segments, state.end_offset, window)
            found, count = _producers_in(parts, state.end_offset, log_start_offset)
            known = [(state.entries[each], found.entries[each]) for each in found.entries if each in state.entries]
            for entry, other in known:
                if (other.epoch, other.last_offset) == (entry.epoch, entry.last_offset):
                    entry.batches = other.batches
            if parts[0][0] is segments.first and not parts[0][1]:
                return
            if count * 4 > _MOST_BATCHES or all(_is_complete(entry) for entry, _ in known):
                return
    except (CorruptBatchError, CorruptIndexError) as error:
        _LOG.warning("retries of batches before offset %d may not be known: %s", state.end_offset, error)


def _producers_in(
    parts: list[tuple[Segment, int]], end_offset: int, log_start_offset: int
) -> tuple[ProducerState, int]:
    """The producers of these parts of the log, and how many batches there are."""
    found = ProducerState()
    count = 0
    for segment, position in parts:
        for batch, header in _headers(segment, position, end_offset):
            count += 1
            if header.has_producer_id and not header.is_control and batch.last_offset >= log_start_offset:
                found.add_batch(header, header.base_offset)
    return found, count


def _headers(segment: Segment, position: int, end_offset: int) -> Iterator[tuple[StoredBatch, BatchHeader]]:
    for batch, header in segment.log.headers(position):
        if batch.base_offset >= end_offset:
            return
        yield batch, header


def _parts_before(segments: Segments, end_offset: int, size: int) -> list[tuple[Segment, int]]:
    """The segments that hold about `size` bytes of batches before `end_offset`, oldest first, and where to begin."""
    parts: list[tuple[Segment, int]] = []
    for segment in reversed([each for each in segments if each.base_offset < end_offset]):
        found = segment.locate(end_offset)
        end = segment.size if found is None else found[0]
        begin = 0
        if end > size:
            offsets = segment.indexes.offsets
            begin = (offsets.first_at_position(end - size) or offsets.last()).position
        parts.append((segment, begin))
        size -= end
        if size <= 0:
            break
    return parts[::-1]


def _is_complete(entry: ProducerEntry) -> bool:
    return not entry.batches or len(entry.batches) == BATCHES_KEPT or entry.batches[0].first_sequence == 0
