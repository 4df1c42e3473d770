"""The end of a command's child processes, which compile a wheel or run the tests of a project."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.wheels import run_in_group

pytestmark = pytest.mark.process


def test_a_timeout_ends_the_children_of_a_command_as_well() -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            run_in_group(["sh", "-c", "sleep 3600 & wait"], timeout=0.1, pass_fds=[writing])
        os.close(writing)
        assert os.read(reading, 1) == b""  # at the end of all processes that have the other end
    finally:
        os.close(reading)


def test_the_output_and_the_status_are_returned() -> None:
    done = run_in_group(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
