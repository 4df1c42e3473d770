"""Parse values of options. Option names are in lower case; errors name the option."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from odradek.client.config import IsolationLevel

_UNITS_MS: Final = {"": 1, "us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def isolation_level(options: Mapping[str, str]) -> IsolationLevel:
    """`kafka.isolation.level`, or without the prefix. Raises ValueError."""
    levels = ("read_uncommitted", "read_committed")
    shorter = choice(options, "isolation.level", levels, "read_uncommitted")
    return cast("IsolationLevel", choice(options, "kafka.isolation.level", levels, shorter))


def choice(options: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    """One of the choices, in lower case. Raises ValueError."""
    value = options.get(name, default).strip().lower()
    if value not in choices:
        raise ValueError(f"{name} is {options[name]!r}: choose one of {', '.join(choices)}")
    return value


def boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Raises ValueError unless it is true or false."""
    return choice(options, name, ("true", "false"), str(default).lower()) == "true"


def number(options: Mapping[str, str], name: str, least: int) -> int | None:
    """A whole number, or None if it was not given. Raises ValueError for less than `least`."""
    text = options.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < least:
        raise ValueError(f"{name} is {text!r}: it must be a number, at least {least}")
    return int(text)


def duration_ms(options: Mapping[str, str], name: str, default: str) -> int:
    """Return the milliseconds of a duration in Spark's notation: `15m`, `500ms`. Raises ValueError."""
    text = options.get(name, default)
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in _UNITS_MS:
        raise ValueError(f"{name} is {text!r}: write a number with ms, s, m, h or d")
    return int(int(found[1]) * _UNITS_MS[found[2]])
