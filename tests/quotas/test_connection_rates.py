from __future__ import annotations

import pytest

from odradek.broker.quotas.connection_rates import AddressRates, CreationRate
from odradek.broker.quotas.entities import entity_of
from odradek.broker.quotas.samples import Windows

WINDOWS = Windows(11, 1.0)
KIND = "connection_creation_rate"


def rates(most: int = 100, **limits: float) -> AddressRates:
    made = AddressRates(WINDOWS, most=most)
    made.set({entity_of([("ip", name or None)]): {KIND: limit} for name, limit in limits.items()})
    return made


def test_connections_are_accepted_at_the_rate_of_the_broker() -> None:
    rate = CreationRate(WINDOWS, 10, 0.0)
    now, accepted, begun_at, begun_with = 0.0, 0, 0.0, 0
    while now < 200:
        accepted += 1
        now += 0.001 + rate.record(10, now) / 1000
        if now < 40:
            begun_at, begun_with = now, accepted

    assert (accepted - begun_with) / (now - begun_at) == pytest.approx(10, rel=0.1)
    assert rate.rate(now) == pytest.approx(10, rel=0.1)


def test_the_pause_is_one_window_at_most() -> None:
    rate = CreationRate(WINDOWS, 1, 0.0)

    assert max(rate.record(1, 0.0) for _ in range(1000)) == 1000


def test_an_address_without_quota_is_not_measured() -> None:
    made = rates(**{"192.0.2.7": 1})

    assert {made.record("192.0.2.8", 0.0) for _ in range(1000)} == {0}
    assert len(made) == 0


def test_an_address_connects_at_its_rate_however_often_it_tries() -> None:
    made = rates(**{"": 5})
    served = sum(made.record("192.0.2.7", tick / 100) == 0 for tick in range(4000, 24_000))

    assert served / 200 == pytest.approx(5, rel=0.1)


def test_the_quota_of_an_address_goes_before_the_default() -> None:
    made = rates(**{"": 1, "192.0.2.7": 1000})

    assert {made.record("192.0.2.7", 0.0) for _ in range(500)} == {0}
    assert max(made.record("192.0.2.8", 0.0) for _ in range(500)) == 1000


def test_an_address_is_recognised_however_the_quota_writes_it() -> None:
    made = rates(**{"::FFFF:192.0.2.7": 1})

    assert max(made.record("192.0.2.7", 0.0) for _ in range(50)) > 0


def test_memory_is_bounded_and_ends_with_the_quotas() -> None:
    made = rates(most=10, **{"": 5})
    for number in range(1000):
        made.record(f"10.0.{number // 250}.{number % 250}", 0.0)
    assert len(made) == 10

    made.set({})
    assert not made
    assert len(made) == 0
