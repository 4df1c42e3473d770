"""Waiting for work that several callers share, or that goes on without its caller."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

T = TypeVar("T")


async def outcome_of(running: asyncio.Future[T]) -> T:
    """Wait for a future, which goes on if the caller is cancelled, and return its result or raise its error.

    Not `asyncio.shield`: from Python 3.14 on it logs an error, with a traceback, that comes after the cancellation.
    """
    if not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError:
            running.add_done_callback(_retrieve)
            raise
    return running.result()


def _retrieve(done: asyncio.Future[Any]) -> None:
    """An error that nobody waits for any more is not logged."""
    if not done.cancelled():
        done.exception()
