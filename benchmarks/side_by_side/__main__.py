"""The command: see the package. Exit status 1 says that `--against` found something slower."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from benchmarks.side_by_side import report
from benchmarks.side_by_side.contest import Contest
from benchmarks.side_by_side.results import Run

GROUPS = ("raw", "official", "clients", "life", "growth")
QUICK_GROUPS = ("raw",)
BENCHMARKS = Path(__file__).parents[1]
TOLERANCE = 0.1


def main() -> int:
    asked = _arguments()
    names = asked.groups or (QUICK_GROUPS if asked.quick or asked.against else GROUPS)
    rounds = asked.rounds or (2 if asked.quick else 5)
    seconds = asked.seconds or (1.5 if asked.quick else 4)
    run = report.begin(asked.against or "Apache Kafka", rounds, seconds)
    with (
        tempfile.TemporaryDirectory(prefix="side-by-side-") as directory,
        _source_tree(asked.against) as tree,
        Contest(Path(directory), tree=tree, rounds=rounds, seconds=seconds) as contest,
    ):
        for name in names:
            _measure(name, contest, run, quick=asked.quick)
    report.print_table(run)
    if asked.against:
        return report.print_regressions(run, TOLERANCE)
    if asked.output or not asked.quick:
        report.write(run, asked.output or BENCHMARKS)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="a few kinds of work in short rounds: under two minutes")
    parser.add_argument("--against", metavar="COMMIT", help="beside that commit of ours, not beside Apache Kafka")
    parser.add_argument("--rounds", type=int, help="counted rounds of each side (5; quick: 2)")
    parser.add_argument("--seconds", type=float, help="length of a round of raw load (4; quick: 1.5)")
    parser.add_argument("--output", type=Path, help="where RESULTS.md, results.json and the plots go (benchmarks/)")
    asked = parser.parse_args()
    if unknown := set(asked.groups) - set(GROUPS):
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    return asked


@contextmanager
def _source_tree(commit: str | None) -> Iterator[Path | None]:
    """A checkout of the commit, beside this one."""
    if commit is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="baseline-") as directory:
        archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True, cwd=BENCHMARKS.parent)
        subprocess.run(["tar", "-x", "-C", directory], check=True, input=archive.stdout)
        yield Path(directory)


def _measure(name: str, contest: Contest, run: Run, *, quick: bool) -> None:
    """The rows of a group. A failure ends the run, but what was measured before it is still told."""
    try:
        for row in import_module(f"benchmarks.side_by_side.{name}").rows(contest, quick=quick):
            run.rows.append(row)
    except BaseException:
        report.print_table(run)
        raise


if __name__ == "__main__":
    sys.exit(main())
