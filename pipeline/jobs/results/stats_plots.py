"""The files that `stats --output` writes: two tables as CSV, and an image with six plots for each topic.

```
windows.csv   keys.csv   TOPIC.png:  bytes   records/s   lateness   compression   bytes/record   keys
```
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

_NO_TIME = "-"  # of records without a timestamp


def write_report(directory: Path, windows: Sequence[Row], keys: Sequence[Row]) -> Iterator[Path]:
    """Write all files, and yield the path of each. `windows` and `keys` are those of `window_rows` and `key_rows`."""
    directory.mkdir(parents=True, exist_ok=True)
    yield _write_csv(directory / "windows.csv", windows, omitted=())
    yield _write_csv(directory / "keys.csv", keys, omitted=("top",))
    skews = {row["topic"]: row for row in keys}
    for topic in sorted({row["topic"] for row in windows}):
        path = directory / f"{topic}.png"
        timed = [row for row in windows if row["topic"] == topic and row["window"] != _NO_TIME]
        topic_figure(topic, timed, skews.get(topic)).savefig(path, dpi=100)
        yield path


def _write_csv(path: Path, rows: Sequence[Row], omitted: Sequence[str]) -> Path:
    names = [name for name in (rows[0] if rows else {}) if name not in omitted]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            cells = (row[name] for name in names)
            writer.writerow([" ".join(cell) if isinstance(cell, list) else cell for cell in cells])
    return path


def topic_figure(topic: str, windows: Sequence[Row], keys: Row | None) -> Figure:
    """Draw the six plots of a topic, whose windows begin at a time each; `keys` is None if it has no keys."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 8), layout="constrained")
    axes = figure.subplots(2, 3)
    figure.suptitle(topic)
    times = [datetime.fromisoformat(row["window"]) for row in windows]
    _lines(axes[0][0], "MB in a window", times, {"": [row["bytes"] / 1e6 for row in windows]})
    _lines(axes[0][1], "records/s", times, {"": [row["records_per_second"] for row in windows]})
    names = ("lateness_p50_ms", "lateness_p95_ms", "lateness_max_ms")
    late = {name.split("_")[1]: [row[name] / 1000 for row in windows] for name in names}
    _lines(axes[0][2], "lateness, s", times, late)
    ratios = [row["compression_ratio"] or float("nan") for row in windows]
    _lines(axes[1][0], "compression ratio", times, {"": ratios})
    _lines(axes[1][1], "bytes a record", times, {"": [row["bytes"] / row["records"] for row in windows]})
    _skew(axes[1][2], keys)
    return figure


def _lines(axes: Axes, title: str, times: Sequence[datetime], lines: Mapping[str, Sequence[float]]) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    for label, values in lines.items():
        axes.plot(times, values, marker=".", label=label)  # type: ignore[arg-type] # times are plotted as they are
    if len(lines) > 1:
        axes.legend()
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    if len(times) == 1:  # the locator would show the years around it
        axes.set_xticks(times, [f"{times[0]:%Y-%m-%d %H:%M}"])  # type: ignore[arg-type]
        return
    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call] # more would touch each other
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _skew(axes: Axes, keys: Row | None) -> None:
    from matplotlib.ticker import MaxNLocator

    shares = [] if keys is None else keys["top"]
    axes.bar(range(1, len(shares) + 1), [100 * share for share in shares])
    title = "% of records by key, the 100 most frequent"
    if keys is not None and keys["is_estimate"]:
        title += f"\n(an estimate: samples with {pluralize(keys['keys'], 'key')})"
    axes.set_title(title)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
