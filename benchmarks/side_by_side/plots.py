"""Pictures of a run, as PNG and SVG: Odradek's figures divided by Apache Kafka's, and the series of growth.

| picture | what it shows |
|---|---|
| `raw`, `official` | a row for each work of README's table, a panel for each figure; bars: compiled; rings: plain |
| `growth` | the processor time of a request divided by that at the smallest size; a panel for each series |

All panels of a picture have the same scale. A bar is labelled with its ratio, the one of README's table, or says that
nothing was measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.side_by_side.results import (
    BASELINE,
    COMPILED,
    IN_README,
    MORE_IS_BETTER,
    ODRADEK,
    Row,
    Run,
    groups,
    series,
)

LOWEST, HIGHEST = 0.25, 2.0
"""The ends of the scale of ratios; a bar beyond them has an arrow after its label."""
NOT_MEASURED = "not measured"

_TITLES = {"raw": "prepared requests", "official": "official clients"}
COLOURS = {BASELINE: "#8a8a8a", ODRADEK: "#1f6feb"}
_TICKS = (0.25, 0.5, 0.7, 1, 1.5, 2)
_PANELS = (
    ("rate", "more is better", ("rate", "mb_per_s")),
    ("broker CPU", "less is better", ("cpu_us", "cpu_s_per_gb")),
    ("median latency", "less is better", ("p50_us", "p50_ms", "mean_ms")),
    ("99 % latency", "less is better", ("p99_us", "p99_ms")),
)
"""Of each panel: its title, its good direction, and its figures, of which a row has at most one."""


class _Grown(NamedTuple):
    """A panel of growth: the end of the work's name, the label of the x axis, the width."""

    ending: str
    label: str
    width: float = 1


_GROWN = (
    _Grown("other partitions", "other partitions of the broker"),
    _Grown("idle connections", "idle connections"),
    _Grown("MB", "MB in the log", 1.6),
    _Grown("× 64 MiB", "segments of 64 MiB in the log"),
    _Grown("other groups", "other consumer groups"),
)
_MARKERS = "os^DvP*X"


def draw(run: Run, directory: Path) -> dict[str, list[str]]:
    """Draw the pictures of the run into `directory`; return the names of the PNGs by group."""
    directory.mkdir(parents=True, exist_ok=True)
    by_group = groups(run.rows)
    drawn: dict[str, list[str]] = {}
    for group, title in _TITLES.items():
        plain, compiled = (_of_readme(by_group.get(name, [])) for name in (group, group + COMPILED))
        if plain or compiled:
            first = group if plain else group + COMPILED
            drawn[first] = [_save(ratio_figure(title, run.baseline, plain, compiled), directory, group)]
    if panels := growth_panels(by_group.get("growth", [])):
        drawn["growth"] = [_save(growth_figure(panels, run.baseline), directory, "growth")]
    return drawn


def _of_readme(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.work in IN_README]


