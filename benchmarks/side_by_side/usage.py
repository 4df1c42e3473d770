"""The CPU time of a process and its children, and their resident memory, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    return found


def cpu_seconds(pid: int) -> float:
    """Return user and system time so far, in steps of the kernel's clock tick (10 ms)."""
    ticks = 0
    for each in family(pid):
        try:
            after_name = Path(f"/proc/{each}/stat").read_text().rpartition(") ")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += int(after_name[11]) + int(after_name[12])
    return ticks / _TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    """Return the present physical memory; pages that two of the processes share count twice."""
    total = 0
    for each in family(pid):
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * _PAGE
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total
