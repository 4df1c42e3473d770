"""The rule of blocking methods: not on a thread whose event loop they would stop."""

from __future__ import annotations

import asyncio

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


def check_no_loop(name: str) -> None:
    """Raise RuntimeError, with the twin to await, if an event loop runs on this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"kafka.{name}() would block the running event loop: write `await kafka.aio.{name}(…)`")