def _save(figure: Any, directory: Path, name: str) -> str:
    import matplotlib as mpl

    # Text as text takes a third of the size; with a fixed salt, the same numbers give the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "odradek"}):
        figure.savefig(directory / f"{name}.png", dpi=120, bbox_inches="tight")
        figure.savefig(directory / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    return f"{name}.png"


def ratio_figure(title: str, baseline: str, plain: Sequence[Row], compiled: Sequence[Row]) -> Any:
    """Draw a panel each for rate, CPU and latencies: ours divided by the baseline's, in blue where we are better.

    Bars are of `compiled`, rings of `plain`; bars are of `plain` if nothing else was measured.
    """
    from matplotlib.figure import Figure

    bars = compiled or plain
    rings = {row.work: row for row in plain} if compiled else {}
    figure = Figure(figsize=(14, 0.34 * len(bars) + 1.9), layout="constrained")
    axes = figure.subplots(1, len(_PANELS), sharey=True, sharex=True)
    for axis, (name, divided, figures) in zip(axes, _PANELS, strict=True):
        for place, row in enumerate(reversed(bars)):
            _bar(axis, place, row, rings.get(row.work), figures)
        axis.axvline(1, color="black", linewidth=0.8)
        axis.set_title(f"{name}\n{divided}", fontsize="medium")
        axis.grid(visible=True, axis="x", color="#e4e4e4", linewidth=0.6)
        axis.set_axisbelow(True)
        _scale(axis)
    axes[0].set_yticks(range(len(bars)), [row.work for row in reversed(bars)])
    axes[0].set_ylim(-0.6, len(bars) - 0.4)
    build = "bars: compiled, as by pip install; rings and brackets: plain Python" if compiled else "plain Python"
    figure.suptitle(f"Odradek ÷ {baseline}, {title}; blue: Odradek is better\n{build}", fontsize="large")
    return figure


def _bar(axis: Any, place: int, row: Row, plain: Row | None, figures: Sequence[str]) -> None:
    found = [each for each in figures if each in row.figures()]
    if not found:
        axis.text(1, place, NOT_MEASURED, va="center", ha="center", fontsize="x-small", style="italic", color="#8a8a8a")
        return
    ratio = row.ratio(found[0])
    is_better = ratio >= 1 if found[0] in MORE_IS_BETTER else ratio <= 1
    axis.barh(place, _within(ratio) - 1, left=1, color=COLOURS[ODRADEK if is_better else BASELINE], height=0.6)
    right, label = max(1, _within(ratio)), _label(ratio)
    if plain is not None and found[0] in plain.figures():
        ring = plain.ratio(found[0])
        axis.plot(_within(ring), place, "o", markersize=5, markerfacecolor="white", markeredgecolor="black")
        right, label = max(right, _within(ring)), f"{label} ({_digits(ring)})"
    axis.annotate(label, (right, place), xytext=(6, 0), textcoords="offset points", va="center", fontsize="x-small")


def _label(ratio: float) -> str:
    """Return the ratio, with an arrow if the scale ends before it."""
    return _digits(ratio) + ("→" if ratio > HIGHEST else "←" if ratio < LOWEST else "")


def _digits(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def _within(ratio: float) -> float:
    return min(max(ratio, LOWEST), HIGHEST)


def _scale(axis: Any) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xlim(LOWEST * 0.9, HIGHEST * 2.6)  # room for the label of the longest bar
    axis.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    axis.tick_params(axis="x", labelsize="x-small")
    axis.minorticks_off()


Panels = Mapping[_Grown, Mapping[str, list[Row]]]
"""The series of each panel, by the work that was measured."""


def growth_panels(rows: Sequence[Row]) -> Panels:
    """Return the panels of growth that there are rows for; answers that grow themselves are in none."""
    works = {title: points for title, points in series(rows).items() if "cpu_growth" in points[-1].figures()}
    return {each: drawn for each in _GROWN if (drawn := _ending_with(each.ending, works))}


def growth_figure(panels: Panels, baseline: str) -> Any:
    """Draw the panels: CPU per request divided by that at the smallest size, of both brokers."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    widths = [each.width for each in panels]
    figure = Figure(figsize=(3.2 * sum(widths), 4.4), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=widths)[0]
    kinds = sorted({kind for drawn in panels.values() for kind in drawn})
    markers = dict(zip(kinds, _MARKERS, strict=False))
    names = {BASELINE: baseline, ODRADEK: "Odradek"}
    for axis, (grown, drawn) in zip(axes, panels.items(), strict=True):
        for kind, points in drawn.items():
            for side in names:
                # The smallest size is what the others are divided by; measured against itself it shows the noise alone.
                values = [1, *(row.median(side, "cpu_growth") for row in points[1:])]
                axis.plot([row.x for row in points], values, marker=markers[kind], color=COLOURS[side])
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.set_xlabel(grown.label)
        axis.grid(visible=True, axis="y", color="#e4e4e4", linewidth=0.6)
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel("broker CPU a request ÷\nthat at the smallest size")
    entries = [Line2D([], [], color=COLOURS[side], label=name) for side, name in names.items()]
    entries += [
        Line2D([], [], color="black", linestyle="none", marker=mark, label=kind) for kind, mark in markers.items()
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=4, fontsize="small")
    figure.suptitle(f"Odradek beside {baseline}: what a request costs when other things grow (1: no more)")
    return figure


def _ending_with(ending: str, works: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """Return the series of one thing that grows, by the work that was measured."""
    return {
        re.sub(", (with|amid|behind) N .*", "", title): points
        for title, points in works.items()
        if title.endswith(f" N {ending}")
    }
