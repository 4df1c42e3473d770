"""The page of the results: benchmarks/pipeline.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import quantiles

from benchmarks.pipeline.queries import PARTITIONS, TUNED
from benchmarks.pipeline.results import Figure, Line, Part, Row, line, rows_in
from benchmarks.pipeline.usage import KINDS
from odradek.protocol.plural import pluralize

_TITLES = {
    "read": "Reading",
    "codecs": "Reading compressed records",
    "write": "Writing: keyed, idempotent, acks=all",
    "stream": "A stream to Parquet in three micro-batches",
    "values": "Records of 1 KiB",
    "latency": "Latency of a micro-batch",
    "worker": "The work of a Python worker",
}


def write_page(path: Path, parts: Mapping[str, Part]) -> None:
    path.write_text("\n".join(_page(parts)) + "\n")


def _page(parts: Mapping[str, Part]) -> Iterator[str]:
    settings = ", ".join(f"`{name.removeprefix('kafka.')}={value}`" for name, value in TUNED.items())
    yield f"""# The pipeline beside Spark's connector for Kafka

Written by `python -m benchmarks.pipeline`; its docstring describes the parts. One Spark session with `local[2]` and one
broker of this project on {pluralize(os.cpu_count() or 1, "processor")}, Python {platform.python_version()}.
{PARTITIONS} partitions, keys of 8 bytes, half of each value random, values of 100 B unless a line names another size.
`official` is the connector (4.2.0, tuned: {settings}).

Medians in seconds, all contenders in turns; in brackets the least and the most. The processor time is that of the
driver, Java, the Python workers and the broker together; half of it is the least that two processors need."""
    for name, title in _TITLES.items():
        if name in parts:
            part = parts[name]
            conf = f", with {' '.join(part['conf'])}" if part["conf"] else ""
            yield f"\n## {title}\n\nMeasured {part['measured']}{conf}, {pluralize(part['rounds'], 'round')}.\n"
            yield from _BODIES.get(name, _queries)(part)


def _queries(part: Part) -> Iterator[str]:
    """Yield the tables of a part with queries."""
    rows = rows_in(part)
    official = {(row.work, row.records): row for row in rows if row.contender == "official"}
    yield "| work | records | contender | processor time | of the connector's | elapsed | times its rate |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        other = official[row.work, row.records]
        share = row.processor.median / max(other.processor.median, 0.01)
        rate = other.elapsed.median / row.elapsed.median
        yield _cells(
            row.work,
            f"{row.records:,}",
            row.contender,
            _seconds(row.processor),
            "" if row is other else f"{share:.2f}",
            _seconds(row.elapsed),
            "" if row is other else f"{rate:.2f}×",
        )
    yield "\nThe same processor time by process; `tasks` and `compiler` are threads of Java, `java` its others.\n"
    yield _cells("work", "records", "contender", *KINDS)
    yield "|---" * (3 + len(KINDS)) + "|"
    for row in rows:
        yield _cells(row.work, f"{row.records:,}", row.contender, *(f"{row.kinds[kind]:.2f}" for kind in KINDS))
    yield from _lines(rows)


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of fixed costs, if several sizes were measured."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.work, row.contender), []).append(row)
    found = {
        key: (
            line([(row.records, row.processor.median) for row in group]),
            line([(row.records, row.elapsed.median) for row in group]),
        )
        for key, group in groups.items()
    }
    if any(None in lines for lines in found.values()):
        return
    yield "\nThe cost of a million records, and of a query without records, by the line through the sizes:\n"
    yield "| work | contender | processor, a million | fixed | elapsed, a million | fixed | times the rate |"
    yield "|---|---|---|---|---|---|---|"
    for (work, contender), (processor, elapsed) in found.items():
        other = found[work, "official"][1]
        is_known = contender != "official" and _each(other) > 0 and _each(elapsed) > 0
        rate = f"{_each(other) / _each(elapsed):.2f}×" if is_known else ""
        cells = [f"{value:.2f}" for each in (processor, elapsed) if each is not None for value in each]
        yield _cells(work, contender, *cells, rate)


def _each(found: Line | None) -> float:
    return 0.0 if found is None else found.each


def _latency(part: Part) -> Iterator[str]:
    yield "A record from the producer through an idle stream into another topic and to a consumer, in milliseconds."
    yield "`idle` is the processor time of a second without records.\n"
    yield "| contender | records | median | 90th | 99th percentile | most | idle |"
    yield "|---|---|---|---|---|---|---|"
    for contender, found in part["latency"].items():
        times = found["milliseconds"]
        percentiles = quantiles(times, n=100, method="inclusive")
        shown = (f"{percentiles[at - 1]:.0f}" for at in (50, 90, 99))
        idle = sum(found["idle"]) / len(found["idle"])
        yield _cells(contender, str(len(times)), *shown, f"{max(times):.0f}", f"{idle:.2f}")


def _worker(part: Part) -> Iterator[str]:
    yield "Nanoseconds of processor time a record, by the reader of `klog` without Spark (`stages`).\n"
    names = list(part["stages"])
    yield _cells("stage", *names)
    yield "|---" * (1 + len(names)) + "|"
    for stage in part["stages"][names[0]]:
        yield _cells(stage, *(f"{part['stages'][name][stage]:.0f}" for name in names))


def _seconds(figure: Figure) -> str:
    return f"{figure.median:.2f} ({figure.least:.2f} to {figure.most:.2f})"


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


_BODIES = {"latency": _latency, "worker": _worker}
