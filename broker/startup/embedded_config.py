"""The configuration of an embedded broker, which a program starts in its own process, in a test for example.

Its temporary directory is in memory if there is room. What killed processes have left there is removed by the next
start: a lock that nobody holds shows it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from odradek.broker.clock import SystemClock
from odradek.broker.config import BrokerConfig
from odradek.broker.storage.names import LOCK

READ_ONLY = {"auto.create.topics.enable": "false"}
"""Properties of a read-only broker, which override its configuration."""

MEMORY = Path("/dev/shm")  # noqa: S108 - `mkdtemp` makes a directory that nobody else can open
LEAST_MEMORY_BYTES = 1 << 30
"""The space that must be free in `MEMORY`. A container has 64 MiB there by default."""

_PREFIX = "odradek-"
_ABANDONED_SECONDS = 60
_DEFAULTS = {"listeners": "PLAINTEXT://127.0.0.1:0", "group.initial.rebalance.delay.ms": "0"}


def embedded_config(properties: Mapping[str, str]) -> tuple[BrokerConfig, Path | None]:
    """Return the configuration, and the temporary log directory if the properties name none.

    Raises as `BrokerConfig.load` does.
    """
    directory = None
    overrides = {**_DEFAULTS, **properties}
    if not {"log.dirs", "log.dir"} & overrides.keys():
        directory = _temporary_directory()
        overrides["log.dirs"] = str(directory)
    try:
        return BrokerConfig.load(None, overrides), directory
    except BaseException:
        if directory is not None:
            directory.rmdir()
        raise


def _temporary_directory() -> Path:
    """Create a directory in memory if there is room, else in the usual place of temporary files; TMPDIR overrides.

    The files of a group's 50 partitions are removed in 8 ms in memory, on a disk in 30 to 100.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return Path(tempfile.mkdtemp(prefix=_PREFIX))
    remove_abandoned(MEMORY)
    has_room = shutil.disk_usage(MEMORY).free >= LEAST_MEMORY_BYTES
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=MEMORY if has_room else None))


def remove_abandoned(parent: Path) -> None:
    """Remove the directories of embedded brokers in `parent` whose processes were killed."""
    for directory in parent.glob(f"{_PREFIX}*"):
        try:
            if SystemClock().time_ms() / 1000 - directory.stat().st_mtime < _ABANDONED_SECONDS:
                continue  # perhaps not locked yet
            with (directory / LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
        except OSError:
            continue  # in use, of another user, or removed meanwhile
