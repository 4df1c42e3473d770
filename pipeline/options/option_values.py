"""Parse values of options. Option names are in lower case; errors name the option."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from odradek.client.config import IsolationLevel, number_of

_UNITS_MS: Final = {"": 1, "us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def isolation_level(options: Mapping[str, str]) -> IsolationLevel:
    """Parse `kafka.isolation.level`, or the same without the prefix. Raises ValueError, also for two that differ."""
    levels = ("read_uncommitted", "read_committed")
    without_prefix = choice(options, "isolation.level", levels, "read_uncommitted")
    level = choice(options, "kafka.isolation.level", levels, without_prefix)
    if "isolation.level" in options and level != without_prefix:
        raise ValueError(f"isolation.level is {without_prefix}, and kafka.isolation.level is {level}: give one of them")
    return cast("IsolationLevel", level)


def choice(options: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    """Parse one of the choices, in lower case. Raises ValueError."""
    value = options.get(name, default).strip().lower()
    if value not in choices:
        raise ValueError(f"{name} is {options[name]!r}: choose one of {', '.join(choices)}")
    return value


def boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Parse true or false. Raises ValueError for anything else."""
    return choice(options, name, ("true", "false"), str(default).lower()) == "true"


def number(options: Mapping[str, str], name: str, least: int) -> int | None:
    """Parse a whole number; None if the option is missing. Raises ValueError for less than `least`."""
    text = options.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < least:
        raise ValueError(f"{name} is {text!r}: write {number_of(name)}, at least {least}")
    return int(text)


def duration_ms(options: Mapping[str, str], name: str, default: str) -> int:
    """Parse a duration in Spark's notation, such as `15m` or `500ms`, as milliseconds. Raises ValueError."""
    text = options.get(name, default)
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in _UNITS_MS:
        raise ValueError(f"{name} is {text!r}: write a number with ms, s, m, h or d")
    return int(int(found[1]) * _UNITS_MS[found[2]])


def local_path(text: str) -> str:
    """Return the path of a directory, which may be a URI without escapes, such as `file:/logs`. Raises ValueError."""
    scheme, separator, rest = text.partition(":/")
    if not separator or "/" in scheme:
        return text.rstrip("/") or "/"
    if scheme.lower() != "file":
        raise ValueError(f'format("klog") reads local directories, not {text}: write file:///… where Spark has another')
    return "/" + rest.strip("/")
