from __future__ import annotations

import asyncio

from odradek.broker import waiting
from odradek.broker.clock import SystemClock
from odradek.broker.testing.clock import ManualClock


async def test_without_a_clock_that_moves_the_timers_are_the_event_loop_itself() -> None:
    for clock in (SystemClock(), ManualClock()):
        assert waiting.timers(clock) is asyncio.get_running_loop()
        assert waiting.client_timers(clock) is asyncio.get_running_loop()
        await asyncio.wait_for(waiting.sleep(clock, 0.001), 60)
        await asyncio.wait_for(waiting.pause(clock, 0.001), 60)
