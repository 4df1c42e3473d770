"""Commands with a time limit, which ends their child processes, too."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


def lines_of(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], timeout: float, errors: Path
) -> Iterator[str]:
    """Yield the lines that `command` prints, until it ends or for `timeout` seconds; stderr goes to `errors`."""
    with errors.open("ab") as file:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    timer = threading.Timer(timeout, _end, [process])
    timer.start()
    try:
        assert process.stdout is not None
        yield from process.stdout
    finally:
        timer.cancel()
        _end(process)
        process.wait()


def run(command: Sequence[str], directory: Path, environment: Mapping[str, str], timeout: float) -> str:
    """Return the output of `command`. Raises `SystemExit` with its errors if it fails."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process group of the command, if it still exists."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
