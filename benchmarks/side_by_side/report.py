"""RESULTS.md: the results of a run, the machine and the goals. Also the results as a table on a terminal."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from math import comb
from pathlib import Path

from benchmarks.side_by_side.results import (
    BASELINE,
    COMPILED,
    FIGURES,
    MORE_IS_BETTER,
    ODRADEK,
    Row,
    Run,
    groups,
    reaches,
    series,
)
from odradek.broker.build_info import is_compiled
from odradek.protocol.plural import pluralize
from tests.peers.java import KAFKA_VERSION

RESULTS = "RESULTS.md"
NUMBERS = "results.json"

_ROOT = Path(__file__).parents[2]

_CLIENTS = "clients"
_GROWTH = "growth"
_TITLES = {
    "raw": "The broker alone, under prepared requests",
    "official": "Official clients",
    "clients": "Our client beside aiokafka and kafka-python",
    "life": "Starting, memory, many partitions",
    "growth": "Growth",
    "transactions": "Transactions",
    "replication": "Three brokers, replication factor 3, acks=all",
    "workers": "Several processes on one machine",
    "security": "TLS, SASL and access rules",
}


SUMMARY = (
    ("rate", "mb_per_s", "records_per_s", "transactions_per_s"),
    ("cpu_us", "cpu_us_a_transaction", "cpu_s_per_gb"),
    ("seconds", "rss_mb"),
    ("p50_us", "p50_ms", "mean_ms"),
    ("p99_us", "p99_ms"),
)
"""The figures of each column of the summary."""
_CLIENT_THROUGHPUT = {"records_per_s": "rate", "client_cpu_us": "CPU", "client_rss_mb": "memory"}
_CLIENT_LATENCY = {"p50_ms": "median", "p99_ms": "99 %"}
_CLIENT_GOALS = {("aiokafka", "records_per_s"): 2.0, ("aiokafka", "client_rss_mb"): 1.0}


def begin(baseline: str, rounds: int, seconds: float) -> Run:
    """Return a run of today on this machine, without rows."""
    return Run(datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), baseline, _machine(), _versions(), rounds, seconds)


def build() -> str:
    """Return COMPILED if the hottest modules of this tree are compiled; otherwise an empty string."""
    return COMPILED if is_compiled() else ""


def _machine() -> dict[str, str]:
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    memory_kib = next(int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    return {
        "processor": f"{model}, {pluralize(len(os.sched_getaffinity(0)), 'core')}",
        "memory": f"{memory_kib / 1024**2:.0f} GiB",
        "kernel": platform.release().partition("-")[0],  # without the build: the rows of two builds are comparable
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _versions() -> dict[str, str]:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return {
        "Apache Kafka": f"{KAFKA_VERSION}, {java[0] if java else 'no Java'}",
        "Odradek": _commit() or version("odradek"),
        "Python": f"{platform.python_version()}, uvloop {version('uvloop')}",
        "clients": ", ".join(f"{name} {version(name)}" for name in ("confluent-kafka", "aiokafka", "kafka-python")),
    }


def _commit() -> str:
    """Return the last commit that changed code, with `-dirty` if code differs from it; empty without git.

    Pages and pictures that earlier runs have written are not code.
    """
    code = ("--", "*.py", "*.c", "pyproject.toml")
    changed = _git("status", "--porcelain", "--untracked-files=no", *code)
    return _git("log", "-1", "--format=%h", *code) + ("-dirty" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=_ROOT)
    return done.stdout.strip()


def print_table(run: Run) -> None:
    for row in run.rows:
        for figure in row.figures():
            print(f"{row.work:58} {figure:14} {_shown(row, BASELINE, figure):>20} {_shown(row, ODRADEK, figure):>20}"
                  f"   ×{row.ratio(figure):.2f} {_goal(row, figure)}")  # fmt: skip


def _shown(row: Row, side: str, figure: str) -> str:
    return f"{number(row.median(side, figure))} ± {row.spread(side, figure):.0%}"


def number(value: float) -> str:
    """Return three digits, or all before the point."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _goal(row: Row, figure: str) -> str:
    """Return the goal, and whether it is reached: `≥ 1.2 ✓`."""
    goal = row.goals.get(figure)
    return "" if goal is None else _judged(row.ratio(figure), figure, goal)


