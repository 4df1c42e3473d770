"""The lock of a directory is seen while a broker holds it, for the locks of both brokers."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker.storage.offline.directory_lock import is_locked

_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+")
getattr(fcntl, sys.argv[2])(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_directory_without_a_lock_file_is_not_locked(tmp_path: Path) -> None:
    assert not is_locked(str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.process
@pytest.mark.parametrize("call", ["flock", "lockf"])
def test_the_lock_of_another_process_is_seen_and_left_alone(tmp_path: Path, call: str) -> None:
    path = tmp_path / ".lock"
    path.touch()
    assert not is_locked(str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path), call], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        assert is_locked(str(tmp_path))
        with path.open("r+") as file, pytest.raises(BlockingIOError):
            getattr(fcntl, call)(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder.communicate()
    assert not is_locked(str(tmp_path))


def test_the_lock_of_this_process_is_seen(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    for lock in (fcntl.flock, fcntl.lockf):
        with path.open("w") as file:
            lock(file, fcntl.LOCK_EX)
            assert is_locked(str(tmp_path))
        assert not is_locked(str(tmp_path))
