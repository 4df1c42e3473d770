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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        _draw(path, topic, timed, skews.get(topic))
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


def _draw(path: Path, topic: str, windows: Sequence[Row], keys: Row | None) -> None:
    import matplotlib as mpl

    mpl.use("Agg")  # no display is needed
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(15, 8), layout="constrained")
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
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _lines(axes: Axes, title: str, times: Sequence[datetime], lines: Mapping[str, Sequence[float]]) -> None:
    for label, values in lines.items():
        axes.plot(times, values, marker=".", label=label)  # type: ignore[arg-type] # times are plotted as they are
    if len(lines) > 1:
        axes.legend()
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.tick_params(axis="x", rotation=30)


def _skew(axes: Axes, keys: Row | None) -> None:
    shares = [] if keys is None else keys["top"]
    axes.bar(range(1, len(shares) + 1), [100 * share for share in shares])
    title = "% of records by key, the 100 most frequent"
    if keys is not None and keys["is_estimate"]:
        title += f"\n(an estimate: samples with {keys['keys']} keys)"
    axes.set_title(title)
