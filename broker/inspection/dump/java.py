"""Java's behaviour where Python's differs and a dump shows it: integers, UTF-8, numbers, paths."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Final

from odradek.broker.inspection.dump.complaints import DumpError

INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1
_REPLACEMENT: Final = "\ufffd"
_UTF8_HANDLER: Final = "odradek.broker.inspection.dump.java"
_SLASHES: Final = re.compile("/+")
_LONG: Final = re.compile(r"[+-]?[0-9]+")


def int32(value: int) -> int:
    """Wrap around as an `int` does."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def int64(value: int) -> int:
    """Wrap around as a `long` does."""
    return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def optional_long(value: int | None) -> str:
    """`OptionalLong.toString`."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def boolean(value: bool) -> str:
    return "true" if value else "false"


def utf8_text(data: bytes) -> str:
    """`new String(data, UTF_8)`: malformed bytes become U+FFFD.

    Java and Python agree on how many, except for an encoded surrogate (ED A0 80), which is one mistake to Java and
    three to Python.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors=_UTF8_HANDLER)


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    data, start = error.object, error.start
    if data[start] == 0xED and 0xA0 <= int.from_bytes(data[start + 1 : start + 2]) <= 0xBF:
        is_whole = 0x80 <= int.from_bytes(data[start + 2 : start + 3]) <= 0xBF
        return _REPLACEMENT, start + (3 if is_whole else 2)
    return _REPLACEMENT, error.end


codecs.register_error(_UTF8_HANDLER, _replace)


def parse_long(text: str) -> int:
    """`Long.parseLong`, of ASCII digits. Raises DumpError."""
    if _LONG.fullmatch(text) and -INT64_MAX - 1 <= (number := int(text)) <= INT64_MAX:
        return number
    raise DumpError(f"{text!r} is not a number: a file of a segment is named by its base offset")


def file_path(text: str) -> str:
    """`new File(text).toString()`: slashes once, none at the end."""
    path = _SLASHES.sub("/", text)
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def absolute_path(path: str) -> str:
    """`File.getAbsolutePath`: dots stay where they are."""
    if path.startswith("/"):
        return path
    here = str(Path.cwd())
    return f"{here.rstrip('/')}/{path}" if path else here
