"""The socket between the supervisor and one worker.

```
supervisor ──► worker   b"g"  it may begin: the metadata store is there
                        end   the supervisor has ended
worker ──► supervisor   b"s"  it serves clients
                        b"r"  it must not start: another broker has its node id, or its log directories are another's
                        end   it has ended
```

A worker must not outlive its supervisor, for the next one needs its ports and locks. On Linux the kernel kills the
worker then (`PR_SET_PDEATHSIG`); elsewhere the end of this socket does it, a moment later.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
from contextlib import suppress
from enum import Enum
from threading import Thread
from typing import Final, NamedTuple

_PR_SET_PDEATHSIG: Final = 1  # these are of Linux's prctl.h
_PR_SET_NAME: Final = 15


_BEGIN: Final = b"g"


class Report(Enum):
    """What a worker reports. ENDED: nothing more."""

    STARTED = b"s"
    REFUSED = b"r"
    ENDED = b""


class Place(NamedTuple):
    """What a worker learns on its command line: its number, its descriptor of the socket, and who started it."""

    number: int
    descriptor: int
    supervisor_pid: int

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse what `str` returns. Raises `ValueError`."""
        number, descriptor, supervisor_pid = map(int, text.split(":"))
        return cls(number, descriptor, supervisor_pid)

    def __str__(self) -> str:
        return ":".join(map(str, self))


class WorkerEnd:
    """The worker's end: a descriptor that it inherited."""

    def __init__(self, place: Place) -> None:
        """Return when the supervisor lets this worker begin. From here on this process ends with the supervisor.

        Exits if that is dead already, or gives up.
        """
        self._socket = socket.socket(fileno=place.descriptor)
        self._socket.set_inheritable(False)
        if sys.platform == "linux":
            prctl = ctypes.CDLL(None).prctl
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            prctl(_PR_SET_NAME, b"worker %d" % place.number)  # what `ps -o comm` shows
        if os.getppid() != place.supervisor_pid or self._socket.recv(1) != _BEGIN:
            sys.exit(1)
        if sys.platform != "linux":
            Thread(target=self._end_with_supervisor, daemon=True).start()

    def report(self, report: Report) -> None:
        """Send a report. A dead supervisor gets none; this process ends then anyway."""
        with suppress(OSError):
            self._socket.send(report.value)

    def _end_with_supervisor(self) -> None:
        self._socket.recv(1)  # nothing more is ever sent
        os.kill(os.getpid(), signal.SIGKILL)


class SupervisorEnd:
    """The supervisor's end. `for_worker` is the descriptor that the worker inherits; `close_inherited` after that."""

    def __init__(self) -> None:
        self._socket, self._inherited = socket.socketpair()
        self._socket.setblocking(False)
        self._inherited.set_inheritable(True)

    @property
    def for_worker(self) -> int:
        return self._inherited.fileno()

    def close_inherited(self) -> None:
        """Close the worker's descriptor in this process, so that the end of the worker is seen."""
        self._inherited.close()

    def close_own(self) -> int:
        """In a forked worker: close the supervisor's descriptor, and return the worker's."""
        self._socket.close()
        return self._inherited.detach()

    def let_begin(self) -> None:
        """Let the worker begin. Does nothing if it has ended."""
        with suppress(OSError):
            self._socket.send(_BEGIN)

    async def next_report(self) -> Report:
        """Wait for a report."""
        try:
            return Report(await asyncio.get_running_loop().sock_recv(self._socket, 1))
        except ConnectionError:
            return Report.ENDED

    def close(self) -> None:
        self._socket.close()
        self._inherited.close()
