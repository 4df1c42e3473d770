"""Counts with their nouns in texts: `1 broker`, `2 brokers`. It is in the lowest layer because every layer uses it."""

from __future__ import annotations


def pluralize(count: int, singular: str, plural: str = "", *, spec: str = "") -> str:
    """Return a count with its noun. `plural` is by default `singular` with an s; `spec` formats the count.

    With a verb, pass both: `pluralize(left, "byte remains", "bytes remain")`.
    """
    return f"{count:{spec}} {singular if count == 1 else plural or singular + 's'}"
