"""Pauses between attempts: exponential, with jitter, so that the clients of a returning broker do not march in step.

The n-th pause is `first * 2^n`, at most `longest`, times a random factor from 0.8 to 1.2 (KIP-580).
"""

from __future__ import annotations

from random import uniform

_JITTER = 0.2


class Backoff:
    """The pauses of one thing that is being retried. Times in seconds."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float, longest: float) -> None:
        self._first = self._next = first
        self._longest = longest

    def next(self) -> float:
        """How long to wait before the next attempt; longer from one call to the next."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause * uniform(1 - _JITTER, 1 + _JITTER)

    def reset(self) -> None:
        """The attempt succeeded: begin again with the first pause."""
        self._next = self._first
