"""Processor time of Spark and the broker, by kind of process.

The kernel adds the time of an ended process to its parent when the parent waits for it. So the time of all living
processes and their ended children is complete, also for Python workers that live for one query.

| kind | processes |
|---|---|
| driver | the benchmark itself: PySpark, the client of the latency |
| tasks | Java's threads that run tasks |
| compiler | Java's threads that compile |
| java | the rest of Java: the driver's planning, garbage collection |
| workers | Python processes that Java has started, also those that have ended |
| broker | the broker |
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.side_by_side.usage import family

KINDS = ("driver", "tasks", "compiler", "java", "workers", "broker")

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_JAVA = "java"
_THREADS = {"Executor task ": "tasks", "C1 Compiler": "compiler", "C2 Compiler": "compiler"}  # starts of names


def processor_seconds(broker: int) -> dict[str, float]:
    """Return the user and system time so far of each kind; `broker` is the broker's process id."""
    ticks = dict.fromkeys(KINDS, 0)
    for process in family(os.getpid()):
        try:
            name, own, ended = _times(Path(f"/proc/{process}/stat"))
            threads = _threads(process) if name == _JAVA else {}
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        if name == _JAVA:
            for kind, spent in threads.items():
                ticks[kind] += spent
            ticks["java"] += own - sum(threads.values())
            ticks["workers"] += ended
        else:
            kind = {os.getpid(): "driver", broker: "broker"}.get(process, "workers")
            ticks[kind] += own + ended
    return {kind: number / _TICKS_PER_SECOND for kind, number in ticks.items()}


def _threads(process: int) -> dict[str, int]:
    """Return the ticks of Java's threads of known kinds. A thread that has ended counts as `java`."""
    found: dict[str, int] = {}
    for thread in Path(f"/proc/{process}/task").iterdir():
        try:
            name, own, _ = _times(thread / "stat")
        except (FileNotFoundError, ProcessLookupError):
            continue
        for start, kind in _THREADS.items():
            if name.startswith(start):
                found[kind] = found.get(kind, 0) + own
    return found


def _times(stat: Path) -> tuple[str, int, int]:
    """Return the name of a process or thread, its own ticks, and those of its children that have ended."""
    start, _, rest = stat.read_text().rpartition(") ")
    fields = rest.split()
    return start.partition("(")[2], int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
