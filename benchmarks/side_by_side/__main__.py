"""The command; see the package. Exit status 1: `--against` found a slower row.

A group or a part of one (`raw`, `raw.fetch`) can be measured alone: in results.json its rows replace those of earlier
runs on the same machine. RESULTS.md, the plots and the tables of README.md show all rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.side_by_side import (
    clients,
    growth,
    life,
    official,
    raw,
    readme,
    replication,
    report,
    security,
    transactions,
    workers,
)
from benchmarks.side_by_side.contest import Contest
from benchmarks.side_by_side.results import Row, Run

GROUPS: Mapping[str, Mapping[str, Callable[..., Iterator[Row]]]] = {
    "raw": raw.PARTS,
    "official": official.PARTS,
    "clients": clients.PARTS,
    "life": life.PARTS,
    "growth": growth.PARTS,
    "transactions": transactions.PARTS,
    "replication": replication.PARTS,
    "security": security.PARTS,
    "workers": workers.PARTS,
}
QUICK_GROUPS = ["raw"]
BENCHMARKS = Path(__file__).parents[1]
TOLERANCE = 0.1


class Part(NamedTuple):
    """A part of a group, which can be measured alone."""

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}.{self.name}"


PARTS = [Part(group, name) for group, parts in GROUPS.items() for name in parts]


def main() -> int:
    arguments = _arguments()
    # Installed packages have bytecode. Where the environment forbids bytecode files, a checkout would be compiled at
    # each start: 0.2 s of a broker's 0.4, and the memory of the compiler.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if arguments.redraw:
        _redraw(arguments.output or BENCHMARKS)
        return 0
    rounds = arguments.rounds or (2 if arguments.quick else 5)
    seconds = arguments.seconds or (1.5 if arguments.quick else 4)
    run = report.begin(arguments.against or "Apache Kafka", rounds, seconds)
    finished: list[Part] = []
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # a thousand idle connections, and some more
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the brokers are stopped, too
    try:
        _measure(arguments, run, finished)
    finally:  # report and keep what was measured before a failure
        report.print_table(run)
        if run.rows and not arguments.against and (arguments.output or not arguments.quick):
            report.write(run, arguments.output or BENCHMARKS, finished, order=PARTS)
            if not arguments.output:
                readme.renew(run, BENCHMARKS.parent / "README.md")
    return report.print_regressions(run, TOLERANCE) if arguments.against else 0


def _redraw(directory: Path) -> None:
    """Write RESULTS.md, the plots and README's tables again from the stored numbers."""
    run = Run.load(directory / report.NUMBERS)
    report.render(run, directory)
    if directory == BENCHMARKS:
        readme.renew(run, BENCHMARKS.parent / "README.md")


def _measure(arguments: argparse.Namespace, run: Run, finished: list[Part]) -> None:
    """Add rows to the run, and each completed part to `finished`."""
    build = report.build()
    with (
        tempfile.TemporaryDirectory(prefix="side-by-side-") as directory,
        _source_tree(arguments.against) as tree,
        Contest(Path(directory), tree=tree, rounds=run.rounds, seconds=run.seconds) as contest,
    ):
        for part in arguments.parts:
            for row in GROUPS[part.group][part.name](contest, quick=arguments.quick):
                row.group, row.part, row.measured = part.group + build, part.name, run.stamp
                run.rows.append(row)
            finished.append(Part(part.group + build, part.name))


def _arguments() -> argparse.Namespace:
    names = ", ".join(map(str, PARTS))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"one of {', '.join(GROUPS)}, or a part: {names}")
    parser.add_argument("--quick", action="store_true", help="a few kinds of work in short rounds: under two minutes")
    parser.add_argument("--against", metavar="COMMIT", help="beside that commit of ours, not beside Apache Kafka")
    parser.add_argument("--rounds", type=int, help="counted rounds of each side (5; quick: 2)")
    parser.add_argument("--seconds", type=float, help="length of a round of raw load (4; quick: 1.5)")
    parser.add_argument("--redraw", action="store_true", help="measure nothing: pages and plots of what was measured")
    parser.add_argument("--output", type=Path, help="where RESULTS.md, results.json and the plots go (benchmarks/)")
    arguments = parser.parse_args()
    if unknown := set(arguments.groups) - set(GROUPS) - {str(part) for part in PARTS}:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    wanted = arguments.groups or (QUICK_GROUPS if arguments.quick or arguments.against else list(GROUPS))
    arguments.parts = [part for part in PARTS if part.group in wanted or str(part) in wanted]
    return arguments


@contextmanager
def _source_tree(commit: str | None) -> Iterator[Path | None]:
    """Return a separate checkout of the commit."""
    if commit is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="baseline-") as directory:
        archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True, cwd=BENCHMARKS.parent)
        subprocess.run(["tar", "-x", "-C", directory], check=True, input=archive.stdout)
        yield Path(directory)


if __name__ == "__main__":
    sys.exit(main())
