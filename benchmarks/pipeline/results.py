"""The measured figures of the parts, and the file that stores the newest of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.pipeline.rounds import Case, Samples

Part = dict[str, Any]  # "measured", "rounds", and lists of rows


class Figure(NamedTuple):
    """The median of several rounds, the least and the most."""

    median: float
    least: float
    most: float


class Row(NamedTuple):
    """A query of one contender: `kinds` are median processor seconds by kind of process."""

    work: str
    records: int
    contender: str
    processor: Figure
    elapsed: Figure
    kinds: Mapping[str, float]


class Line(NamedTuple):
    """The line through the medians of a contender's query: `each` seconds a million records, `fixed` at none."""

    each: float
    fixed: float


def rows_of(work: str, cases: Mapping[Case, Samples]) -> list[Row]:
    """Return the figures of one query, of all contenders and sizes."""
    return [
        Row(
            work,
            records,
            contender,
            _figure([sum(each.values()) for each in samples.processor]),
            _figure(samples.elapsed),
            {kind: median(each[kind] for each in samples.processor) for kind in samples.processor[0]},
        )
        for (contender, records), samples in cases.items()
    ]


def line(points: list[tuple[int, float]]) -> Line | None:
    """Return the line through (records, seconds) with the least squares; None for less than two sizes."""
    sizes = [records / 1e6 for records, _ in points]
    if len(set(sizes)) < 2:
        return None
    middle, height = sum(sizes) / len(sizes), sum(seconds for _, seconds in points) / len(points)
    spread = sum((size - middle) ** 2 for size in sizes)
    each = sum((size - middle) * (points[i][1] - height) for i, size in enumerate(sizes)) / spread
    return Line(each, height - each * middle)


def load(path: Path) -> dict[str, Part]:
    """Return the stored parts; none if there is no file yet."""
    return json.loads(path.read_text()) if path.exists() else {}


def store(path: Path, parts: Mapping[str, Part]) -> None:
    path.write_text(json.dumps(parts, indent=1) + "\n")


def rows_in(part: Part) -> list[Row]:
    """Return the rows of a stored part."""
    return [
        Row(work, records, contender, Figure(*processor), Figure(*elapsed), kinds)
        for work, records, contender, processor, elapsed, kinds in part["rows"]
    ]


def _figure(values: list[float]) -> Figure:
    return Figure(*(round(each, 3) for each in (median(values), min(values), max(values))))
