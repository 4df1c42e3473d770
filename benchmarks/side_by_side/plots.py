"""Pictures of a run, as PNG and SVG: ratios of the raw work with their goals, and the series of growth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.side_by_side.results import (
    BASELINE,
    COMPILED,
    FIGURES,
    MORE_IS_BETTER,
    ODRADEK,
    Row,
    Run,
    groups,
    series,
)

_GROWTH_FIGURES = ("cpu_us", "rate", "p50_us", "p99_us")
_COLOURS = {BASELINE: "#8a8a8a", ODRADEK: "#1f6feb"}


def draw(run: Run, directory: Path) -> dict[str, list[str]]:
    """Draw what the run has into `directory`; returns the PNGs' names by group."""
    import matplotlib as mpl

    mpl.use("Agg")  # no display is needed
    # Text as text is a third of the size; with a salt of its own a picture of the same numbers is the same file.
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "odradek"}
    directory.mkdir(parents=True, exist_ok=True)
    by_group = groups(run.rows)
    drawn: dict[str, list[str]] = {}
    for group, name in (("raw", "raw"), (f"raw{COMPILED}", "raw-compiled"), ("official", "official")):
        if rows := by_group.get(group):
            drawn[group] = [_ratios(rows, directory, name)]
    if rows := by_group.get("growth"):
        drawn["growth"] = [_series(rows, run.baseline, directory, "growth")]
    return drawn


def _save(figure: Any, directory: Path, name: str) -> str:
    figure.savefig(directory / f"{name}.png", dpi=120, bbox_inches="tight")
    figure.savefig(directory / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    return f"{name}.png"


def _advantage(row: Row, figure: str) -> float:
    """How many times better we are: over 1 is good, for rates and for times alike."""
    ratio = row.ratio(figure)
    return ratio if figure in MORE_IS_BETTER else 1 / ratio if ratio else float("nan")


def _ratios(rows: list[Row], directory: Path, name: str) -> str:
    """A panel each for rate, CPU and latencies: a bar a kind of work, from 1 to the right where we are better."""
    import matplotlib.pyplot as plt

    panels = [("rate", ("rate", "mb_per_s")), ("broker CPU", ("cpu_us", "cpu_s_per_gb")),
              ("p50", ("p50_us", "p50_ms", "mean_ms")), ("p99", ("p99_us", "p99_ms"))]  # fmt: skip
    figure, axes = plt.subplots(1, len(panels), sharey=True, figsize=(14, 0.4 * len(rows) + 1.2))
    for axis, (title, figures) in zip(axes, panels, strict=True):
        for place, row in enumerate(reversed(rows)):
            for each in figures:
                if each in row.figures():
                    better = _advantage(row, each)
                    axis.barh(
                        place, better - 1, left=1, color=_COLOURS[BASELINE if better < 1 else ODRADEK], height=0.6
                    )
        axis.axvline(1, color="black", linewidth=0.8)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_title(f"{title}: times better")
    axes[0].set_yticks(range(len(rows)), [row.work for row in reversed(rows)])
    drawn = _save(figure, directory, name)
    plt.close(figure)
    return drawn


def _series(rows: list[Row], baseline: str, directory: Path, name: str) -> str:
    """A column for each thing that grows: CPU, requests a second, and latencies, of both brokers."""
    import matplotlib.pyplot as plt

    grown = series(rows)
    figure, axes = plt.subplots(
        len(_GROWTH_FIGURES), len(grown), figsize=(3.8 * len(grown), 2.4 * len(_GROWTH_FIGURES)), squeeze=False
    )
    for column, (title, points) in enumerate(grown.items()):
        axes[0][column].set_title(title.replace(", ", ",\n"), fontsize="medium")
        for line, name_of_figure in enumerate(_GROWTH_FIGURES):
            axis = axes[line][column]
            for side, label in ((BASELINE, baseline), (ODRADEK, "Odradek")):
                values = [row.median(side, name_of_figure) for row in points]
                axis.plot([row.x for row in points], values, "o-", color=_COLOURS[side], label=label)
            axis.set_xscale("log")
            axis.set_ylim(bottom=0)
            axis.set_ylabel(FIGURES[name_of_figure][0])
    axes[0][0].legend()
    figure.tight_layout()
    drawn = _save(figure, directory, name)
    plt.close(figure)
    return drawn
