"""The comparison of brokers for test suites: its measurements and its table."""

from __future__ import annotations

import pytest

from benchmarks import comparison
from tests.peers import odradek


@pytest.mark.process
def test_an_embedded_broker_is_measured_from_import_to_stop() -> None:
    sample = comparison.measure_embedded("second")
    assert sample.keys() == {"start", "round trip", "processor", "memory", "stop"}
    assert all(value > 0 for value in sample.values())


@pytest.mark.process
def test_a_process_is_measured_and_ended() -> None:
    sample = comparison.measure_server(odradek.prepare)
    assert sample.keys() == {"start", "round trip", "processor", "memory", "stop"}
    assert all(value > 0 for value in sample.values())


def test_a_cell_has_the_median_and_the_bounds() -> None:
    rows = [{"start": 1.0, "memory": 40.4}, {"start": 3.0}, {"start": 2.0}]
    assert comparison.format_cell(rows, "start") == "2.00 s (1.00–3.00)"
    assert comparison.format_cell(rows, "memory") == "40 MB (40–40)"
    assert comparison.format_cell(rows, "format") == ""
