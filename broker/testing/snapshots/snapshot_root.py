"""The directory that holds the copies of one log directory: beside it, so that files can be linked.

It is removed when nothing refers to it any more, or when the process exits. Its name and its lock are those of an
embedded broker's temporary directory: the next embedded broker removes what a killed process has left
(`startup.embedded_config`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.names import LOCK

_PREFIX = "odradek-snapshots-"


class SnapshotRoot:
    """A temporary directory beside `log_dir`."""

    def __init__(self, log_dir: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=log_dir.absolute().parent))
        lock = OsFiles().lock(str(self.path / LOCK))
        self._remove = weakref.finalize(self, _remove, self.path, lock)
        self._count = 0

    def new_directory(self) -> Path:
        """Create an empty directory for one snapshot."""
        self._count += 1
        directory = self.path / str(self._count)
        directory.mkdir()
        return directory

    def remove(self) -> None:
        """Remove the directory now."""
        self._remove()


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