def _judged(ratio: float, figure: str, goal: float) -> str:
    sign = "≥" if figure in MORE_IS_BETTER else "≤"
    return f"{sign} {goal:g} {'✓' if reaches(ratio, figure, goal) else '✗'}"


def write(run: Run, directory: Path, finished: Collection[tuple[str, str]], order: Sequence[tuple[str, str]]) -> None:
    """Write RESULTS.md, results.json and the plots into `directory`, with the rows of earlier runs there.

    `finished`: the parts that were completed; `order`: all parts, in the order of the page.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / NUMBERS).exists():
        run.take_over(Run.load(directory / NUMBERS), finished)
    places = {tuple(part): place for place, part in enumerate(order)}

    def place(row: Row) -> tuple[bool, int]:
        group = row.group.removesuffix(COMPILED)
        return row.group != group, places.get((group, row.part), len(places))

    run.rows.sort(key=place)
    run.save(directory / NUMBERS)
    render(run, directory)


def render(run: Run, directory: Path) -> None:
    """Write RESULTS.md and the plots of a run."""
    from benchmarks.side_by_side import plots

    pictures = plots.draw(run, directory / "plots")
    (directory / RESULTS).write_text("\n".join(page(run, pictures)) + "\n")


def page(run: Run, pictures: dict[str, list[str]]) -> Iterator[str]:
    """Yield the lines of RESULTS.md. `pictures`: their names by group."""
    yield "# Odradek and Apache Kafka on one machine"
    yield ""
    yield "Written by `make bench`; the numbers of every round are in [results.json](results.json). Both brokers were"
    yield "alive and took turns, after a warm-up that was not counted. A number is the median of the rounds, `±` half"
    yield "of the way from the lowest to the highest. `×` is ours divided by Kafka's. Where a ratio was aimed at, it is"
    yield "behind, with ✓ or ✗. Absolute numbers are this machine's; the ratios carry over. CPU is that of the broker's"
    yield "process, from /proc. [docs/performance.md](../docs/performance.md) says where the time goes. Prepared"
    yield "requests come from a generator in C ([load.c](side_by_side/load.c)): one costs it about a microsecond, a"
    yield "twentieth of what a broker spends, so that it is neither the limit nor, on few cores, the broker's rival."
    yield "Odradek ran as plain Python, as in a checkout, but where a title or a row says that it was compiled."
    yield ""
    yield "| | |"
    yield "|---|---|"
    newest = {"Odradek": f"newest rows: {run.stamp}; each part says its own"}
    for name, value in {**run.machine, **run.versions, **newest}.items():
        yield f"| {name} | {value} |"
    yield ""
    yield "## What was aimed at"
    yield ""
    yield from summary(run.rows)
    for group, rows in groups(run.rows).items():
        yield ""
        yield f"## {_title(group)}"
        yield ""
        yield from _measured(rows)
        yield ""
        for picture in pictures.get(group, []):
            yield f"![{_title(group)}](plots/{picture})"
            yield ""
        if group == _GROWTH:
            yield from _growth_table(rows, run.baseline)
            yield ""
        yield from _table(rows, run.baseline)
        if group == _CLIENTS:
            yield ""
            yield "Our client's figures divided by those of the others on the same broker, and what was aimed at:"
            for figures in (_CLIENT_THROUGHPUT, _CLIENT_LATENCY):
                yield ""
                yield from _client_table(rows, run.baseline, figures)


def _title(group: str) -> str:
    plain = group.removesuffix(COMPILED)
    return _TITLES[plain] + (" (hottest modules compiled, as `pip install .` does)" if plain != group else "")


def summary(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each kind of work with goals: the ratios to the baseline, and the goals."""
    yield "Ours divided by Apache Kafka's, and the ratio that was aimed at: at least of rates, at most of the others."
    yield ""
    yield "| work | rate | broker CPU | memory, start | median latency | 99 % |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        if row.goals:
            build = COMPILED if row.group.endswith(COMPILED) else ""
            yield f"| {row.work}{build} | {' | '.join(_summed_up(row, figures) for figures in SUMMARY)} |"


