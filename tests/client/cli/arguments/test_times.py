"""Times and durations on the command line."""

from __future__ import annotations

import argparse

import pytest

from odradek.client.cli.arguments import times
from odradek.client.cli.arguments.times import before_now, duration_ms, iso, record_timestamp, timestamp


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20.250+01:00", 1_700_000_000_250),
        ("2023-11-14", 1_699_920_000_000),
        ("1969-12-31", 0),
    ],
)
def test_points_in_time(text: str, ms: int) -> None:
    assert timestamp(text) == ms


@pytest.mark.parametrize(
    ("text", "ms"), [("now", 10**12), ("-1h", 10**12 - 3_600_000), ("+1d12h", 10**12 + 129_600_000), ("-99999d", 0)]
)
def test_points_in_time_relative_to_now(monkeypatch: pytest.MonkeyPatch, text: str, ms: int) -> None:
    monkeypatch.setattr(times, "now_ms", lambda: 10**12)
    assert timestamp(text) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("250ms", 250),
        ("1.5s", 1500),
        ("2d", 172_800_000),
        ("PT1H30M", 5_400_000),
        ("P2D", 172_800_000),
        ("P1DT0.5S", 86_400_500),
        ("9007199254740993ms", 9_007_199_254_740_993),
        (f"{2**63 - 1}ms", 2**63 - 1),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "h",
        "P",
        "PT",
        "1y",
        "1h-2m",
        "P1H",
        "1..5s",
        "99999999999999999999d",
        f"{2**63}ms",
        "9" * 400 + "d",
        "9" * 5000 + "ms",
    ],
)
def test_text_that_is_not_a_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        duration_ms(text)


@pytest.mark.parametrize(
    "text", ["", "noon", "-", "-1", "+h", "2023-13-01", "99999999999999999999", f"+{2**63 - 1}ms", "9" * 5000]
)
def test_text_that_is_not_a_point_in_time(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        timestamp(text)


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59.999Z", "-30000d", "0001-01-01"])
def test_no_record_has_a_time_before_1970_but_one_that_is_looked_up_is_0(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="before 1970"):
        record_timestamp(text)
    assert timestamp(text) == 0


def test_a_duration_that_began_before_1970_begins_at_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "now_ms", lambda: 10**12)
    assert before_now(10**12 - 7) == 7
    assert before_now(30_000 * 86_400_000) == 0


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1_700_000_000_250, "2023-11-14T22:13:20.250Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "-"),
        (10**18, str(10**18)),
    ],
)
def test_times_for_people(ms: int, text: str) -> None:
    assert iso(ms) == text
