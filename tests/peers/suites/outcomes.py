"""The results of a suite's tests, compared with the expected ones."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

KNOWN_FAILURES = Path(__file__).parent / "known_failures.toml"


class Result(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass
class Outcome:
    """The result of one test; `output` is the end of a failed one's output."""

    result: Result
    output: str = ""


Outcomes = dict[str, Outcome]
"""By the test's name; the name of an inner test follows the outer one after a slash."""


@dataclass(frozen=True)
class Expectations:
    """Tests of a suite that are expected to fail, or to fail sometimes, and tests that are not run, with reasons.

    A name stands for the test of that name and for all tests inside it.
    """

    fail: Mapping[str, str] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)
    sometimes: Mapping[str, str] = field(default_factory=dict)

    @property
    def reasons(self) -> dict[str, str]:
        return {**self.fail, **self.sometimes, **self.not_run}


@dataclass(frozen=True)
class Verdict:
    """The counts of one suite. `stale` are expectations without a failed test."""

    passed: int
    skipped: int
    known: list[str]
    failed: list[str]
    stale: list[str]

    @property
    def is_expected(self) -> bool:
        return not self.failed and not self.stale

    def __str__(self) -> str:
        return f"passed {self.passed}, failed {len(self.failed)}, known {len(self.known)}, skipped {self.skipped}"


def expectations_of(suite: str, path: Path = KNOWN_FAILURES) -> Expectations:
    tables = tomllib.loads(path.read_text()).get(suite, {})
    return Expectations(**tables)


def verdict_on(outcomes: Outcomes, expected: Expectations) -> Verdict:
    leaves = innermost(outcomes)
    failed = [name for name, outcome in leaves.items() if outcome.result is Result.FAILED]
    known = [name for name in failed if _stands_for([*expected.fail, *expected.sometimes], name)]
    return Verdict(
        passed=_count(leaves, Result.PASSED),
        skipped=_count(leaves, Result.SKIPPED),
        known=[*known, *expected.not_run],
        failed=[name for name in failed if name not in known],
        stale=[name for name in expected.fail if not any(_is_in(test, name) for test in known)],
    )


def innermost(outcomes: Outcomes) -> Outcomes:
    """Return the tests without inner tests, and those that failed although no inner test did."""
    parents = {name[:end] for name in outcomes for end in _slashes(name)}
    failed = [name for name, outcome in outcomes.items() if outcome.result is Result.FAILED]
    return {
        name: outcome
        for name, outcome in outcomes.items()
        if name not in parents or (name in failed and not any(other.startswith(f"{name}/") for other in failed))
    }


def _slashes(name: str) -> Iterable[int]:
    return (position for position, character in enumerate(name) if character == "/")


def _count(outcomes: Outcomes, result: Result) -> int:
    return sum(outcome.result is result for outcome in outcomes.values())


def _stands_for(names: Iterable[str], test: str) -> bool:
    return any(_is_in(test, name) for name in names)


def _is_in(test: str, name: str) -> bool:
    return test == name or test.startswith((f"{name}/", f"{name}["))
