"""The search for the value that a message cannot carry, after its encoder has failed.

Encoders check no values: `struct` does, and its error names neither the field nor the value. A message that fits pays
nothing for the search.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from operator import index
from typing import Any

from odradek.protocol.schema import EncodedPart, Layout, LayoutField, Scalar

_MAX_CHARACTERS = 60
_MAX_BITS = 128
_INTEGERS = "bhiqHI"


def unfit_value(message: Any, of: Layout) -> str | None:
    """Return `field = value: what it may be` for the first value that does not fit, or None if each does."""
    return _structure(message, of, "")


def _structure(structure: Any, of: Layout, path: str) -> str | None:
    if not isinstance(structure, of.cls):
        return _unfit(path, structure, f"it is a {of.cls.__name__}")
    prefix = f"{path}." if path else ""
    of_fields = (*of.fields, *(field for _, field in of.tagged))
    complaints = (_field(getattr(structure, field.name), field, prefix + field.name) for field in of_fields)
    return next(filter(None, complaints), None)


def _field(value: Any, field: LayoutField, path: str) -> str | None:
    if value is None and field.is_nullable:
        return None
    if not field.is_array:
        return _value(value, field, path)
    if isinstance(value, str) or not isinstance(value, Iterable):
        return _unfit(path, value, "it is a list")
    return next(filter(None, (_value(each, field, f"{path}[{number}]") for number, each in enumerate(value))), None)


def _value(value: Any, field: LayoutField, path: str) -> str | None:
    if field.part is not None:
        return None if isinstance(value, EncodedPart) else _structure(value, field.part, path)
    if not isinstance(field.kind, Scalar):
        return None
    if field.kind.code and field.kind.code in _INTEGERS:
        return _integer(value, field.kind, path)
    return _text(value, path) if field.kind.name == "string" else None


def _integer(value: Any, kind: Scalar, path: str) -> str | None:
    try:
        number = index(value)
    except TypeError:
        return _unfit(path, value, f"it is an {kind.name}")
    bits = 8 * struct.calcsize(f">{kind.code}")
    least, most = (0, (1 << bits) - 1) if kind.code.isupper() else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return None if least <= number <= most else _unfit(path, value, f"it is an {kind.name}, {least} to {most}")


def _text(value: Any, path: str) -> str | None:
    if not isinstance(value, str):
        return _unfit(path, value, "it is a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return _unfit(path, value, f"it is UTF-8, and the character {error.start} is not: {error.reason}")
    return None


def _unfit(path: str, value: Any, wanted: str) -> str:
    return f"{path} = {_shortened(value)}: {wanted}"


def _shortened(value: Any) -> str:
    """Return the start of `repr(value)`, without making all of it for a long value."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to print one of more than 4,300 digits
    if isinstance(value, str | bytes | bytearray | list | tuple):
        value = value[: _MAX_CHARACTERS + 1]
    text = repr(value)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
