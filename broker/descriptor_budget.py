"""The division of the broker's file descriptors between logs and connections.

```
limit (RLIMIT_NOFILE)
├─ files of logs         500 for each log directory, at most half of the limit; if it is more, a quarter of the limit
│                        for all directories together, at most 2,048: `storage.disk.descriptors` closes others
├─ reserve               192, at most a quarter of the limit
│     64                 connections for metrics (`server.http`)
│    128                 listening sockets, metadata, locks, checkpoints and syncs on 18 threads, the cleaner's pipes,
│                        files that answers are being sent from, beyond those above
├─ already open          when the broker is created: an embedded one shares the process with other code
└─ the rest              connections of clients; more of them wait in the backlog, even if max.connections allows more
```

`python -m broker` raises the soft limit to the hard one, as Java does for Kafka. An embedded broker leaves the limits
of its program unchanged and uses what there is. If other code takes descriptors of the budget, an operation without a
descriptor fails for a moment (`storage.disk.disk_errors`), and accepting pauses (`server.listener`).
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import NamedTuple

from odradek.broker.storage.disk.descriptors import DEFAULT_CAPACITY

_RESERVE = 192
# A Fetch of 1,000 partitions reads 1,000 files; to open each costs as much as all else (growth.wide, compiled modules).
# The bound limits memory: an open index may keep 64 KiB (`storage.index.index_file`), all of them 128 MiB.
_MOST_FILES = 2048
_UNLIMITED = 1 << 30
_LEAST = 8  # files of a log directory: the four of a segment, for two logs
# If the hard limit is unlimited, the system may have a lower one that it does not report (macOS).
_STEPS = (1 << 20, 1 << 16, 10_240)


class DescriptorBudget(NamedTuple):
    """The most unused files that each log directory keeps open, and the most connections."""

    files_per_log_dir: int
    connections: int


def descriptor_budget(log_dirs: int, limit: int, open_already: int) -> DescriptorBudget:
    """Divide `limit` descriptors, some of which are already open, between log directories and connections."""
    usual = min(DEFAULT_CAPACITY, limit // 2 // log_dirs)
    files = max(_LEAST, usual, min(_MOST_FILES, limit // 4) // log_dirs)
    reserve = min(_RESERVE, limit // 4)
    return DescriptorBudget(files, max(1, limit - files * log_dirs - reserve - open_already))


def current_budget(log_dirs: int) -> DescriptorBudget:
    """The budget of a broker that is created now, in this process."""
    return descriptor_budget(log_dirs, _number(resource.getrlimit(resource.RLIMIT_NOFILE)[0]), _open_descriptors())


def raise_limit() -> tuple[int, int]:
    """Raise the soft limit of descriptors of this process to the hard one, or as close as the system allows.

    Returns the soft limit before and after.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, *_STEPS):
        if _number(soft) < _number(wanted) <= _number(hard):
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                break
            except (OSError, ValueError):
                continue
    return _number(soft), _number(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _number(limit: int) -> int:
    return _UNLIMITED if limit == resource.RLIM_INFINITY else limit


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())
