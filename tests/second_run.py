"""A plugin of pytest for continuous integration: run the few tests that failed once more, alone.

| the run | what follows |
|---|---|
| at most three tests failed | they run again in one process. If they all pass, the run passes, and names them |
| more failed, a worker crashed, an error in collecting, an interruption, no test | the run fails |

A machine that runs everything at once now and then stalls one test for minutes; a test that fails alone is broken. The
report of the run (`--junitxml`) keeps the failures. Load it by `-p tests.second_run`. Workers of xdist ignore it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

import pytest

MOST_FAILED: Final = 3


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondRun(), "second-run")


class SecondRun:
    """Collects the failed tests of a run, and runs them again when it has ended."""

    def __init__(self) -> None:
        self._failed: dict[str, None] = {}  # in order
        self._is_broken = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._is_broken |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None
            self._is_broken |= report.when not in ("setup", "call", "teardown")  # xdist's report of a crash

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        yield  # until the summary is printed, and the workers have ended
        failed = list(self._failed)
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED or self._is_broken or not 0 < len(failed) <= MOST_FAILED:
            return
        terminal = session.config.get_terminal_writer()
        terminal.sep("=", "the failed tests once more, alone", flush=True)
        if _pass_alone(failed, session.config.invocation_params.dir):
            session.exitstatus = pytest.ExitCode.OK
        verdict = "passed" if session.exitstatus == pytest.ExitCode.OK else "did not all pass"
        terminal.line(f"Failed beside others, and {verdict} alone: {len(failed)} of the tests")
        for test in failed:
            terminal.line(f"  {test}", flush=True)


def _pass_alone(tests: Sequence[str], directory: Path) -> bool:
    """Run the tests in one process; whether all pass, and none is skipped.

    The report tells, not the exit status: that is 1 as well if a socket which some client left open is collected as the
    process ends, after all tests.
    """
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary, "report.xml")
        command = [sys.executable, "-m", "pytest", "--numprocesses=0", f"--junitxml={report}", *tests]
        subprocess.run(command, cwd=directory, check=False)
        if not report.exists():
            return False
        [suite] = ET.parse(report).getroot().iter("testsuite")
        have_run = int(suite.get("tests", 0)) == len(tests)
        return have_run and all(suite.get(outcome) == "0" for outcome in ("failures", "errors", "skipped"))
