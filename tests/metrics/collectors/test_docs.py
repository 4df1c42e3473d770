"""The page of metrics is what the collectors say."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.metrics.collectors.dashboards import DASHBOARDS
from odradek.broker.metrics.collectors.docs import PAGE, metrics_page

ROOT = Path(__file__).parents[3]


def rows() -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in metrics_page().splitlines() if line.startswith("| `kafka")]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text() == metrics_page(), "make docs"


def test_every_series_has_a_meaning() -> None:
    assert [row[0] for row in rows() if not row[2].strip(". ")] == []


def test_a_series_of_a_dashboard_is_on_the_page_with_its_name() -> None:
    for dashboard in DASHBOARDS:
        for name in dashboard.series:
            [row] = [line for line in metrics_page().splitlines() if line.startswith(f"| `{name}`")]
            assert dashboard.name in row


def test_our_own_dashboard_is_named_beside_its_series() -> None:
    [lag] = [row for row in rows() if row[0] == "`kafka_consumergroup_lag_sum`"]
    assert lag[3].rstrip(" |") == "Odradek"
