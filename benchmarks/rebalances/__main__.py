"""The command; see the package.

Exit status 1: a record was lost.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from itertools import product
from pathlib import Path

from benchmarks.rebalances.columns import HEADINGS, Columns, medians
from benchmarks.rebalances.members import CLIENTS, VARIANTS, Variant
from benchmarks.rebalances.run import BROKERS, run
from benchmarks.rebalances.schedule import schedule

Rows = dict[tuple[Variant, str], list[Columns]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rebalances", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many schedules (5)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--client", choices=CLIENTS, help="one client; otherwise both, at the same time")
    parser.add_argument("--protocol", choices=sorted({each.protocol for each in VARIANTS}), help="otherwise both")
    parser.add_argument("--assignor", choices=[each.assignor for each in VARIANTS if each.assignor])
    parser.add_argument("--commits", choices=["auto", "poll"], default="auto", help="each second, or after each poll")
    parser.add_argument("--broker", choices=BROKERS, default="odradek")
    parser.add_argument("--at-once", type=int, default=1, help="how many seeds run at the same time (1)")
    parser.add_argument("--output", type=Path, help="an empty directory for the events of all runs")
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="rebalances-") as temporary:
        rows = asyncio.run(_measure(arguments, arguments.output or Path(temporary)))
    print_table(rows)
    return int(any(columns.lost for runs in rows.values() for columns in runs))


async def _measure(arguments: argparse.Namespace, directory: Path) -> Rows:
    """Run each seed with each variant; the clients that are compared run at the same time."""
    clients = [arguments.client] if arguments.client else list(CLIENTS)
    rows: Rows = {
        (variant, client): []
        for variant, client in product(VARIANTS, clients)
        if arguments.protocol in (None, variant.protocol) and arguments.assignor in (None, variant.assignor)
    }
    variants = list(dict.fromkeys(variant for variant, _ in rows))
    free = asyncio.Semaphore(arguments.at_once)

    async def run_clients(seed: int, variant: Variant) -> None:
        async with free:
            within = directory / (variant.assignor or variant.protocol) / str(seed)
            options = {"broker": arguments.broker, "commits": arguments.commits}
            runs = [run(client, variant, schedule(seed), within / client, **options) for client in clients]
            for client, columns in zip(clients, await asyncio.gather(*runs), strict=True):
                print(f"{variant.name}, seed {seed}, {client}: {_cells(columns)}", file=sys.stderr, flush=True)
                rows[variant, client].append(columns)

    seeds = range(arguments.first, arguments.first + arguments.seeds)
    await asyncio.gather(*(run_clients(seed, variant) for seed, variant in product(seeds, variants)))
    return rows


def print_table(rows: Rows) -> None:
    """Print the medians of each variant and client as a table of Markdown."""
    print(f"| protocol | client | {' | '.join(HEADINGS)} |")
    print("|---|---|" + "---|" * len(HEADINGS))
    for (variant, client), runs in rows.items():
        print(f"| {variant.name} | {client} | {_cells(medians(runs))} |")


def _cells(columns: Columns) -> str:
    times = (f"{value:.1f} s" for value in columns[2:5])
    return " | ".join([f"{columns.duplicates:.0f}", f"{columns.lost:.0f}", *times, f"{columns.errors:.0f}"])


if __name__ == "__main__":
    sys.exit(main())
