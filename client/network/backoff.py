"""Pauses between attempts: exponential, with jitter, so that many clients do not reconnect at the same moment.

The n-th pause is `first * 2^n`, at most `longest`, times a random factor from 0.8 to 1.2 (KIP-580).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import uniform
from typing import TypeVar

from odradek.client.config import ClientConfig
from odradek.client.errors import ClientError, ClosedError

T = TypeVar("T")

_JITTER = 0.2


class Backoff:
    """The pauses between the attempts of one operation, in seconds."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float, longest: float) -> None:
        self._first = self._next = first
        self._longest = longest

    def next(self) -> float:
        """Return the pause before the next attempt, and lengthen the one after it."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause * uniform(1 - _JITTER, 1 + _JITTER)

    def reset(self) -> None:
        """Start again with the first pause, after a success."""
        self._next = self._first


async def retried(
    config: ClientConfig, attempt: Callable[[], Awaitable[T]], is_retriable: Callable[[ClientError], bool]
) -> T:
    """Return the result of `attempt`, which is repeated after a pause while its ClientError `is_retriable`.

    Raises the other errors, and ClosedError in any case.
    """
    backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
    while True:
        try:
            return await attempt()
        except ClosedError:
            raise
        except ClientError as error:
            if not is_retriable(error):
                raise
        await asyncio.sleep(backoff.next())
