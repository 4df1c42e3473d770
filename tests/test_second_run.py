"""The second run of failed tests, on small suites in a temporary directory."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).resolve().parents[1]

PARTS = """
import os
from pathlib import Path

import pytest


def fail_once(name):
    mark = Path(name)
    if not mark.exists():
        mark.touch()
        pytest.fail("beside others")


def test_passes():
    pass
"""
FAILS_ONCE = """
@pytest.mark.parametrize("text", ["ä b::[1]"])
def test_fails_once(text):
    fail_once("mark")
"""
FAILS_IN_SETUP_ONCE = """
@pytest.fixture
def part():
    fail_once("setup")


def test_fails_in_setup_once(part):
    pass
"""
FAILS_ALWAYS = """
def test_fails_always():
    assert not "ever"
"""
FOUR_FAIL_ONCE = """
@pytest.mark.parametrize("number", range(4))
def test_fails_once(number):
    fail_once(f"mark-{number}")
"""
IS_SKIPPED_ALONE = """
def test_is_skipped_alone():
    if Path("mark").exists():
        pytest.skip("nothing to see")
    fail_once("mark")
"""
LEAVES_A_SOCKET_WHEN_ALONE = """
import socket


def test_leaves_a_socket():
    if Path("mark").exists():
        left = [socket.socket()]
        left.append(left)  # a cycle: it is collected as the process ends
    fail_once("mark")
"""
CRASHES_ONCE = """
def test_crashes_once():
    if not Path("mark").exists():
        Path("mark").touch()
        os._exit(1)
"""


class Run(NamedTuple):
    status: int
    output: str
    report: ET.Element

    @property
    def has_second(self) -> bool:
        return "once more, alone" in self.output


Runs = Callable[..., Run]


@pytest.fixture
def run(tmp_path: Path) -> Runs:
    def run(*tests: str, workers: int = 0, options: str = "") -> Run:
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{options}")
        (tmp_path / "test_parts.py").write_text(PARTS + "".join(tests))
        arguments = ["-p", "tests.second_run", "--junitxml=report.xml", f"--numprocesses={workers}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        [suite] = ET.parse(tmp_path / "report.xml").getroot().iter("testsuite")
        return Run(done.returncode, done.stdout, suite)

    return run


def test_a_run_without_failures_has_no_second(run: Runs) -> None:
    found = run()
    assert (found.status, found.has_second) == (0, False)


@pytest.mark.parametrize("workers", [0, 2])
def test_tests_that_pass_alone_are_named_and_the_run_passes(run: Runs, workers: int) -> None:
    found = run(FAILS_ONCE, FAILS_IN_SETUP_ONCE, workers=workers)
    assert found.status == 0, found.output
    ending = found.output.partition("Failed beside others, and passed alone: 2 of the tests\n")[2]
    assert sorted(ending.splitlines()) == [
        "  test_parts.py::test_fails_in_setup_once",
        r"  test_parts.py::test_fails_once[\xe4 b::[1]]",
    ]
    assert (found.report.get("tests"), found.report.get("skipped")) == ("3", "0")


def test_a_test_that_also_fails_alone_fails_the_run(run: Runs) -> None:
    found = run(FAILS_ONCE, FAILS_ALWAYS)
    assert found.status == 1
    assert "Failed beside others, and did not all pass alone: 2 of the tests\n" in found.output


def test_more_than_three_failures_are_not_run_again(run: Runs) -> None:
    found = run(FOUR_FAIL_ONCE)
    assert (found.status, found.has_second) == (1, False)


def test_a_test_that_is_skipped_alone_fails_the_run(run: Runs) -> None:
    assert run(IS_SKIPPED_ALONE).status == 1


def test_what_is_collected_after_the_last_test_does_not_count(run: Runs) -> None:
    errors = ("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
    found = run(LEAVES_A_SOCKET_WHEN_ALONE, options="\n    ".join(["filterwarnings =", *errors]))
    assert "unclosed <socket" in found.output
    assert found.status == 0, found.output


def test_a_crash_fails_the_run(run: Runs) -> None:
    found = run(CRASHES_ONCE, workers=1)
    assert "crashed while running" in found.output
    assert (found.status, found.has_second) == (1, False)


def test_an_error_in_collecting_fails_the_run(run: Runs) -> None:
    found = run(FAILS_ONCE, "\nraise ValueError\n")
    assert (found.status, found.has_second) == (2, False)


def test_a_run_without_tests_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.second_run"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode == 5
