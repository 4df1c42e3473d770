"""The value types of Kafka's configuration: text to value and back, as `ConfigDef.parseType` and `convertToString` do.

A `Type[T]` gives a row of the tables its type: to mypy, the value of `Property("x", INT, 1)` is an `int`. Texts are
trimmed; numbers are ASCII digits with an optional sign (no underscores, no other scripts); lists are split at commas
with the white space around them, and the empty text is the empty list. The numbers in `TypeCode` are those of
DescribeConfigs (KIP-569).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


NOT_A_NUMBER = "Not a number of type"
OUT_OF_BOUNDS = "Value must be"


class TypeCode(IntEnum):
    """The types of properties in DescribeConfigs, from version 3 on."""

    UNKNOWN = 0  # of the levels of loggers, which are not in the tables
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class InvalidValueError(ValueError):
    """A text is not a value of its type, or out of bounds; the message has the valid values, in Kafka's words.

    `value` is the invalid part of the text, such as one item of a list; None: all of it.
    """

    def __init__(self, problem: str, value: str | None = None) -> None:
        super().__init__(problem)
        self.value = value


_UNITS = {
    "ms": "milliseconds, such as 3600000",
    "bytes": "bytes, such as 1048576",
    "seconds": "seconds, such as 60",
    "minutes": "minutes, such as 60",
    "hours": "hours, such as 168",
}
"""The unit of a number by the last word of its property's name, with an example."""


def invalid_value(name: str, text: str, error: InvalidValueError, *, sensitive: bool = False) -> str:
    """Return what a client is told about an invalid value: Kafka's `ConfigException`, which programs search for text.

    A text that is no number, or out of bounds, is also answered with the unit of the property and an example.
    """
    if error.value == "":  # an item of a list: Kafka's `ValidList`
        return f"Configuration '{name}' values must not be empty."
    shown = "[hidden]" if sensitive else text if error.value is None else error.value
    return f"Invalid value {shown} for configuration {name}: {problem_of(name, error)}"


def problem_of(name: str, error: InvalidValueError) -> str:
    """Return the message of `error`, with the unit and an example if the property `name` is a number."""
    is_about_a_number = str(error).startswith((NOT_A_NUMBER, OUT_OF_BOUNDS))
    unit = _UNITS.get(name.rsplit(".", 1)[-1]) if is_about_a_number else None
    return f"{error}; write a number of {unit}" if unit else str(error)


class Type(Generic[T]):
    """The conversions of one type of value from text and to text."""

    def __init__(self, code: TypeCode, parse: Callable[[str], T], text: Callable[[T], str] = str) -> None:
        self.code = code
        self._parse = parse
        self._text = text

    def parse(self, text: str) -> T:
        """Raises `InvalidValueError`."""
        return self._parse(text.strip())

    def text(self, value: T | None) -> str | None:
        """Return `value` as text for DescribeConfigs; None (unset) stays None."""
        return None if value is None else self._text(value)


def nullable(kind: Type[T]) -> Type[T | None]:
    """Return the same type for a property that may be unset; it differs only for the type checker."""
    return cast("Type[T | None]", kind)


_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z", re.ASCII)
_COMMA = re.compile(r"\s*,\s*")


def _integer(code: TypeCode, bits: int) -> Type[int]:
    limit = 1 << (bits - 1)

    def parse(text: str) -> int:
        value = int(text) if _INTEGER.match(text) else limit
        if not -limit <= value < limit:
            raise InvalidValueError(f"{NOT_A_NUMBER} {code.name}")
        return value

    return Type(code, parse)


def _parse_boolean(text: str) -> bool:
    value = {"true": True, "false": False}.get(text.lower())
    if value is None:
        raise InvalidValueError("Expected value to be either true or false")
    return value


def _parse_double(text: str) -> float:
    if not _DOUBLE.match(text):
        raise InvalidValueError(f"{NOT_A_NUMBER} DOUBLE")
    return float(text)


def parse_list(text: str) -> list[str]:
    """Return the items without repetitions (KIP-1161)."""
    return list(dict.fromkeys(_COMMA.split(text))) if text else []


def _double_text(value: float) -> str:
    """Return the text that Java writes: `1.0E7` from 10^7 on and below 10^-3."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    mantissa = str(number.scaleb(-exponent))
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{exponent}"


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


def _list_text(value: Any) -> str:
    return ",".join(str(item) for item in value)


def list_of(parse: Callable[[str], T]) -> Type[list[T]]:
    """Return a LIST type whose items `parse` converts; it raises `InvalidValueError`."""
    return Type(TypeCode.LIST, lambda text: [parse(item) for item in parse_list(text)], _list_text)


BOOLEAN = Type(TypeCode.BOOLEAN, _parse_boolean, _boolean_text)
STRING = Type(TypeCode.STRING, str)
SHORT = _integer(TypeCode.SHORT, 16)
INT = _integer(TypeCode.INT, 32)
LONG = _integer(TypeCode.LONG, 64)
DOUBLE = Type(TypeCode.DOUBLE, _parse_double, _double_text)
LIST = Type(TypeCode.LIST, parse_list, _list_text)
CLASS = Type(TypeCode.CLASS, str)
PASSWORD = Type(TypeCode.PASSWORD, str)