def _summed_up(row: Row, figures: Collection[str]) -> str:
    return ", ".join(
        f"{row.ratio(each):.2f} ({_goal(row, each)})" for each in row.figures() if each in figures and each in row.goals
    )


def _measured(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each part of a group, and each run that measured it."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.part, row.measured), []).append(row)
    yield "| part | kinds of work | rounds | measured, commit |"
    yield "|---|---|---|---|"
    for (part, measured), of_part in found.items():
        yield f"| {part} | {len(of_part)} | {_rounds(of_part)} | {measured} |"


def _rounds(rows: Iterable[Row]) -> str:
    counts = {len(row.samples[ODRADEK]) for row in rows}
    return "–".join(map(str, sorted({min(counts), max(counts)})))


def _table(rows: Iterable[Row], baseline: str) -> Iterator[str]:
    yield f"| work | figure | {baseline} | Odradek | × | goal |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        work = row.work
        for figure in row.figures():
            unit = FIGURES[figure][0]
            yield (
                f"| {work} | {unit} | {_shown(row, BASELINE, figure)} | {_shown(row, ODRADEK, figure)} "
                f"| {row.ratio(figure):.2f} | {_goal(row, figure)} |"
            )
            work = ""


def _growth_table(rows: Iterable[Row], baseline: str) -> Iterator[str]:
    """Yield for each series the cost of a request at the largest size, divided by that at the smallest."""
    yield "What a request takes at the largest size, divided by what the same request took at the smallest right"
    yield "before, in the same round. A cost that does not grow stays at 1:"
    yield ""
    yield f"| work | N | CPU: {baseline} | Odradek | median latency: {baseline} | Odradek |"
    yield "|---|---|---|---|---|---|"
    for work, points in series(rows).items():
        largest = points[-1]
        if "cpu_growth" not in largest.figures():  # measured by an earlier release
            continue
        cells = (
            _shown(largest, side, figure) for figure in ("cpu_growth", "p50_growth") for side in (BASELINE, ODRADEK)
        )
        yield f"| {work} | {points[0].x:,.0f} → {largest.x:,.0f} | {' | '.join(cells)} |"


def _client_table(rows: Iterable[Row], baseline: str, figures: Mapping[str, str]) -> Iterator[str]:
    """Yield our client's figures divided by those of the others, on each broker; `figures` by their names."""
    by_work: dict[str, dict[str, Row]] = {}
    for row in rows:
        client, _, work = row.work.partition(": ")
        by_work.setdefault(work, {})[client] = row
    places = [(broker, side, name) for broker, side in ((baseline, BASELINE), ("Odradek", ODRADEK)) for name in figures]
    yield f"| work | beside | {' | '.join(f'{figures[name]}, on {broker}' for broker, _, name in places)} |"
    yield f"|---|---|{'---|' * len(places)}"
    for work, clients in by_work.items():
        ours = clients[ODRADEK]
        for client, other in clients.items():
            if other is not ours and set(figures) <= set(ours.figures()):
                cells = (_beside(client, ours, other, side, name) for _, side, name in places)
                yield f"| {work} | {client} | {' | '.join(cells)} |"


def _beside(client: str, ours: Row, other: Row, side: str, figure: str) -> str:
    """Return the ratio of two clients, with the goal."""
    ratio = ours.median(side, figure) / other.median(side, figure)
    goal = _CLIENT_GOALS.get((client, figure))
    return f"{ratio:.2f}" if goal is None else f"{ratio:.2f} ({_judged(ratio, figure, goal)})"


def print_regressions(run: Run, tolerance: float) -> int:
    """Print what is worse than the baseline; return the exit status."""
    worse = [f"{row.work}: {figure}" for row in run.rows for figure in row.figures() if row.is_worse(figure, tolerance)]
    for each in worse:
        print(f"worse than {run.baseline} by more than {tolerance:.0%} in every round: {each}")
    if worse:
        figures = sum(len(row.figures()) for row in run.rows)
        chance = comb(2 * run.rounds, run.rounds)
        print(
            f"Of {chance} figures that are alike, one is worse in all of {pluralize(run.rounds, 'round')};"
            f" there were {figures}."
        )
    return 1 if worse else 0
