"""Throttle times, and the rates that clients reach that obey them."""

from __future__ import annotations

import pytest

from odradek.broker.quotas.samples import Windows
from odradek.broker.quotas.token_bucket import TokenBucket
from odradek.broker.quotas.usage import MutationUsage, Usage, rounded_ms

ELEVEN = Windows(11, 1.0)


def test_within_the_limit_nobody_waits() -> None:
    usage = Usage(ELEVEN, 100, 0.0)

    assert usage.charge(1000, 0.0) == 0  # 10 windows of 100


def test_the_throttle_time_is_kafkas() -> None:
    usage = Usage(ELEVEN, 100, 0.0)

    # O = 2000 / 10 s = 200, T = 100, W = 10 s: (O - T) / T * W.
    assert usage.charge(2000, 0.0) == 10_000


def test_a_request_quota_throttles_for_one_window_at_most() -> None:
    usage = Usage(ELEVEN, 100, 0.0, longest_ms=1000)

    assert usage.charge(1e9, 0.0) == 1000


def test_a_throttle_time_fits_into_a_response() -> None:
    assert Usage(ELEVEN, 0.001, 0.0).charge(1e15, 0.0) == 0x7FFF_FFFF
    assert rounded_ms(0.0005) == 1
    assert rounded_ms(0.00049) == 0


def test_a_new_limit_holds_for_what_was_measured_before() -> None:
    usage = Usage(ELEVEN, 100, 0.0)
    usage.charge(1000, 0.0)
    usage.limit = 50

    assert usage.throttle_ms(0.0) == 10_000


@pytest.mark.parametrize("size", [100, 10_000, 150_000])
@pytest.mark.parametrize("windows", [ELEVEN, Windows(2, 1.0), Windows(5, 3.0)])
def test_a_client_that_obeys_reaches_its_rate_within_ten_percent(size: int, windows: Windows) -> None:
    limit = 100_000.0
    usage = Usage(windows, limit, 0.0)
    now, sent, begun_at, begun_with = 0.0, 0, 0.0, 0
    while now < 400:
        sent += size
        now += 0.0001 + usage.charge(size, now) / 1000
        if now < 40:  # the first windows may be used at once
            begun_at, begun_with = now, sent

    assert (sent - begun_with) / (now - begun_at) == pytest.approx(limit, rel=0.1)


def test_two_clients_of_one_quota_share_it() -> None:
    limit = 100_000.0
    usage = Usage(ELEVEN, limit, 0.0)
    due = {"a": 0.0, "b": 0.0}
    sent = begun_with = 0
    now = begun_at = 0.0
    while now < 400:
        client = min(due, key=lambda each: due[each])
        now = max(now, due[client]) + 0.0001
        sent += 5000
        due[client] = now + usage.charge(5000, now) / 1000
        if now < 40:
            begun_at, begun_with = now, sent

    assert (sent - begun_with) / (now - begun_at) == pytest.approx(limit, rel=0.1)


def test_throttle_times_have_an_average() -> None:
    usage = Usage(ELEVEN, 100, 0.0)
    assert usage.average_throttle_ms(0.0) == 0
    usage.record_throttle(100, 0.0)
    usage.record_throttle(300, 1.0)

    assert usage.average_throttle_ms(1.0) == 200


def test_a_bucket_is_full_at_first_and_may_be_overdrawn() -> None:
    bucket = TokenBucket(Windows(10, 1.0), 5, 0.0)
    assert bucket.tokens(0.0) == 50

    bucket.take(70, 0.0)

    assert bucket.tokens(0.0) == -20
    assert bucket.wait(0.0) == 4
    assert bucket.wait(3.0) == 1
    assert bucket.wait(4.0) == 0


def test_a_bucket_holds_no_more_than_its_windows() -> None:
    bucket = TokenBucket(Windows(10, 1.0), 5, 0.0)
    bucket.take(1, 0.0)

    assert bucket.tokens(10_000.0) == 50


def test_mutations_are_measured_and_limited() -> None:
    usage = MutationUsage(Windows(10, 1.0), 5, 0.0)

    assert usage.charge(50, 0.0) == 0
    assert usage.charge(1, 0.0) == 200
    assert usage.rate(0.0) == pytest.approx(51 / 9)
    assert usage.tokens(0.2) == pytest.approx(0)


def test_a_steady_stream_of_mutations_keeps_to_the_rate() -> None:
    usage = MutationUsage(ELEVEN, 5, 0.0)
    now, created = 0.0, 0
    while now < 1000:
        wait = usage.throttle_ms(now)
        if wait:
            now += wait / 1000
            continue
        usage.charge_unchecked(3, now)
        created += 3
        now += 0.01

    assert created / now == pytest.approx(5, rel=0.1)
