"""The numbers of a run and their goals, and both as JSON.

A `Sample` is one round of one broker: figures by name, in the units of `FIGURES`. A `Row` is one kind of work: the
samples of both brokers. Its results are the median of each figure and the ratio of the medians, ours to the other's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

BASELINE = "baseline"
"""Apache Kafka, or an earlier commit of ours."""
ODRADEK = "odradek"
COMPILED = ", compiled"
"""The end of a group's name if the measured broker was compiled, as wheels are and checkouts are not."""

Sample = dict[str, float]

FIGURES = {
    "rate": ("requests/s", "more is better"),
    "mb_per_s": ("MB/s", "more is better"),
    "records_per_s": ("records/s", "more is better"),
    "transactions_per_s": ("transactions/s", "more is better"),
    "of_uncommitted": ("rate ÷ that of read_uncommitted", "more is better"),
    "cpu_of_uncommitted": ("CPU a request ÷ that of read_uncommitted", "less is better"),
    "seconds": ("s", "less is better"),
    "cpu_us": ("µs of broker CPU a request", "less is better"),
    "cpu_us_a_transaction": ("µs of broker CPU a transaction", "less is better"),
    "cpu_s_per_gb": ("s of broker CPU a GB", "less is better"),
    "cpu_s": ("s of broker CPU", "less is better"),
    "rss_mb": ("MB resident", "less is better"),
    "client_cpu_us": ("µs of the client's CPU a record", "less is better"),
    "client_rss_mb": ("MB resident, the client", "less is better"),
    "mean_ms": ("ms, mean", "less is better"),
    "p50_us": ("µs, median", "less is better"),
    "p99_us": ("µs, 99 %", "less is better"),
    "p50_ms": ("ms, median", "less is better"),
    "p99_ms": ("ms, 99 %", "less is better"),
    "cpu_growth": ("CPU ÷ that at the smallest size", "less is better"),
    "p50_growth": ("median ÷ that at the smallest size", "less is better"),
}
"""Every figure that a sample may have: its unit, and whether more is better."""

IN_README = (
    "Java producer, 1024 B, batch.size 16 KiB, acks=all, none",
    "Java producer, 100 B, batch.size 16 KiB, acks=all, lz4",
    "Java consumer, 1024 B",
    "librdkafka producer, 1024 B, acks=all",
    "librdkafka consumer, 1024 B",
    "produce 100 B, 1×1",
    "produce 100 B, 8×8",
    "produce 100 B, 64×1",
    "produce 16 KiB batches, 4×4",
    "produce 900 KB batches, 4×1",
    "fetch 1 MiB",
    "fetch 4 × 1 MiB",
    "fetch 16 KiB, 4 connections",
    "end to end, acks=1, a parked fetch",
    "500 small produces a second beside a flood of 900 KB",
)
"""The works of README's table of ratios and of the pictures of ratios, in their order."""

MORE_IS_BETTER = {name for name, (_, way) in FIGURES.items() if way.startswith("more")}


@dataclass
class Row:
    """One kind of work, as both brokers did it. `goals` are bounds of the ratio to Kafka, by figure."""

    group: str
    work: str
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    goals: dict[str, float] = field(default_factory=dict)
    x: float | None = None
    """Where the row is on the x axis of its group's plot; None if the group has none."""
    part: str = ""
    """The part of the group that measured it."""
    measured: str = ""
    """When, and at which commit of ours."""

    def figures(self) -> list[str]:
        """The figures that both sides have, in the order of `FIGURES`."""
        return [name for name in FIGURES if all(self._values(side, name) for side in (BASELINE, ODRADEK))]

    def _values(self, side: str, figure: str) -> list[float]:
        return [sample[figure] for sample in self.samples.get(side, []) if figure in sample]

    def median(self, side: str, figure: str) -> float:
        return median(self._values(side, figure))

    def spread(self, side: str, figure: str) -> float:
        """Half the difference of the highest and the lowest round, as a fraction of the median."""
        values = self._values(side, figure)
        middle = median(values)
        return (max(values) - min(values)) / 2 / middle if middle else 0.0

    def ratio(self, figure: str) -> float:
        """Ours to the baseline's."""
        ours, other = self.median(ODRADEK, figure), self.median(BASELINE, figure)
        if ours == other:
            return 1.0  # also of two zeros: some tools report whole milliseconds
        return ours / other if other else float("inf")

    def is_worse(self, figure: str, tolerance: float) -> bool:
        """Whether every round of ours was worse than every one of the baseline, and the medians by `tolerance`."""
        ours, others = self._values(ODRADEK, figure), self._values(BASELINE, figure)
        if figure in MORE_IS_BETTER:
            return max(ours) < min(others) and self.ratio(figure) < 1 - tolerance
        return min(ours) > max(others) and self.ratio(figure) > 1 + tolerance

    def reaches(self, figure: str) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        goal = self.goals.get(figure)
        return None if goal is None else reaches(self.ratio(figure), figure, goal)


def reaches(ratio: float, figure: str, goal: float) -> bool:
    """Whether a ratio of this figure is as good as the goal: a floor of rates, a ceiling of the others."""
    return ratio >= goal if figure in MORE_IS_BETTER else ratio <= goal


@dataclass
class Run:
    """One run: the machine, the commit, the baseline, and its rows."""

    date: str
    baseline: str
    machine: dict[str, str]
    versions: dict[str, str]
    rounds: int
    seconds: float
    rows: list[Row] = field(default_factory=list)

    @property
    def stamp(self) -> str:
        """The time and our commit of a measurement."""
        return f"{self.date}, {self.versions['Odradek']}"

    def take_over(self, earlier: Run, finished: Collection[tuple[str, str]]) -> None:
        """Add the rows of an earlier run that this one did not measure again.

        `finished` are the completed parts (group, part), of which no older row stays. Rows of another machine or
        another baseline are not added, because they are not comparable.
        """
        if (earlier.machine, earlier.baseline) != (self.machine, self.baseline):
            return
        again = {(row.group, row.work) for row in self.rows}
        self.rows += [
            row for row in earlier.rows if (row.group, row.part) not in finished and (row.group, row.work) not in again
        ]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Run:
        read = json.loads(path.read_text())
        return cls(**{**read, "rows": [Row(**row) for row in read["rows"]]})


def series(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of growth by series: the name of the work with N in place of the size."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        before, size, after = row.work.rpartition(f"{row.x:,.0f}")
        found.setdefault(f"{before}N{after}" if size else row.work, []).append(row)
    return found


def groups(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by group, in order of first appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row)
    return found
