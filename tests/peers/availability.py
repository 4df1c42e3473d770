"""Installation of missing peers, and the reaction to its failure."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PEERS = REPOSITORY / ".peers"
"""The directory of installed peers; ignored by git, removed by `make clean`."""


def unavailable(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@contextmanager
def installing() -> Iterator[None]:
    """A lock for installations: the suite runs in several processes."""
    PEERS.mkdir(exist_ok=True)
    with (PEERS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def program(name: str, package: str) -> str:
    """The path of `name`; installs the Debian `package` if it is missing and we are root."""
    if found := shutil.which(name):
        return found
    with installing():
        return shutil.which(name) or _install(name, package)


def _install(name: str, package: str) -> str:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        unavailable(f"{name} is not installed (Debian package {package})")
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-qq", "-y", package]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            unavailable(f"{' '.join(command)} failed: {done.stderr.strip()}")
    found = shutil.which(name)
    if found is None:
        unavailable(f"package {package} brought no {name}")
    return found
