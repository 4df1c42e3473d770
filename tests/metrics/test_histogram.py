from __future__ import annotations

import random

import pytest

from broker.histogram import HALF_LIFE_SECONDS, DurationHistogram

FRACTIONS = [0.5, 0.75, 0.95, 0.99, 0.999]


def test_nothing_recorded_has_quantiles_of_zero() -> None:
    assert DurationHistogram().quantiles(FRACTIONS) == [0.0] * len(FRACTIONS)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_within_five_percent(seed: int) -> None:
    chance = random.Random(seed)
    durations = sorted(chance.lognormvariate(-8, 2) for _ in range(10_000))
    histogram = DurationHistogram()
    for duration in chance.sample(durations, len(durations)):
        histogram.record(duration)
    for fraction, found in zip(FRACTIONS, histogram.quantiles(FRACTIONS), strict=True):
        assert found == pytest.approx(durations[int(fraction * len(durations)) - 1], rel=0.05)


def test_count_and_sum_are_exact_before_and_after_folding() -> None:
    histogram = DurationHistogram()
    for _ in range(5000):
        histogram.record(0.25)
    assert (histogram.count, histogram.sum) == (5000, 1250.0)
    histogram.fold()
    assert (histogram.count, histogram.sum) == (5000, 1250.0)


def test_pending_durations_are_bounded() -> None:
    histogram = DurationHistogram()
    for _ in range(100_000):
        histogram.record(0.001)
    assert len(histogram.pending) < 5000


def test_requests_that_did_not_wait_count_as_zero() -> None:
    histogram = DurationHistogram()
    histogram.record_zeros(90)
    for _ in range(10):
        histogram.record(1.0)
    assert histogram.quantiles([0.5, 0.95]) == [0.0, pytest.approx(1.0, rel=0.05)]
    assert histogram.count == 100


def test_old_durations_fade_out_of_quantiles_but_not_of_the_count() -> None:
    histogram = DurationHistogram()
    for _ in range(1000):
        histogram.record(1.0)
    histogram.fade(10 * HALF_LIFE_SECONDS)
    for _ in range(100):
        histogram.record(0.001)
    assert histogram.quantiles([0.9]) == [pytest.approx(0.001, rel=0.05)]
    assert histogram.count == 1100


@pytest.mark.parametrize("extreme", [0.0, 1e-9, 5e5])
def test_durations_beyond_the_buckets_are_counted_in_the_outermost(extreme: float) -> None:
    histogram = DurationHistogram()
    histogram.record(extreme)
    histogram.fold()
    assert histogram.count == 1
