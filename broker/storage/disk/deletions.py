"""Deferred removal of files that are no longer part of a log.

A segment or a partition leaves the log at once, by a rename to `.deleted` or `-delete`. Its files stay for
`file.delete.delay.ms`, so that readers that use their paths still find them, and their removal (which may take a file
system long) is not part of any request. The delay is measured by the monotonic clock, so setting the wall clock changes
nothing. Files that are left when the broker stops are removed when the directory is next opened. A disk error takes the
directory offline, as everywhere. A name that cannot be removed (a mount point, another user's file) is left with a
warning until the directory is next opened.

A partition's directory may be a symbolic link, perhaps to another disk. Then the log's files behind it and the link are
removed; the target directory stays, with whatever else is in it. Kafka does the same, but leaves `partition.metadata`
and `leader-epoch-checkpoint` there. A directory with other files in it is not taken for a new partition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.storage.disk.disk_errors import is_name_error, is_transient
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.names import is_file_of_log
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = logging.getLogger(__name__)

_RETRY_MS = 10_000


class DeletionJob(NamedTuple):
    """Files and whole directories to remove once the monotonic clock reaches `due`, in seconds."""

    due: float
    files: tuple[str, ...]
    directories: tuple[str, ...]


class Deletions:
    """The jobs of one log directory. The broker calls `run_due` periodically on a thread: removing files blocks."""

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
        """Remove the files that are due; return the number of jobs. Raises KAFKA_STORAGE_ERROR if the disk fails."""
        self._failure.check()
        now = self._clock.monotonic()
        due = [job for job in self._jobs if job.due <= now]
        for job in due:
            self._jobs.remove(job)
            self._run(job)
        return len(due)

    def _run(self, job: DeletionJob) -> None:
        files = [path for path in job.files if not self._is_done(path, self._files.remove)]
        remove = partial(remove_partition, self._files)
        directories = [path for path in job.directories if not self._is_done(path, remove)]
        if files or directories:
            self.add(_RETRY_MS, files, directories)

    def _is_done(self, path: str, remove: Callable[[str], None]) -> bool:
        """Remove `path`; return False to retry later."""
        try:
            remove(path)
        except OSError as error:
            if is_transient(error):
                _LOG.warning("%s is not removed yet: %s", path, error.strerror)
                return False
            if not is_name_error(error):
                raise self._failure.fail(f"removing {path}", error) from error
            _LOG.warning("%s cannot be removed before the next start: %s", path, error)
        return True


def clear_directory(files: Files, directory: str) -> None:
    """Remove the files of an older log from a directory where one is created: what a power cut left of it, if any.

    Raises KAFKA_STORAGE_ERROR if it holds files that do not belong to a log, which are kept, and `OSError`.
    """
    try:
        entries = files.scan(directory) if files.exists(directory) else []
    except NotADirectoryError as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory} is not a directory") from error
    others = [entry.name for entry in entries if entry.is_directory or not is_file_of_log(entry.name)]
    if others:
        _LOG.error("%s cannot be a partition, it holds other files: %s", directory, ", ".join(sorted(others)[:3]))
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory} holds files that are not a partition's")
    for entry in entries:
        files.remove(f"{directory}/{entry.name}")


def remove_partition(files: Files, directory: str) -> None:
    """Remove a partition's directory; of a symbolic link, the files of its log and the link. Raises `OSError`."""
    try:
        entries = files.scan(directory)
    except FileNotFoundError:  # it is gone, or a dangling link
        entries = []
    for entry in entries:
        if not entry.is_directory and is_file_of_log(entry.name):
            files.remove(f"{directory}/{entry.name}")
    files.remove_directory(directory)
