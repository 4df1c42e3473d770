from __future__ import annotations

import time

from odradek.broker.testing import unfrozen_time


def test_the_wall_clock_is_the_machines() -> None:
    before = time.time_ns() // 1_000_000
    between = unfrozen_time.time_ms()
    assert before <= between <= time.time_ns() // 1_000_000


def test_the_monotonic_clock_is_the_machines() -> None:
    before = time.monotonic()
    between = unfrozen_time.monotonic()
    assert before <= between <= time.monotonic()
