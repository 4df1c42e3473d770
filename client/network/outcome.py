"""Waiting for work that several callers share, or that goes on without its caller."""

from __future__ import annotations

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def outcome_of(running: asyncio.Future[T]) -> T:
    """Wait for a future, which goes on if the caller is cancelled, and return its result or raise its error.

    Not `asyncio.shield`: from Python 3.14 on it logs an error, with a traceback, that comes after the cancellation.
    """
    if not running.done():
        await asyncio.wait((running,))
    return running.result()
