"""The broker's side of the process that compacts (`cleaner_worker`).

The process starts with the first job. It ends with `stop`, with an aborted job (the next job starts another process),
and with the broker, also if that is killed. It has the lowest priority, except for a log that exceeds
max.compaction.lag.ms, which is compacted at the broker's own priority. A process may lower its priority but not raise
it again, so a new process is started to change it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from threading import Lock

from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import (
    Answers,
    CleanerDiedError,
    CleanerNotStartedError,
    CleaningStoppedError,
    UncleanableLogError,
)
from odradek.broker.storage.compaction.cleaning_job import (
    Answer,
    CleaningDone,
    CleaningFailed,
    CleaningJob,
    NextGroup,
    receive_answer,
    send,
)

_LOG = logging.getLogger(__name__)

_NICENESS = 19  # the lowest niceness, where the idle priority is not available


class CleanerProcess:
    """A worker process, used by one thread; another thread may call `stop`, which is permanent.

    When `clean` ends or is closed before the job is done, the process has ended: it writes nothing any more.
    """

    def __init__(self) -> None:
        self.deaths = 0  # how often it ended by itself
        self._process: subprocess.Popen[bytes] | None = None
        self._is_low_priority = True
        self._lock = Lock()
        self._is_stopped = False
        self._is_aborted = False  # the current job, or the last one

    @property
    def pid(self) -> int | None:
        """The id of the process, None if it does not run."""
        return self._process.pid if self._process is not None else None

    def clean(self, job: CleaningJob, state: CleaningState) -> Answers:
        """Compact a log: a `cleaner.Clean`. Requesting the next group confirms the swap of the last one."""
        process = self._running(is_low_priority=not job.is_overdue)
        state.when_aborted(self._abort)
        message: CleaningJob | NextGroup = job
        is_done = False
        try:
            while not is_done:
                answer = self._ask(process, message)
                if isinstance(answer, CleaningFailed):
                    is_done = True
                    raise _error_of(answer)
                is_done = isinstance(answer, CleaningDone)
                yield answer
                message = NextGroup()
        finally:
            if not is_done:  # the caller stopped early
                self._end(process)

    def stop(self) -> None:
        """Kill the process; a waiting `clean` raises `CleaningStoppedError`. Call `close` when none waits any more."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Kill the process, and wait for its end."""
        self.stop()
        if self._process is not None:
            self._end(self._process)

    def _abort(self) -> None:
        with self._lock:
            self._is_aborted = True
            if self._process is not None:
                self._process.kill()

    def _running(self, *, is_low_priority: bool) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_stopped:
                raise CleaningStoppedError
            if self._process is not None and (self._is_aborted or self._is_low_priority != is_low_priority):
                self._end(self._process)
            self._is_aborted = False
            if self._process is None:
                paths = os.pathsep.join(map(os.path.abspath, sys.path))  # "" is the current directory, of `python -c`
                command = [
                    sys.executable,
                    "-P",
                    "-m",
                    "odradek.broker.storage.compaction.cleaner_worker",
                    str(os.getpid()),
                ]
                environment = {**os.environ, "PYTHONPATH": paths}
                try:
                    self._process = subprocess.Popen(  # noqa: S603 - our own command
                        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
                    )
                except OSError as error:  # neither the log nor its disk is at fault
                    raise CleanerNotStartedError(f"its process cannot be started: {error}") from error
                self._is_low_priority = is_low_priority
                if is_low_priority:
                    _lower_priority(self._process.pid)
            return self._process

    def _ask(self, process: subprocess.Popen[bytes], message: CleaningJob | NextGroup) -> Answer:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send(process.stdin, message)
            answer = receive_answer(process.stdout)
        except BrokenPipeError:
            answer = None
        if answer is not None:
            return answer
        if not self._is_stopped and not self._is_aborted:
            self.deaths += 1
            raise CleanerDiedError("the process that compacted it has ended")
        raise CleaningStoppedError

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.communicate()  # drops what is still in the pipes, closes them and waits
        self._process = None


def _lower_priority(pid: int) -> None:
    """Let a process run only while no other process needs the processor.

    Niceness is not enough: a process that wakes up may wait until a nice process has used up its slice of some
    milliseconds, which beside compaction was most of a producer's 99th percentile (`benchmarks.beside_compaction`).
    """
    try:
        if sys.platform == "linux":
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
            return
    except OSError as error:  # some sandboxes forbid it
        _LOG.info("compaction has niceness instead of the idle priority: %s", error)
    try:
        os.setpriority(os.PRIO_PROCESS, pid, _NICENESS)
    except OSError as error:
        _LOG.warning("compaction runs at the priority of the broker: %s", error)


def _error_of(failed: CleaningFailed) -> Exception:
    return OSError(failed.disk_error, failed.reason) if failed.disk_error else UncleanableLogError(failed.reason)
