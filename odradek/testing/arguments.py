"""The arguments of a test's handle: each check raises TypeError or ValueError with what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

Config = Mapping[str, str | int | float | bool]
"""Properties of a topic by their names in Kafka. The value True is `true`, False is `false`."""


def check_name(what: str, name: object) -> None:
    """Raise TypeError unless `name` is a str, and ValueError if it is empty; `what` says of what it is the name."""
    if not isinstance(name, str):
        raise TypeError(f'the name of a {what} is a str, such as "orders", and not {name!r}')
    if not name:
        raise ValueError(f'the name of a {what} is empty: write one, such as "orders"')


def check_count(argument: str, count: object, least: int, cure: str = "", most: int | None = None) -> None:
    """Raise TypeError unless `count` is an int, ValueError if it is below `least` or above `most`; `cure` is a clause.

    The most is that of the field which carries the count.
    """
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{argument} is an int, such as {argument}={_digits(count)}, and not {count!r}")
    if count < least:
        raise ValueError(f"{argument} is {least} or more, and not {count}{': ' if cure else ''}{cure}")
    if most is not None and count > most:
        raise ValueError(f"{argument} is {most} or less, and not {count}{': ' if cure else ''}{cure}")


def check_seconds(argument: str, seconds: object, *, endless: bool = False) -> None:
    """Raise TypeError unless it is a number, ValueError if it is negative; with `endless`, None is allowed."""
    if seconds is None and endless:
        return
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        or_none = ", or None to wait without end" if endless else ""
        raise TypeError(f"{argument} is a number of seconds, such as {argument}=5{or_none}, and not {seconds!r}")
    if not seconds >= 0:  # NaN, too
        raise ValueError(f"{argument} is a number of seconds from 0 on, and not {seconds}")


def check_condition(where: object) -> None:
    """Raise TypeError unless `where` can be called, or is None."""
    if where is not None and not callable(where):
        raise TypeError(f'where is a function, such as lambda record: record.key == b"7", and not {where!r}')


def config_texts(config: object) -> dict[str, str]:
    """Return properties with their values as text. Raises TypeError for other names and values."""
    if not isinstance(config, Mapping):
        raise TypeError(f'config is a dict, such as {{"cleanup.policy": "compact"}}, and not {config!r}')
    for name, value in config.items():
        if not isinstance(name, str):
            raise TypeError(f'the name of a property is a str, such as "retention.ms", and not {name!r}')
        if not isinstance(value, str | int | float):
            cure = f': write "{",".join(map(str, value))}"' if isinstance(value, list | tuple) else ""
            raise TypeError(f"the value of {name} is a str, a number or a bool, and not {value!r}{cure}")
    return {name: _text(value) for name, value in config.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _digits(count: object) -> str:
    """Return the number that a test has meant, if it can be seen, and else an example."""
    return count if isinstance(count, str) and count.isascii() and count.isdigit() else "3"
