"""A log at one moment: its bounds, its segments, and the files that make it up.

```
closed segment   .log .index .timeindex .txnindex    nobody writes to them any more: a hard link keeps them as they are
active segment   .log .index .timeindex .txnindex    grow behind `size`: the bytes up to there must be copied
small files      leader epochs, topic id, snapshots  replaced as a whole, never rewritten: a hard link keeps them
```

So a copy of a log costs no more than its active segment. Appends leave everything in a state as it is; a truncation
below its end, retention and compaction do not. `is_beginning_of` compares it with what a log has become.

The time index of an active segment may lack the entry of the largest timestamp, which a clean stop adds: `tail` has it.
The snapshot of the producers at the end of the log has only those in an open transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.storage.index.time_index import TimestampOffset
from odradek.broker.storage.names import SNAPSHOT_SUFFIX, file_name
from odradek.broker.storage.producers.producer_snapshots import decode_snapshot
from odradek.broker.storage.producers.producer_state import ProducerEntry

if TYPE_CHECKING:
    from odradek.broker.storage.log_reader import LogReader
    from odradek.broker.storage.segment import Segment


class LogFileState(NamedTuple):
    """One file: the bytes up to `size`, then those of `tail`. `is_final`: nobody writes to it any more."""

    path: str
    size: int
    is_final: bool
    tail: bytes = b""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class LogState(NamedTuple):
    """See the module. `active_size` and `largest` (timestamp) are those of the last segment.

    `producers` is the snapshot at the end of the log.
    """

    segments: tuple[Segment, ...]
    log_start_offset: int
    log_end_offset: int
    cleaned_offset: int | None
    active_size: int
    largest: TimestampOffset
    producers: bytes
    files: tuple[LogFileState, ...]

    def open_producers(self) -> list[ProducerEntry]:
        """The producers in an open transaction, as a start reads them from the snapshot."""
        return decode_snapshot(self.producers)

    @property
    def snapshot_name(self) -> str | None:
        """The name of the file for `producers`; None for a log that ends at 0, which needs none."""
        return file_name(self.log_end_offset, SNAPSHOT_SUFFIX) if self.log_end_offset else None

    def is_beginning_of(self, log: LogReader) -> bool:
        """Whether `log` can have become as it is by appends alone; the caller excludes truncations."""
        segments = tuple(log.segments)[: len(self.segments)]
        return (
            log.log_start_offset == self.log_start_offset
            and log.log_end_offset >= self.log_end_offset
            and len(segments) == len(self.segments)
            and all(now is before for now, before in zip(segments, self.segments, strict=True))
        )


def state_of(
    segments: tuple[Segment, ...],
    log_start_offset: int,
    log_end_offset: int,
    cleaned_offset: int | None,
    producers: bytes | bytearray,
    snapshots: tuple[str, ...],
) -> LogState:
    """The state of a log with these parts; `snapshots` are the paths of those below its end."""
    active = segments[-1]
    files = [file for segment in segments[:-1] for file in _files_of(segment, is_final=True)]
    files += _files_of(active, is_final=False)
    files += [LogFileState(path, 0, is_final=True) for path in snapshots]
    return LogState(
        segments,
        log_start_offset,
        log_end_offset,
        cleaned_offset,
        active.size,
        active.largest_timestamp(),
        bytes(producers),
        tuple(files),
    )


def _files_of(segment: Segment, *, is_final: bool) -> list[LogFileState]:
    offsets, times = segment.indexes.files
    if not (offsets.exists and times.exists):
        offsets, times = segment.indexes.offsets, segment.indexes.times  # which rebuilds them
    tail = b"" if is_final else times.missing_entry(*segment.largest_timestamp())
    files = [
        LogFileState(segment.log.path, segment.size, is_final),
        LogFileState(offsets.path, offsets.size, is_final),
        LogFileState(times.path, times.size, is_final, tail),
    ]
    if segment.transaction_index.exists:
        transactions = segment.transaction_index
        files.append(LogFileState(transactions.path, transactions.size, is_final))
    return files
