"""The rounds of compaction: choose the log with the highest dirty ratio, compact it, swap the new segments in.

```
choose ──► job ──► worker: keys, groups ──► swap each group in ──► cleaned_offset, checkpointed ──► report
   └─ none is due: nothing happens
```
The caller passes the work itself (`log_cleaning`) to `run_once` as `clean`; usually another process does it. It takes a
job and yields group after group; the next group is requested after the last one was swapped in. So a log is compacted
while it is read and appended to. Only a swap takes its lock, for a few renames.

From before its segments are listed until its worker has ended, a log is in progress (`cleaning_state`): retention and
other rounds skip it. Urgent changes, such as its deletion, abort the job: the worker is killed, its output is removed,
and the round ends without an error. A job begins by removing the output of an earlier one, because `.cleaned` files
mean that a swap was not completed (`leftovers`).

A log that cannot be compacted, because a batch in it is damaged or for an unknown reason, is skipped from then on and
counted as uncleanable, as in Kafka; the other logs are compacted. The same happens to a log whose worker has died
`_DEATHS` times in a row; a single death may come from a lack of memory, not from the log. If a file is missing, because
another process removed it, the log is retried after all others. If no worker can be started, or an error is transient
(`disk_errors`), the log is retried in a later round.

Several threads may run rounds at the same time. Kafka's `LogCleaner` and `LogCleanerManager`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from threading import Lock
from typing import NamedTuple

import msgspec

from odradek.broker.clock import Clock
from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.cleanable import Cleanable
from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner_report import CleanerReport, progress_line
from odradek.broker.storage.compaction.cleaning_job import CleanedGroup, CleaningDone, CleaningJob, SegmentToClean
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.segment import Segment
from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.plural import pluralize

_LOG = logging.getLogger(__name__)

_DEATHS = 3  # a log that kills its worker does so each time


class CleanerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one worker: bytes of memory for keys and their load factor, bytes read and written a second."""

    buffer_bytes: int = 128 << 20
    load_factor: float = 0.9
    bytes_per_second: float = float("inf")


class UncleanableLogError(Exception):
    """The worker could not read a log."""


class CleanerNotStartedError(Exception):
    """The system could not start a worker."""


class CleanerDiedError(Exception):
    """The worker ended by itself, or another process killed it."""


class CleaningStoppedError(Exception):
    """The broker stopped the worker: the log is not at fault."""


Answers = Generator[CleanedGroup | CleaningDone, None, None]
Clean = Callable[[CleaningJob, CleaningState], Answers]
"""A function that compacts a log: it yields groups, then the report. Aborting the state stops it earlier.

After its end, or after `close`, nothing is written any more.
Raises `OSError`, `UncleanableLogError`, `CleanerNotStartedError`, `CleanerDiedError` and `CleaningStoppedError`.
"""


class _Candidate(NamedTuple):
    log_dir: LogDir
    log: Log
    part: Cleanable


