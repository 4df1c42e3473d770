"""The broker's end of the pipe to the process that compacts (`cleaner_worker`).

It is started with the first job and ended by `stop`, by a job that is aborted (the next job starts another), or by the
end of the broker, however that comes about. Its priority is the lowest there is, except for a log that is overdue by
max.compaction.lag.ms, which is compacted at the broker's own priority. A process may lower its priority but not raise
it again, so a new one is started when the other kind is needed.
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
    GoOn,
    receive_answer,
    send,
)

_LOG = logging.getLogger(__name__)

_NICENESS = 19  # the lowest priority where there is none below all others


class CleanerProcess:
    """A worker process, used by one thread; `stop` may come from another, and is for good.

    When `clean` ends or is closed, and the job was not done, the process has ended: it writes nothing any more.
    """

    def __init__(self) -> None:
        self.deaths = 0  # how often it ended without being told to
        self._process: subprocess.Popen[bytes] | None = None
        self._gives_way = True
        self._lock = Lock()
        self._is_stopped = False
        self._is_aborted = False  # the job at hand, or the last one

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""
        return self._process.pid if self._process is not None else None

    def clean(self, job: CleaningJob, state: CleaningState) -> Answers:
        """Compact a log: a `cleaner.Clean`. A group counts as swapped in when the next is asked for."""
        process = self._running(gives_way=not job.is_overdue)
        state.when_aborted(self._abort)
        message: CleaningJob | GoOn = job
        is_done = False
        try:
            while not is_done:
                answer = self._ask(process, message)
                if isinstance(answer, CleaningFailed):
                    is_done = True
                    raise _error_of(answer)
                is_done = isinstance(answer, CleaningDone)
                yield answer
                message = GoOn()
        finally:
            if not is_done:  # nobody wants the rest
                self._end(process)

    def stop(self) -> None:
        """End the process; whoever waits for it gets `CleaningStoppedError`. `close` when nobody does any more."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """End the process, and wait until it has."""
        self.stop()
        if self._process is not None:
            self._end(self._process)

    def _abort(self) -> None:
        with self._lock:
            self._is_aborted = True
            if self._process is not None:
                self._process.kill()

    def _running(self, *, gives_way: bool) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_stopped:
                raise CleaningStoppedError
            if self._process is not None and (self._is_aborted or self._gives_way != gives_way):
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
                except OSError as error:  # says nothing about the log, nor about its disk
                    raise CleanerNotStartedError(f"its process cannot be started: {error}") from error
                self._gives_way = gives_way
                if gives_way:
                    _give_way(self._process.pid)
            return self._process

    def _ask(self, process: subprocess.Popen[bytes], message: CleaningJob | GoOn) -> Answer:
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


def _give_way(pid: int) -> None:
    """Let a process run only where nobody else wants to.

    Niceness alone does not: whoever wakes up may have to wait until a nice process has used up its slice of some
    milliseconds, which beside compaction was most of a producer's 99th percentile (`benchmarks.beside_compaction`).
    """
    try:
        if sys.platform == "linux":
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
            return
    except OSError as error:  # some sandboxes forbid it
        _LOG.info("compaction is nice instead of idle: %s", error)
    try:
        os.setpriority(os.PRIO_PROCESS, pid, _NICENESS)
    except OSError as error:
        _LOG.warning("compaction runs at the priority of the broker: %s", error)


def _error_of(failed: CleaningFailed) -> Exception:
    return OSError(failed.disk_error, failed.reason) if failed.disk_error else UncleanableLogError(failed.reason)
