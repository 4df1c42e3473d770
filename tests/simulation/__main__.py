"""Run many seeds, or one again: `python -m tests.simulation --seeds 1000`, `python -m tests.simulation --case 17 -v`.

The seeds that have failed before come first. A failing seed is printed with its faults, shrunk, and kept. With
`--mutants` each seed runs on a broker with a defect, until one fails; only a defect that no directed test finds either
makes the run fail.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable
from itertools import islice

from tests.mutants.mutants import MUTANTS, Found, Mutant, find
from tests.simulation.seeds import Case, failing_cases, keep, parse, run, run_in_process, shrink
from tests.simulation.simulation import Outcome

_REPORT_SECONDS = 30.0
_MOST_SHOWN = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", type=parse, help="one seed, or SEED:STEPS with the numbers of its steps")
    parser.add_argument("--mutants", action="store_true", help="run the seeds on each mutant until one finds it")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the trace of --case")
    arguments = parser.parse_args()
    if arguments.case is not None:
        return _run_one(arguments.case, arguments.verbose)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    if arguments.mutants:
        return _run_mutants(seeds, arguments.processes)
    return _run_many([*failing_cases(), *map(Case, seeds)], arguments.processes)


def _run_one(case: Case, verbose: bool) -> int:
    outcome = run(case, (lambda at, text: print(f"{at:9.4f} {text}")) if verbose else None)
    _print_outcome(outcome)
    return 1 if outcome.failures else 0


def _run_many(cases: list[Case], processes: int) -> int:
    began = reported = time.monotonic()
    done = failed = acknowledged = changes = 0
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for case, outcome in pool.imap_unordered(run_in_process, cases):
            done += 1
            acknowledged += outcome.acknowledged
            changes += outcome.leader_changes
            if outcome.failures:
                failed += 1
                _report_failure(case, outcome)
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
                print(f"{done} of {len(cases)} seeds, {failed} failed, {done / (reported - began):.1f} a second")
                sys.stdout.flush()
    seconds = time.monotonic() - began
    print(
        f"{done} seeds in {seconds:.0f} s, {failed} failed: {acknowledged} batches acknowledged, {changes} new leaders"
    )
    return 1 if failed else 0


def _run_mutants(seeds: range, processes: int) -> int:
    """Search a seed for each mutant; return 1 if one has none, and no directed test."""
    missed = 0
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1) as pool:
        searches = [(each, pool.apply_async(find, (each.name, seeds))) for each in MUTANTS if each.kinds]
        for mutant, search in searches:
            found = search.get()
            missed += found is None and not mutant.tests
            print(f"{mutant.name}: {_description(mutant, found)}")
            sys.stdout.flush()
    print(f"{missed} of {len(MUTANTS)} mutants were found neither within {len(seeds)} seeds nor by a directed test")
    return 1 if missed else 0


def _description(mutant: Mutant, found: Found | None) -> str:
    if found is not None:
        return f"seed {found.seed}: {found.failure[:100]}"
    return "by directed tests only" if mutant.tests else "NOT FOUND"


def _report_failure(case: Case, outcome: Outcome) -> None:
    print(f"seed {case} failed, it is being shrunk")
    sys.stdout.flush()
    if case.steps is None:
        case = shrink(outcome)
        outcome = run(case)
    keep(case, outcome.failures[0][:100])
    _print_outcome(outcome)
    print(f"Repeat it: {case.command} --verbose")


def _print_outcome(outcome: Outcome) -> None:
    for step in outcome.steps:
        print(f"  fault: {step}")
    _print_first(f"  FAILURE {failure}" for failure in outcome.failures)
    print(
        f"seed {outcome.seed}: {len(outcome.failures)} failures, {outcome.acknowledged} batches acknowledged,"
        f" {outcome.leader_changes} new leaders, {outcome.member_commits} commits of members in"
        f" {outcome.generations} generations, {outcome.transactions} transactions, {outcome.deliveries} deliveries,"
        f" trace {outcome.fingerprint:08x}"
    )


def _print_first(lines: Iterable[str]) -> None:
    for line in islice(lines, _MOST_SHOWN):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
