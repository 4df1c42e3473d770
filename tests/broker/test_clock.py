from __future__ import annotations

import pytest

from odradek.broker.clock import Clock, SystemClock, boot_id
from odradek.broker.testing.clock import ManualClock


def test_the_systems_clocks_run_in_milliseconds_and_seconds() -> None:
    clock: Clock = SystemClock()

    assert clock.time_ms() > 1_700_000_000_000
    assert 0 <= clock.monotonic() <= clock.monotonic()
    assert 0 <= clock.boot_time() <= clock.boot_time()


def test_the_manual_clock_is_constant_until_it_is_moved() -> None:
    clock: Clock = ManualClock(time_ms=5_000, monotonic=1.0)

    assert (clock.time_ms(), clock.monotonic()) == (5_000, 1.0)


def test_time_passes_on_all_clocks() -> None:
    clock = ManualClock(time_ms=5_000, monotonic=1.0)
    clock.advance(1_500)

    assert (clock.time_ms(), clock.monotonic(), clock.boot_time()) == (6_500, 2.5, 2.5)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def test_the_wall_clock_can_be_set_without_the_monotonic_clock() -> None:
    clock = ManualClock(time_ms=5_000, monotonic=1.0)
    clock.set_time_ms(1_000)

    assert (clock.time_ms(), clock.monotonic()) == (1_000, 1.0)


def test_the_boot_id_does_not_change_while_the_system_runs() -> None:
    assert boot_id() == boot_id()
