"""Files that were taken out of their logs and wait to be removed.

A segment or a partition leaves the log at once, by a rename to `.deleted` or `-delete`; its files stay for
`file.delete.delay.ms`, so that whoever still reads by path finds them, and their removal (which may take a file system
long) is not part of any request. The delay is measured by the monotonic clock: a wall clock that is set neither removes
files early nor keeps them. What is left of them when the broker stops is removed when the directory is next
opened. A disk that refuses takes the directory offline, as any other error of it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker.clock import Clock
from broker.storage.disk_failure import DiskFailure
from broker.storage.files import Files


class DeletionJob(NamedTuple):
    """Files, and whole directories, to remove once the monotonic clock says `due`, in seconds."""

    due: float
    files: tuple[str, ...]
    directories: tuple[str, ...]


class Deletions:
    """The jobs of one log directory. The broker calls `run_due` now and then, from a thread: removing files blocks."""

    def __init__(self, files: Files, clock: Clock, failure: DiskFailure) -> None:
        self._files = files
        self._clock = clock
        self._failure = failure
        self._jobs: list[DeletionJob] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, delay_ms: int, files: Iterable[str] = (), directories: Iterable[str] = ()) -> DeletionJob:
        job = DeletionJob(self._clock.monotonic() + delay_ms / 1000, tuple(files), tuple(directories))
        self._jobs.append(job)
        return job

    def run_due(self) -> int:
        """Remove what is due and return how many jobs were done; raises KAFKA_STORAGE_ERROR if the disk fails."""
        self._failure.check()
        now = self._clock.monotonic()
        due = [job for job in self._jobs if job.due <= now]
        for job in due:
            self._jobs.remove(job)
            self._run(job)
        return len(due)

    def _run(self, job: DeletionJob) -> None:
        try:
            for path in job.files:
                self._files.remove(path)
            for path in job.directories:
                self._files.remove_directory(path)
        except OSError as error:
            removing = ", ".join(job.files + job.directories)
            raise self._failure.fail(f"removing {removing}", error) from error