class Cleaner:
    """The rounds over the logs of some log directories. `report` has the metrics."""

    def __init__(self, log_dirs: Sequence[LogDir], clock: Clock) -> None:
        self.report = CleanerReport(clock)
        self._log_dirs = log_dirs
        self._clock = clock
        self._lock = Lock()
        self._uncleanable: set[Log] = set()
        self._postponed: set[Log] = set()  # those whose last job failed
        self._deaths: Counter[Log] = Counter()  # of workers in a row, by the log that they compacted

    def has_work(self) -> bool:
        """Whether any log has cleanup.policy=compact."""
        return any(log.config.is_compacted for log_dir in self._log_dirs for log in list(log_dir.logs.values()))

    def run_once(self, clean: Clean, settings: CleanerSettings) -> bool:
        """Compact the log with the highest dirty ratio, if any is due; return whether one was compacted."""
        chosen = self._choose()
        if chosen is None:
            return False
        log_dir, log, _ = chosen
        try:
            part = self._cleanable_part(log)  # again: it may have been truncated or configured meanwhile
            if part is None or not part.is_due(log.config) or not log.config.is_compacted:
                return False
            return self._compact(log_dir, log, part, clean, settings)
        except (TransientDiskError, CleanerNotStartedError) as error:
            _LOG.warning("%s was not compacted and will be tried again: %s", log, error)
            with suppress(TransientDiskError):
                log.discard_cleaned()
        except KafkaError as error:  # the directory has failed: its logs are offline
            _LOG.error("%s was not compacted: %s", log, error)
        except FileNotFoundError as error:
            self._postpone(log, error)
        except CleanerDiedError as error:
            self._deaths[log] += 1
            if self._deaths[log] < _DEATHS:
                self._postpone(log, error)
            else:
                self._skip_from_now_on(log, error)
        except (UncleanableLogError, CorruptBatchError, RemoteProtocolError) as error:
            self._skip_from_now_on(log, error)
        finally:
            log.cleaning.end()
        return False

    def _postpone(self, log: Log, error: Exception) -> None:
        _LOG.warning("%s was not compacted and will be tried again: %s", log, error)
        log.discard_cleaned()
        self._postponed.add(log)

    def _skip_from_now_on(self, log: Log, error: Exception) -> None:
        _LOG.error("%s cannot be compacted and is left alone from now on: %s", log, error)
        log.discard_cleaned()
        self._uncleanable.add(log)

    def uncleanable(self, log_dir: LogDir) -> tuple[int, int]:
        """The number of uncleanable logs in a directory, and their bytes."""
        logs = [log for log in tuple(self._uncleanable) if log_dir.logs.get((log.topic, log.partition)) is log]
        return len(logs), sum(log.size_bytes for log in logs)

    # --------------------------------------------------------------------------------------------------------- choosing

    def _choose(self) -> _Candidate | None:
        """The log to compact next, marked as in progress."""
        with self._lock:
            self._forget_deleted()
            candidates = list(self._candidates())
            self.report.record_candidates([candidate.part for candidate in candidates])
            due = [each for each in candidates if each.part.is_due(each.log.config)]
            due.sort(key=lambda each: (each.log not in self._postponed, each.part.dirty_ratio), reverse=True)
            return next((each for each in due if each.log.cleaning.begin()), None)

    def _candidates(self) -> Iterator[_Candidate]:
        for log_dir in self._log_dirs:
            if log_dir.failure.error is not None:
                continue
            for log in list(log_dir.logs.values()):
                if log.config.is_compacted and not log.cleaning.is_in_progress and log not in self._uncleanable:
                    part = self._cleanable_part(log)
                    if part is not None:
                        yield _Candidate(log_dir, log, part)

    def _cleanable_part(self, log: Log) -> Cleanable | None:
        try:
            return log.cleanable_part()
        except KafkaError as error:
            if error.code is ErrorCode.CORRUPT_MESSAGE:  # else it was just deleted, or its directory has failed
                _LOG.error("%s cannot be compacted and is left alone from now on: %s", log, error)
                self._uncleanable.add(log)
            return None

    def _forget_deleted(self) -> None:
        if self._uncleanable or self._deaths or self._postponed:
            present = {log for log_dir in self._log_dirs for log in list(log_dir.logs.values())}
            self._uncleanable &= present
            self._postponed &= present
            for log in self._deaths.keys() - present:
                self._deaths.pop(log, None)

    # ------------------------------------------------------------------------------------------------------- compacting

    def _compact(self, log_dir: LogDir, log: Log, part: Cleanable, clean: Clean, settings: CleanerSettings) -> bool:
        log.discard_cleaned()
        segments = {
            each.base_offset: each
            for each in log.segments.from_offset(0)
            if each.base_offset < part.first_uncleanable_offset
        }
        try:
            job = _job(log, part, list(segments.values()), self._clock.time_ms(), settings)
            with closing(clean(job, log.cleaning)) as answers:
                done = self._run(log_dir, log, part, segments, answers)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise log_dir.failure.fail(f"compacting {log}", error) from error
        except CleaningStoppedError:
            done = None
        if done is None:
            _LOG.info("compaction of %s was stopped", log)
            log.discard_cleaned()
            return False
        self._deaths.pop(log, None)
        self._postponed.discard(log)
        log.cleaned_offset = done.end_offset
        log_dir.checkpoint_cleaned_offsets()
        self.report.record_round(done)
        _LOG.info("%s", progress_line(f"{log.topic}-{log.partition}", part.first_dirty_offset, done))
        if done.invalid_records:
            _LOG.warning("%s: removed %s without a key", log, pluralize(done.invalid_records, "record"))
        return True

    @staticmethod
    def _run(
        log_dir: LogDir,
        log: Log,
        part: Cleanable,
        segments: dict[int, Segment],
        answers: Iterator[CleanedGroup | CleaningDone],
    ) -> CleaningDone | None:
        """Swap in each group; return None if the compaction was aborted."""
        is_synced = False
        for answer in answers:
            if isinstance(answer, CleaningDone):
                return answer
            if not is_synced:
                # A recovery takes missing offsets for batches that a power cut has lost, where nothing was synced yet.
                log.flush(part.first_uncleanable_offset)
                log_dir.checkpoint_recovery_points()
                is_synced = True
            if log.cleaned_offset is None:
                # From the first swap on, readers of the directory need to know why offsets are missing.
                log.cleaned_offset = part.first_dirty_offset
                log_dir.checkpoint_cleaned_offsets()
            if not log.swap_in([segments[base_offset] for base_offset in answer.replaced], answer.sizes):
                break
        return None


def _job(log: Log, part: Cleanable, segments: Sequence[Segment], now_ms: int, settings: CleanerSettings) -> CleaningJob:
    config = log.config
    return CleaningJob(
        directory=str(log.directory),
        segments=[_segment_to_clean(segment) for segment in segments],
        first_dirty_offset=part.first_dirty_offset,
        first_uncleanable_offset=part.first_uncleanable_offset,
        aborted=log.aborted_transactions_below(part.first_uncleanable_offset),
        last_batches={entry.producer_id: (entry.last_offset, entry.epoch) for entry in log.producers},
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        buffer_bytes=settings.buffer_bytes,
        load_factor=settings.load_factor,
        bytes_per_second=settings.bytes_per_second,
        is_overdue=part.delay_ms > 0,
    )


def _segment_to_clean(segment: Segment) -> SegmentToClean:
    offsets, times = segment.indexes.files
    return SegmentToClean(segment.base_offset, segment.size, offsets.size, times.size, segment.log.modified_ms())
