"""A virtual environment with Quix Streams, which needs an earlier confluent-kafka than the rest of the suite.

It is kept in `.peers/`. What it has not itself, pytest and our requirements, comes from this interpreter's environment.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from functools import cache
from pathlib import Path

from tests.peers.availability import PEERS, installing, unavailable

VERSION = "3.28.1"


@cache
def python() -> Path:
    """Return the interpreter of the environment; create it if it is missing."""
    directory = PEERS / f"quixstreams-{VERSION}-{sys.version_info.major}.{sys.version_info.minor}"
    interpreter = directory / "bin" / "python"
    with installing():
        if not (directory / "complete").exists():
            _create(directory, interpreter)
    return interpreter


def _create(directory: Path, interpreter: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    venv.create(directory, symlinks=True, with_pip=False)  # pip would take four seconds; ours installs into it
    install = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet"]
    done = subprocess.run(
        [*install, "--disable-pip-version-check", f"quixstreams=={VERSION}"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        unavailable(f"quixstreams {VERSION} cannot be installed: {done.stderr.strip()}")
    site_packages = next(directory.glob("lib/python*/site-packages"))
    (site_packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    (directory / "complete").touch()
