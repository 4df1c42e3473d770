"""Processes that the example starts beside itself: how they find the project, and that none is left behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import odradek

_ROOT = Path(odradek.__file__).resolve().parents[1]
_ENDED_WITHIN_S = 30


@contextmanager
def running(command: Sequence[str], output: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose output goes to a new file, in whose directory it runs; it has ended when the `with` ends.

    It is asked to end, as by SIGTERM, and killed if it has not after half a minute.
    """
    with output.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - a command of our own
            command, cwd=output.parent, env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def environment() -> dict[str, str]:
    """That of this process, in which another interpreter finds the project."""
    paths = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
