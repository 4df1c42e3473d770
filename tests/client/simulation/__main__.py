"""Run many seeds, or one with its trace: `python -m tests.client.simulation --seeds 1000`, `--seed 17`."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys

from tests.client.simulation.seeds import prepare, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.client.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="one seed, with its trace")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        prepare()
        outcome = run(arguments.seed)
        print("\n".join(outcome.trace))
        return 1 if outcome.failures else 0
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    failed = records = commits = assignments = 0
    with multiprocessing.get_context("spawn").Pool(arguments.processes, prepare, maxtasksperchild=50) as pool:
        for outcome in pool.imap_unordered(run, seeds):
            records += outcome.records
            commits += outcome.commits
            assignments += outcome.assignments
            if outcome.failures:
                failed += 1
                print(f"seed {outcome.seed}: {outcome.failures[0]}", flush=True)
    print(f"{len(seeds)} seeds, {failed} failed: {records} records, {commits} commits, {assignments} assignments")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
