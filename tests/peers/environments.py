"""Virtual environments with packages that the suite's own environment cannot have.

They are kept in `.peers/`. What one has not itself, pytest and our requirements, comes from the environment of this
interpreter.
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

QUIX_STREAMS = "quixstreams==3.28.1"  # needs an earlier confluent-kafka than the rest of the suite


@cache
def python(*requirements: str) -> Path:
    """Return the interpreter of an environment with `requirements`; create the environment if it is missing."""
    name = "-".join(requirement.replace("==", "-") for requirement in requirements)
    directory = PEERS / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    interpreter = directory / "bin" / "python"
    with installing():
        if not (directory / "complete").exists():
            _create(directory, interpreter, requirements)
    return interpreter


def _create(directory: Path, interpreter: Path, requirements: tuple[str, ...]) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    venv.create(directory, symlinks=True, with_pip=False)  # pip would take four seconds; ours installs into it
    install = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet"]
    done = subprocess.run(
        [*install, "--disable-pip-version-check", *requirements],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        unavailable(f"{', '.join(requirements)} cannot be installed: {done.stderr.strip()}")
    site_packages = next(directory.glob("lib/python*/site-packages"))
    (site_packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    (directory / "complete").touch()
