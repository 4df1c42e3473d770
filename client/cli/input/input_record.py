"""The record of a line of input, and the error of a line that contains none."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Headers = list[tuple[str, bytes | None]]


class InputRecord(NamedTuple):
    """A record to send. `partition` and `timestamp` (ms) are None if the producer chooses them."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None = None
    timestamp: int | None = None


class LineError(Exception):
    """A line that is not a record; the message has its number and the reason."""


Parse = Callable[[bytes, int], InputRecord | None]
"""Parses a line (without its end) with its number, which begins at 1; returns None to skip it. Raises LineError."""
