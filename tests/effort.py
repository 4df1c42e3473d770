"""The number of cases a test tries: in `make test-fast` a fifth of random ones and long tables, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import uvloop
from hypothesis import settings

T = TypeVar("T")

_ONE_OF = 5 if settings.get_current_profile_name() == "fast" else 1


def cases(number: int) -> int:
    """Return how many of `number` cases this run tries; at least two, because the first of hypothesis is trivial."""
    return max(number // _ONE_OF, 2)


def some(cases: Sequence[T]) -> Sequence[T]:
    """Return the cases of a long table that this run tries: all, or every fifth."""
    return cases[::_ONE_OF]


def event_loops() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the event loops that the broker runs on: asyncio's and uvloop's, of which `make test-fast` tries uvloop's.

    It is for `pytest_asyncio_loop_factories` in a conftest.py, which runs each asynchronous test once for each loop.
    """
    loops = {"uvloop": uvloop.new_event_loop}
    return loops if _ONE_OF > 1 else {"asyncio": asyncio.new_event_loop, **loops}


def examples(number: int) -> settings:
    """Decorate a test of hypothesis with the number of its examples."""
    return settings(max_examples=cases(number))
