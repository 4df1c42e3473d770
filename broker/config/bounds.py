"""The bounds of values, beyond their types. `str()` of a bound is Kafka's notation for it: `[0,...,1]`.

A bound is called with a parsed value. It raises `InvalidValueError`, whose message has the valid values. All bounds are
inclusive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from odradek.broker.config.types import OUT_OF_BOUNDS, InvalidValueError

Bound = Callable[[Any], None]


class Range(msgspec.Struct, frozen=True):
    """A number from `low` to `high`; None: no upper bound."""

    low: float
    high: float | None = None

    def __call__(self, value: float) -> None:
        if value < self.low:
            raise InvalidValueError(f"{OUT_OF_BOUNDS} at least {self.low}")
        if self.high is not None and value > self.high:
            raise InvalidValueError(f"{OUT_OF_BOUNDS} no more than {self.high}")

    def __str__(self) -> str:
        return f"[{self.low},...]" if self.high is None else f"[{self.low},...,{self.high}]"


class OneOf(msgspec.Struct, frozen=True):
    """One of some words; for a list, each item is one of them."""

    words: tuple[str, ...]

    def __call__(self, value: str | list[str]) -> None:
        for word in [value] if isinstance(value, str) else value:
            if word not in self.words:
                expected = f"String must be one of: {', '.join(self.words)}" if any(self.words) else "must be empty"
                raise InvalidValueError(expected, word)

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]"


class OneOfAnyCase(msgspec.Struct, frozen=True):
    """One of some words, in upper or lower case."""

    words: tuple[str, ...]

    def __call__(self, value: str) -> None:
        if value.upper() not in self.words:
            raise InvalidValueError(f"String must be one of (case insensitive): {', '.join(self.words)}")

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.words)}]"


class RangeOr(msgspec.Struct, frozen=True):
    """A number in a range, or one value with a meaning of its own."""

    low: int
    high: int
    otherwise: int

    def __call__(self, value: int) -> None:
        if value != self.otherwise and not self.low <= value <= self.high:
            raise InvalidValueError(f"{OUT_OF_BOUNDS} between {self.low} and {self.high} or equal to {self.otherwise}")

    def __str__(self) -> str:
        return f"[{self.low},...,{self.high}] or {self.otherwise}"


def at_least(low: int) -> Range:
    return Range(low)


def between(low: int, high: int) -> Range:
    return Range(low, high)


def one_of(*words: str) -> OneOf:
    return OneOf(words)
