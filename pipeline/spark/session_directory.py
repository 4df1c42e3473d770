"""The directory of this process for what its Spark needs on this machine: a script, and sockets. Nobody else enters it.

It goes when this process ends, and after its Java.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path


@functools.cache
def session_directory() -> Path:
    """The directory, which only this user may enter; made at the first call."""
    return Path(_made().name)


@functools.cache
def _made() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="odradek-workers-", ignore_cleanup_errors=True)
