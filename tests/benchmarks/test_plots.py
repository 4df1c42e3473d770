"""The pictures of the benchmark: titles, labels, scales."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_rgba

from benchmarks.side_by_side import plots
from benchmarks.side_by_side.results import BASELINE, COMPILED, IN_README, ODRADEK, Row, Run

pytestmark = pytest.mark.slow  # drawing, and the import of what draws


def row(work: str, ours: dict[str, float], theirs: dict[str, float] | None = None, group: str = "raw") -> Row:
    return Row(group, work, {BASELINE: [theirs or dict.fromkeys(ours, 1.0)], ODRADEK: [ours]})


def grown(work: str, size: int, kafka: float, ours: float) -> Row:
    samples = {BASELINE: [{"cpu_growth": kafka}], ODRADEK: [{"cpu_growth": ours}]}
    return Row("growth", work.format(f"{size:,}"), samples, x=size)


def texts(axis: Any) -> list[str]:
    return [each.get_text() for each in axis.texts]


def test_the_title_names_both_brokers_and_the_build() -> None:
    compiled = plots.ratio_figure("fetches", "Apache Kafka", [], [row("fetch", {"rate": 2})])
    plain = plots.ratio_figure("fetches", "Apache Kafka", [row("fetch", {"rate": 2})], [])
    assert "Odradek ÷ Apache Kafka, fetches" in compiled.get_suptitle()
    assert "compiled" in compiled.get_suptitle()
    assert "compiled" not in plain.get_suptitle()
    assert "plain Python" in plain.get_suptitle()


def test_a_bar_is_labelled_with_the_compiled_ratio_and_the_plain_one_in_brackets() -> None:
    figure = plots.ratio_figure("", "", [row("fetch", {"rate": 0.5})], [row("fetch", {"rate": 1.25})])
    assert texts(figure.axes[0]) == ["1.25 (0.50)"]


def test_every_panel_shows_the_ratio_of_readmes_table_in_blue_where_we_are_better() -> None:
    figure = plots.ratio_figure(
        "", "", [], [row("fetch", {"rate": 1.5, "cpu_us": 0.5, "p50_us": 1.25, "p99_us": 0.75})]
    )
    assert [texts(axis) for axis in figure.axes] == [["1.50"], ["0.50"], ["1.25"], ["0.75"]]
    blue, grey = to_rgba(plots.COLOURS[ODRADEK]), to_rgba(plots.COLOURS[BASELINE])
    assert [axis.patches[0].get_facecolor() for axis in figure.axes] == [blue, blue, grey, blue]


def test_missing_figures_look_different_from_equal_ones() -> None:
    figure = plots.ratio_figure("", "", [], [row("fetch", {"rate": 1})])
    assert texts(figure.axes[0]) == ["1.00"]
    assert [texts(axis) for axis in figure.axes[1:]] == [[plots.NOT_MEASURED]] * 3


def test_all_panels_have_one_scale_with_ticks_on_both_sides_of_one() -> None:
    figure = plots.ratio_figure("", "", [], [row("fetch", {"rate": 3, "cpu_us": 0.01, "p99_us": 9})])
    assert len({axis.get_xlim() for axis in figure.axes}) == 1
    for axis in figure.axes:
        shown = [tick for tick in axis.get_xticks() if axis.get_xlim()[0] <= tick <= axis.get_xlim()[1]]
        assert sum(tick < 1 for tick in shown) >= 2
        assert sum(tick > 1 for tick in shown) >= 2


def test_a_bar_beyond_the_scale_ends_at_its_edge_with_a_label() -> None:
    figure = plots.ratio_figure("", "", [], [row("fetch", {"rate": 50}), row("produce", {"rate": 0.1})])
    axis = figure.axes[0]
    assert sorted(texts(axis)) == ["0.10←", "50→"]
    ends = {edge for bar in axis.patches for edge in (bar.get_x(), bar.get_x() + bar.get_width())}
    assert ends == {plots.LOWEST, 1, plots.HIGHEST}


def test_growth_has_a_labelled_panel_for_each_quantity_and_one_scale() -> None:
    rows = [
        *(grown("produce 100 B, 8×1, with {} other partitions", size, 1.5, 1) for size in (1, 100)),
        *(grown("produce 100 B, 1×1, behind {} MB", size, 1, 1) for size in (10, 1000)),
        *(grown("fetch 16 KiB, 1×1, amid {} MB", size, 1, 1) for size in (10, 1000)),
    ]
    figure = plots.growth_figure(plots.growth_panels(rows), "Apache Kafka")
    assert [axis.get_xlabel() for axis in figure.axes] == ["other partitions of the broker", "MB in the log"]
    assert len({axis.get_ylim() for axis in figure.axes}) == 1


def test_answers_that_grow_themselves_are_in_no_panel(tmp_path: Path) -> None:
    run = Run("today", "Apache Kafka", {}, {}, 1, 1, [grown("Metadata, 1×1, of {} topics", 100, 5, 5)])
    assert plots.draw(run, tmp_path) == {}


def test_the_legend_of_growth_is_outside_and_names_brokers_and_kinds_of_work() -> None:
    rows = [grown("OffsetCommit, 8×1, with {} other groups", size, 1, 1) for size in (1, 100)]
    figure = plots.growth_figure(plots.growth_panels(rows), "Apache Kafka")
    assert [axis.get_legend() for axis in figure.axes] == [None]
    [legend] = figure.legends
    assert [each.get_text() for each in legend.get_texts()] == ["Apache Kafka", "Odradek", "OffsetCommit, 8×1"]


def test_a_picture_contains_plain_and_compiled_figures(tmp_path: Path) -> None:
    works = (IN_README[0], "a work that README does not show")
    rows = [row(work, {"rate": 1}, group=group) for work in works for group in ("raw", f"raw{COMPILED}")]
    run = Run("today", "Apache Kafka", {}, {}, 1, 1, rows)
    assert plots.draw(run, tmp_path) == {"raw": ["raw.png"]}
    assert {path.name for path in tmp_path.iterdir()} == {"raw.png", "raw.svg"}
    labels = (tmp_path / "raw.svg").read_text()
    assert works[0] in labels
    assert works[1] not in labels


def test_growth_starts_at_one() -> None:
    rows = [grown("OffsetCommit, 8×1, with {} other groups", size, 1.4, 0.8) for size in (1, 100)]
    figure = plots.growth_figure(plots.growth_panels(rows), "Apache Kafka")
    assert [list(line.get_ydata()) for line in figure.axes[0].lines[:2]] == [[1, 1.4], [1, 0.8]]


def test_the_results_show_every_picture_of_this_tree() -> None:
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    shown = re.findall(r"\(plots/(\w+)\.png\)", (benchmarks / "RESULTS.md").read_text())
    assert sorted(f"{name}.{kind}" for name in shown for kind in ("png", "svg")) == sorted(
        path.name for path in (benchmarks / "plots").iterdir()
    )
