"""Rates over sampled windows. The expected numbers follow Kafka's `Rate`: N windows, N - 1 of them at least."""

from __future__ import annotations

import pytest

from odradek.broker.quotas.samples import Samples, Windows

ELEVEN = Windows(11, 1.0)


def test_nothing_is_a_rate_of_zero() -> None:
    assert Samples(ELEVEN).rate(5.0) == 0.0


def test_the_first_value_counts_over_all_windows_but_one() -> None:
    samples = Samples(ELEVEN)
    samples.record(100, 50.0)

    assert samples.rate(50.0) == 10.0
    assert samples.rate(50.5) == pytest.approx(100 / 10.5)


def test_a_steady_stream_has_its_rate() -> None:
    samples = Samples(ELEVEN)
    for tenth in range(1000):
        samples.record(10, tenth / 10)

    assert samples.rate(99.9) == pytest.approx(100, rel=0.05)


def test_a_window_counts_until_its_last_record_is_as_old_as_all_windows() -> None:
    samples = Samples(Windows(3, 2.0))
    samples.record(60, 0.0)
    samples.record(60, 1.5)

    assert samples.total(7.4) == 120
    assert samples.total(7.5) == 0


def test_after_a_pause_the_span_starts_anew() -> None:
    samples = Samples(ELEVEN)
    samples.record(1000, 0.0)
    samples.record(100, 500.0)

    assert samples.rate(500.0) == 10.0


def test_a_negative_value_takes_back_an_earlier_one() -> None:
    samples = Samples(ELEVEN)
    samples.record(500, 1.0)
    samples.record(-500, 1.0)

    assert samples.rate(1.0) == 0.0


def test_the_average_is_that_of_the_windows_that_count() -> None:
    samples = Samples(Windows(2, 30.0))
    assert samples.average(0.0) == 0.0
    samples.record(10, 0.0)
    samples.record(30, 10.0)

    assert samples.average(10.0) == 20
    assert samples.average(100.0) == 0


def test_memory_is_bounded() -> None:
    samples = Samples(Windows(3, 1.0))
    for second in range(1000):
        samples.record(1, second * 1.0)

    assert samples.total(999.0) == 3
