"""Run directed tests on the broker as it is, and on their mutants: `python -m tests.mutants.directed`.

The last line of the output is a JSON object: for each mutant, the verdict on each of its tests. pytest runs again and
again in one process, because a process for each mutant would import the broker each time.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

import pytest

from tests.mutants.mutants import MUTANTS, Mutant

PASSED: Final = "passed"
FOUND: Final = "found"
"""The verdict on a test that passes on the broker as it is, and fails on the mutant."""

_ROOT = Path(__file__).parents[2]
_IMPORTED_ALREADY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""pytest would rewrite the asserts of the package with its plugin, ours, but the mutants have imported it."""


class _Reports:
    """A plugin that keeps the outcome of each case of a test."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.errors: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.called.append(report.outcome)
        elif report.failed:
            self.errors.append(f"error in {report.when}")

    def outcome(self) -> str:
        """Return "passed" or "failed"; else what kept the test from running."""
        if not self.called:
            return ", ".join(["not run", *self.errors])
        if all(each == PASSED for each in self.called):
            return ", ".join([PASSED, *self.errors])
        return "failed" if "failed" in self.called else ", ".join(self.called)


def run(test: str) -> str:
    """Run one test, with all of its parameters, in this process."""
    reports = _Reports()
    pytest.main([f"{_ROOT / test}", "-q", "-p", "no:cacheprovider", *_IMPORTED_ALREADY], plugins=[reports])
    return reports.outcome()


def verdict(mutant: Mutant, test: str) -> str:
    """Return `FOUND`, or why the test does not prove anything about the mutant."""
    without = run(test)
    if without != PASSED:
        return f"without the mutant: {without}"
    with mutant.applied():
        outcome = run(test)
    return FOUND if outcome == "failed" else f"with the mutant: {outcome}"


def main() -> None:
    with redirect_stdout(sys.stderr):
        verdicts = {each.name: {test: verdict(each, test) for test in each.tests} for each in MUTANTS if each.tests}
    sys.stdout.write(json.dumps(verdicts) + "\n")


if __name__ == "__main__":
    main()
