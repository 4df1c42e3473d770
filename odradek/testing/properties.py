"""The properties of brokers as tests write them: integers and booleans beside strings."""

from __future__ import annotations

from collections.abc import Mapping

Properties = Mapping[str, str | int | float | bool]


def as_text(properties: Properties) -> dict[str, str]:
    """Return the properties as a file would have them: `True` is "true". Raises TypeError for other types."""
    return {name: _text(name, value) for name, value in properties.items()}


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError(f"the property {name} is {value!r}: give it a str, an int, a float or a bool")
