"""The event loop of a broker beside a test: its timers run while the test has frozen its own time."""

from __future__ import annotations

import asyncio

from odradek.broker.testing.unfrozen_time import monotonic


class BrokerLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio on a clock that no library for tests stops."""

    def time(self) -> float:
        return monotonic()
