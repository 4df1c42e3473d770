from __future__ import annotations

from typing import Any, cast

import pytest

from odradek.broker.coordinator.runtime.timers import KeyTimers
from tests.coordinator.runtime.bench import StillLoop

SESSION, OTHER = ("session", "m"), ("session", "other")


class Timed:
    """Timers on a loop that stands still, and those that have expired."""

    def __init__(self) -> None:
        self.loop = StillLoop()
        self.expired: list[tuple[str, str]] = []
        self.timers = KeyTimers(cast("Any", self.loop), self.expired.append)


@pytest.fixture
def timed() -> Timed:
    return Timed()


def test_a_timer_that_is_set_again_expires_at_the_later_time(timed: Timed) -> None:
    timed.timers.set(SESSION, 1_000)
    timed.loop.advance(0.9)
    timed.timers.set(SESSION, 1_000)
    timed.loop.advance(0.9)
    assert (timed.expired, timed.timers.remaining(SESSION)) == ([], pytest.approx(0.1))
    timed.loop.advance(0.1)
    assert timed.expired == [SESSION]


def test_a_postponed_timer_expires_so_much_later(timed: Timed) -> None:
    timed.timers.set(SESSION, 1_000)
    timed.timers.postpone([SESSION, OTHER], 10)
    timed.loop.advance(10.9)
    assert timed.expired == []
    timed.loop.advance(0.1)
    assert timed.expired == [SESSION]
    assert timed.timers.remaining(OTHER) is None  # it was not set, and is not now


def test_a_timer_can_expire_at_once_and_only_once(timed: Timed) -> None:
    timed.timers.set(SESSION, 1_000)
    timed.timers.expire(SESSION)
    timed.timers.expire(SESSION)
    timed.timers.expire(OTHER)
    timed.loop.advance(10)

    assert timed.expired == [SESSION]
    assert timed.timers.take_due(SESSION)
    assert not timed.timers.take_due(SESSION)
