"""One worker as its supervisor sees it: a process, and another one by exec after it has ended.

```
start ─► serves ─► ends ─► pause ─► start …      the pause is 0.1 s, doubled up to 10 s; 0.1 s again after a minute
  └─ refused, or worker 0 ends before it serves: the supervisor ends, too
```
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from odradek.broker.clock import Clock
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.workers.first_processes import WaitingProcess
from odradek.broker.workers.link import Place, Report, SupervisorEnd

_LOG = StructuredLogger(__name__)

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
_NOT_STARTED: Final = 127
"""The status of a shell's command that cannot be started."""
_ENDING_SECONDS: Final = 0.005
_LASTS_SECONDS: Final = 60.0
"""A worker that ran for so long begins with the first pause again."""


class WorkerRefusedError(Exception):
    """A worker must not run here; it has printed why."""


class WorkerProcess:
    """Worker `number`, whose command line begins with `arguments`; `first`: its process, if it is there already."""

    def __init__(
        self, number: int, arguments: Sequence[str], clock: Clock, first: WaitingProcess | None = None
    ) -> None:
        self._number = number
        self._arguments = arguments
        self._clock = clock
        self._log = _LOG.bind(worker=number)
        self._first = first
        self._pid: int | None = None
        self._stopping = asyncio.Event()
        self._serves = False
        self._has_served = False

    async def keep(self) -> int:
        """Run the process, again and again, until `stop`; return the exit status of the last one.

        Raises `WorkerRefusedError`, also if the first process of worker 0 ends before it serves clients.
        """
        pause = _FIRST_PAUSE
        while True:
            started = self._clock.monotonic()
            status = await self._run()
            if self._stopping.is_set():
                # A signal ends a process that is still being loaded: nothing was open.
                return 0 if status == -signal.SIGTERM and not self._serves else status
            lasted = self._clock.monotonic() - started
            pause = _FIRST_PAUSE if lasted >= _LASTS_SECONDS else pause
            self._log.error("worker ended", status=_status_text(status), seconds=round(lasted, 1), again_in_s=pause)
            if await self._is_stopped_within(pause):
                return status
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _is_stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._stopping.wait()
        except TimeoutError:
            return False

    def stop(self) -> None:
        """Let the process stop as a broker does, and start no other."""
        self._stopping.set()
        if self._pid is not None:
            os.kill(self._pid, signal.SIGTERM)

    async def _run(self) -> int:
        self._serves = False
        try:
            process = self._first or self._start()
        except OSError as error:  # no memory or descriptors: there may be some again
            self._log.error("worker cannot be started", reason=str(error))
            return _NOT_STARTED
        self._first, self._pid = None, process.pid
        self._log.info("worker begins", pid=process.pid)
        try:
            if self._stopping.is_set():
                self.stop()
            process.link.let_begin()
            is_refused = await self._follow(process.link)
            status = await self._end(process.pid)
        finally:
            process.link.close()
        if is_refused or (self._number == 0 and not self._has_served and not self._stopping.is_set()):
            raise WorkerRefusedError
        return status

    def _start(self) -> WaitingProcess:
        link = SupervisorEnd()
        place = Place(self._number, link.for_worker, os.getpid())
        command = [sys.executable, "-P", "-m", "odradek.broker", *self._arguments, "--worker", str(place)]
        paths = os.pathsep.join(map(os.path.abspath, sys.path))  # also where the packages lie in a checkout
        pid = os.posix_spawn(sys.executable, command, {**os.environ, "PYTHONPATH": paths}, setpgroup=0)
        link.close_inherited()
        return WaitingProcess(pid, link)

    async def _end(self, pid: int) -> int:
        """Wait for the end of a process that has closed its link; return its exit status, or minus a signal."""
        while (status := _exit_status(pid)) is None:  # noqa: ASYNC110 - milliseconds, after the end of its link
            await asyncio.sleep(_ENDING_SECONDS)
        self._pid = None
        return status

    async def _follow(self, link: SupervisorEnd) -> bool:
        """Return when the process has ended, or is about to: whether it was refused, and has never served before."""
        is_refused = False
        while (report := await link.next_report()) is not Report.ENDED:
            if report is Report.STARTED:
                self._serves = self._has_served = True
                self._log.info("worker serves")
            else:
                is_refused = not self._has_served
        return is_refused


def _exit_status(pid: int) -> int | None:
    """Return the exit status of a child process, or minus a signal; None while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _status_text(status: int) -> str:
    """Return an exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
