"""How many cases a test tries: a fifth of the random ones, and of long tables, in `make test-fast`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

_ONE_OF = 5 if settings.get_current_profile_name() == "fast" else 1


def cases(number: int) -> int:
    """Return how many of `number` cases this run tries; at least two, because the first of hypothesis is trivial."""
    return max(number // _ONE_OF, 2)


def some(cases: Sequence[T]) -> Sequence[T]:
    """Return the cases of a long table that this run tries: all, or every fifth."""
    return cases[::_ONE_OF]


def examples(number: int) -> settings:
    """Decorate a test of hypothesis with the number of its examples."""
    return settings(max_examples=cases(number))
