"""The rule of blocking methods: not on a thread whose event loop they would stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


def check_no_loop(name: str) -> None:
    """Raise RuntimeError, with the twin to await, if an event loop runs on this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"kafka.{name}() would block the running event loop: write `await kafka.aio.{name}(…)`")


class _Failed(NamedTuple):
    error: Exception


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function on a thread, and return its result or raise its exception.

    The exception does not pass through the thread's own functions, whose lines a failed test would show.
    """

    def call() -> T | _Failed:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - raised below
            return _Failed(error)

    outcome = await asyncio.to_thread(call)
    if not isinstance(outcome, _Failed):
        return outcome
    try:
        raise outcome.error
    finally:
        del outcome  # the traceback of its error refers to this frame
