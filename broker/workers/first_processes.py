"""The first processes of all workers: forked, so that they share one import of the broker, in time and in memory.

```
import the broker ─► fork each worker ─► open the metadata store ─► let them begin
```

A fork is safe only while a process has one thread and nothing open, so these are forked before the supervisor does
anything else, and wait. A worker that has ended is started by exec. On systems other than Linux the first ones are,
too: their libraries do not all survive a fork.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Final, NamedTuple

from odradek.broker.workers.link import Place, SupervisorEnd

_IMPORTED: Final = (
    "odradek.broker.broker",
    "odradek.broker.interbroker.replication",
    "odradek.broker.metrics.collectors.dialects",
    "odradek.broker.server.status",
)
"""What every worker imports as it starts."""


class WaitingProcess(NamedTuple):
    """A process that begins when its link lets it."""

    pid: int
    link: SupervisorEnd


def fork_workers(count: int) -> list[WaitingProcess] | Place:
    """Fork so many workers. Returns them in this process, and in each of them its place.

    Returns none where workers are not forked.
    """
    waiting: list[WaitingProcess] = []
    if sys.platform != "linux":
        return waiting
    for name in _IMPORTED:
        import_module(name)
    gc.collect()
    gc.freeze()  # a collection would write to every object, and so end the sharing of its page
    supervisor = os.getpid()
    for number in range(count):
        link = SupervisorEnd()
        pid = os.fork()
        if pid == 0:
            for other in waiting:
                other.link.close()
            os.setpgid(0, 0)  # Ctrl-C reaches the supervisor alone, which stops its workers
            return Place(number, link.close_own(), supervisor)
        link.close_inherited()
        waiting.append(WaitingProcess(pid, link))
    return waiting
