from __future__ import annotations

import random

import pytest

from odradek.broker.metrics.counts.histogram import HALF_LIFE_SECONDS, DurationHistogram

FRACTIONS = [0.5, 0.75, 0.95, 0.99, 0.999]


def test_quantiles_of_an_empty_histogram_are_0() -> None:
    assert DurationHistogram().quantiles(FRACTIONS) == [0.0] * len(FRACTIONS)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_within_five_percent(seed: int) -> None:
    chance = random.Random(seed)
    durations = sorted(chance.lognormvariate(-8, 2) for _ in range(10_000))
    histogram = DurationHistogram()
    shuffled = chance.sample(durations, len(durations))
    for start in range(0, len(shuffled), 700):
        histogram.record_all(shuffled[start : start + 700])
    for fraction, found in zip(FRACTIONS, histogram.quantiles(FRACTIONS), strict=True):
        assert found == pytest.approx(durations[int(fraction * len(durations)) - 1], rel=0.05)


def test_count_and_sum_are_exact() -> None:
    histogram = DurationHistogram()
    histogram.record_all([0.25] * 5000)
    histogram.record_all([])
    histogram.record_all([0.5])
    assert (histogram.count, histogram.sum) == (5001, 1250.5)


def test_durations_of_0_are_counted() -> None:
    histogram = DurationHistogram()
    histogram.record_all([0.0] * 90 + [1.0] * 10)
    assert histogram.quantiles([0.5, 0.95]) == [0.0, pytest.approx(1.0, rel=0.05)]
    assert histogram.count == 100


def test_old_durations_leave_the_quantiles_but_not_the_count() -> None:
    histogram = DurationHistogram()
    histogram.record_all([1.0] * 1000)
    histogram.fade(10 * HALF_LIFE_SECONDS)
    histogram.record_all([0.001] * 100)
    assert histogram.quantiles([0.9]) == [pytest.approx(0.001, rel=0.05)]
    assert histogram.count == 1100


@pytest.mark.parametrize("extreme", [0.0, 1e-9, 5e5])
def test_durations_beyond_the_buckets_are_counted_in_the_outermost(extreme: float) -> None:
    histogram = DurationHistogram()
    histogram.record_all([extreme])
    assert histogram.count == 1
