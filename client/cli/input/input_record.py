"""A record as a line of input tells it, and what is wrong with a line that tells none."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Headers = list[tuple[str, bytes | None]]


class InputRecord(NamedTuple):
    """What is to be sent. `partition` and `timestamp` (ms) are None where the line leaves them to the producer."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None = None
    timestamp: int | None = None


class LineError(Exception):
    """A line that is no record; says which and why."""


Parse = Callable[[bytes, int], InputRecord | None]
"""Makes a record of a line (without its end) and its number, from 1 on; None where it is to be skipped.

Raises LineError.
"""
