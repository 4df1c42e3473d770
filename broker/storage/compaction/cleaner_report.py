"""The metrics of compaction, as those of Kafka's cleaner, and a line in the log for every round."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.broker.clock import Clock
from odradek.broker.storage.cleanable import Cleanable
from odradek.broker.storage.compaction.cleaning_job import CleaningDone
from odradek.protocol.plural import pluralize

_MIB = 1 << 20


class CleanerReport:
    """The metrics of one cleaner with all its workers; `dead_workers` counts those that ended by themselves."""

    def __init__(self, clock: Clock) -> None:
        self.dead_workers = 0
        self.max_dirty_percent = 0
        self.max_compaction_delay_seconds = 0.0
        self.last = CleaningDone()
        self._clock = clock
        self._last_run = clock.monotonic()

    @property
    def time_since_last_run_ms(self) -> int:
        return int((self._clock.monotonic() - self._last_run) * 1000)

    @property
    def recopy_percent(self) -> int:
        """The percentage of the bytes read in the last round that were written again."""
        return 100 * self.last.bytes_written // max(self.last.bytes_read, 1)

    def record_candidates(self, parts: Sequence[Cleanable]) -> None:
        """Record the begin of a round with these candidates."""
        self._last_run = self._clock.monotonic()
        self.max_dirty_percent = int(100 * max((part.dirty_ratio for part in parts), default=0.0))
        self.max_compaction_delay_seconds = max((part.delay_ms for part in parts), default=0) / 1000

    def record_round(self, done: CleaningDone) -> None:
        self.last = done


def progress_line(name: str, first_dirty_offset: int, done: CleaningDone) -> str:
    """One sentence about a finished round."""
    seconds = max(done.seconds, 0.001)
    return (
        f"compacted {name}, offsets {first_dirty_offset} to {done.end_offset}: "
        f"{done.bytes_read / _MIB:.1f} to {done.bytes_written / _MIB:.1f} MiB, "
        f"{done.records_read} to {pluralize(done.records_written, 'record')} in {done.seconds:.1f} s "
        f"({done.bytes_read / _MIB / seconds:.1f} MiB/s, {100 * done.indexing_seconds / seconds:.0f} % of it for "
        f"{done.indexed_bytes / _MIB:.1f} MiB of keys); buffer {100 * done.buffer_utilization:.0f} % full"
    )
