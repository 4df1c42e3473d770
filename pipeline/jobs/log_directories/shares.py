"""Sharing files out to tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])


def shared_out(sized: Iterable[tuple[int, T]], tasks: int) -> list[list[T]]:
    """Things with their sizes, in at most so many shares of about the same size; the largest things first."""
    shares: list[list[T]] = [[] for _ in range(tasks)]
    sizes = [0] * tasks
    for size, thing in sorted(sized, reverse=True):
        least = min(range(tasks), key=lambda task: (sizes[task], len(shares[task])))
        shares[least].append(thing)
        sizes[least] += size
    return [share for share in shares if share]
