"""The four offset checkpoints of one log directory together (`offset_checkpoints`).

| checkpoint        | an offset of each log                                             |
|-------------------|-------------------------------------------------------------------|
| recovery points   | `recovery_point`                                                  |
| log start offsets | `log_start_offset`, if it is above the base of the first segment  |
| high watermarks   | `high_watermark`                                                  |
| cleaned offsets   | `cleaned_offset`, if it was ever compacted                        |

All methods raise `OSError`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint, Partition
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.names import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS


class Offsets(Protocol):
    """The offsets of a log that are checkpointed."""

    @property
    def recovery_point(self) -> int: ...
    @property
    def first_base_offset(self) -> int: ...

    log_start_offset: int
    high_watermark: int
    cleaned_offset: int | None


class Checkpoints:
    """The checkpoints of the log directory with these logs."""

    def __init__(self, files: Files, directory: str, logs: Mapping[Partition, Offsets]) -> None:
        self._logs = logs
        self.recovery_points = OffsetCheckpoint(files, directory, RECOVERY_POINTS)
        self.log_start_offsets = OffsetCheckpoint(files, directory, LOG_START_OFFSETS)
        self.high_watermarks = OffsetCheckpoint(files, directory, HIGH_WATERMARKS)
        self.cleaned_offsets = OffsetCheckpoint(files, directory, CLEANER_OFFSETS)
        self._all = (self.recovery_points, self.log_start_offsets, self.high_watermarks, self.cleaned_offsets)

    def write_recovery_points(self) -> None:
        self._write(self.recovery_points, lambda log: log.recovery_point)

    def write_log_start_offsets(self) -> None:
        self._write(self.log_start_offsets, _start_in_segment)

    def write_high_watermarks(self) -> None:
        self._write(self.high_watermarks, lambda log: log.high_watermark)

    def write_cleaned_offsets(self) -> None:
        self._write(self.cleaned_offsets, lambda log: log.cleaned_offset)

    def write_all(self) -> None:
        self.write_recovery_points()
        self.write_log_start_offsets()
        self.write_high_watermarks()
        self.write_cleaned_offsets()

    def lower(self, partition: Partition, log: Offsets) -> None:
        """Lower the rows of a log to its offsets, where they are above: it was truncated."""
        self.recovery_points.lower(partition, log.recovery_point)
        self.log_start_offsets.lower(partition, log.log_start_offset)
        self.high_watermarks.lower(partition, log.high_watermark)
        if log.cleaned_offset is None:
            self.cleaned_offsets.drop([partition])
        else:
            self.cleaned_offsets.lower(partition, log.cleaned_offset)

    def drop(self, partitions: Collection[Partition]) -> None:
        """Remove all rows of these names: no log has them now, or the next one is another topic's."""
        for each in self._all:
            each.drop(partitions)

    def _write(self, checkpoint: OffsetCheckpoint, offset_of: Callable[[Offsets], int | None]) -> None:
        def look() -> dict[Partition, int]:
            logs = tuple(self._logs.items())  # a copy: a thread writes checkpoints while logs are created and deleted
            offsets = ((key, offset_of(log)) for key, log in logs)
            return {key: offset for key, offset in offsets if offset is not None}

        checkpoint.write(look)


def _start_in_segment(log: Offsets) -> int | None:
    return log.log_start_offset if log.log_start_offset > log.first_base_offset else None
