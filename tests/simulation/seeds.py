"""Seeds that fail: a smaller schedule that still fails, and the file of those that tests run first.

```
failing_seeds.txt     17            all steps of seed 17
                      23:0,4        steps 0 and 4 of seed 23, counted from 0
```
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.simulation.nemesis import draw_schedule
from tests.simulation.simulation import FAULT_SECONDS, Outcome, simulate

FILE = Path(__file__).with_name("failing_seeds.txt")

Listener = Callable[[float, str], None]


class Case(NamedTuple):
    """A seed, with the numbers of the steps that are carried out; None: all."""

    seed: int
    steps: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return str(self.seed) if self.steps is None else f"{self.seed}:{','.join(map(str, self.steps))}"

    @property
    def command(self) -> str:
        """The command that repeats it."""
        return f".venv/bin/python -m tests.simulation --case {self}"


def parse(text: str) -> Case:
    seed, colon, steps = text.partition(":")
    return Case(int(seed), tuple(int(each) for each in steps.split(",") if each) if colon else None)


def failing_cases() -> list[Case]:
    """Return the cases in the file."""
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    return [parse(line.partition("#")[0].strip()) for line in lines if line.partition("#")[0].strip()]


def keep(case: Case, reason: str) -> None:
    """Add a case to the file, unless it is there."""
    if case not in failing_cases():
        with FILE.open("a") as file:
            file.write(f"{case}  # {reason}\n")


def run(case: Case, listener: Listener | None = None) -> Outcome:
    if case.steps is None:
        return simulate(case.seed, listener=listener)
    schedule = draw_schedule(case.seed, 0.0, FAULT_SECONDS)
    return simulate(case.seed, [schedule[number] for number in case.steps], listener)


def run_in_process(case: Case) -> tuple[Case, Outcome]:
    """Run a case in a process of a pool, which finds this function by its name."""
    return case, run(case)


def shrink(outcome: Outcome, fails: Callable[[Case], bool] | None = None) -> Case:
    """Return a case with as few steps of a failed run as can be found by leaving out halves, quarters and so on."""
    fails = fails or (lambda case: bool(run(case).failures))
    kept = tuple(range(len(outcome.steps)))
    size = max(len(kept) // 2, 1)
    while kept:
        for first in range(0, len(kept), size):
            fewer = kept[:first] + kept[first + size :]
            if fails(Case(outcome.seed, fewer)):
                kept = fewer
                break
        else:
            if size == 1:
                break
            size = max(size // 2, 1)
    return Case(outcome.seed, kept)
