"""The two tables of README.md that compare with Apache Kafka, generated from results.json.

```
<!-- figures -->      what a user meets: starting, memory, in seconds and MB of both
<!-- ratios -->       one line a kind of work, those that we lose included
<!-- end -->          behind each of them
```
A cell begins with the compiled broker, which is what `pip install` gives; plain Python is in brackets. Work without a
result is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from benchmarks.side_by_side.report import SUMMARY, number
from benchmarks.side_by_side.results import BASELINE, COMPILED, IN_README, ODRADEK, Row, Run

_FIGURES = {
    "start to first Metadata": "start to the first answer",
    "resident, idle": "memory, idle",
    "resident, loaded": "memory after the loads",
    "start with 1,000 partitions, to first Metadata": "start with 1,000 partitions, to the first answer",
    "start with 1,000 partitions after kill -9, until all serve": "the same after kill -9, until all serve",
    "resident with 1,000 partitions": "memory with 1,000 partitions",
    "start with 5,000 partitions, to first Metadata": "start with 5,000 partitions, to the first answer",
    "start with 5,000 partitions after kill -9, until all serve": "the same after kill -9, until all serve",
    "resident with 5,000 partitions": "memory with 5,000 partitions",
}
"""The names of the work in README's first table."""
_GROUPS = ("raw", "official", "life")
_UNITS = {"seconds": "s", "rss_mb": "MB"}

Rows = Mapping[str, Row]
"""By the name of the work."""


def renew(run: Run, readme: Path) -> None:
    """Write both tables. Raises ValueError if a mark is missing."""
    text = readme.read_text()
    plain = {row.work: row for row in run.rows if row.group in _GROUPS}
    compiled = {row.work: row for row in run.rows if row.group in {group + COMPILED for group in _GROUPS}}
    for mark, table in (("figures", _figures(run, plain, compiled)), ("ratios", _ratios(plain, compiled))):
        lines = "\n".join(table)
        marked = re.search(rf"(?s)<!-- {mark} -->\n(.*?)<!-- end -->", text)
        if marked is None:
            raise ValueError(f"{readme} has no <!-- {mark} --> with an <!-- end -->")
        text = f"{text[: marked.start(1)]}\n{lines}\n\n{text[marked.end(1) :]}"
    readme.write_text(text)


def _figures(run: Run, plain: Rows, compiled: Rows) -> Iterator[str]:
    has_compiled = any(work in compiled for work in _FIGURES)
    yield f"| | {run.baseline} | {'Odradek' if has_compiled else 'Odradek, plain Python'} |"
    yield "|---|---|---|"
    for work, name in _FIGURES.items():
        if row := compiled.get(work, plain.get(work)):
            [figure] = row.figures()
            ours = [_amount(rows[work], ODRADEK, figure) if work in rows else "" for rows in (compiled, plain)]
            yield f"| {name} | {_amount(row, BASELINE, figure)} | {_beside(*ours) if has_compiled else ours[1]} |"


def _amount(row: Row, side: str, figure: str) -> str:
    return f"{number(row.median(side, figure))} {_UNITS[figure]}"


def _ratios(plain: Rows, compiled: Rows) -> Iterator[str]:
    rate, cpu, _, median, rarely = SUMMARY
    yield "| work | rate | broker CPU | median latency | 99 % |"
    yield "|---|---|---|---|---|"
    for work in IN_README:
        if work in plain or work in compiled:
            cells = (
                _beside(*(_ratio(rows.get(work), figures) for rows in (compiled, plain)))
                for figures in (rate, cpu, median, rarely)
            )
            yield f"| {work} | {' | '.join(cells)} |"


def _ratio(row: Row | None, figures: Collection[str]) -> str:
    """Return the ratio of the one of these figures that the row has; empty if it has none."""
    return "" if row is None else "".join(f"{row.ratio(each):.2f}" for each in row.figures() if each in figures)


def _beside(compiled: str, plain: str) -> str:
    return f"{compiled} ({plain})".strip() if plain else compiled
