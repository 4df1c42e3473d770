"""Counts in words for people: `1 broker`, `2 brokers`; the layer below all others has it, so that each may."""

from __future__ import annotations


def pluralize(count: int, singular: str, plural: str = "", *, spec: str = "") -> str:
    """A count and what is counted; `plural` is `singular` with an s unless it is given, `spec` formats the count.

    With a verb both are given: `pluralize(left, "byte remains", "bytes remain")`.
    """
    return f"{count:{spec}} {singular if count == 1 else plural or singular + 's'}"
