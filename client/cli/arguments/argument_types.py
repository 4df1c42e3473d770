"""The types of flags' values, for argparse: each function parses a text, or raises ArgumentTypeError.

argparse prints the message of ArgumentTypeError behind the flag's name and exits with status 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable


def positive(text: str) -> int:
    """Parse a number above 0."""
    number = _number(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def not_negative(text: str) -> int:
    """Parse a number of 0 or more."""
    number = _number(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def number_of(unit: str, least: int) -> Callable[[str], int]:
    """Return the type of a number from `least` on; `unit` is its unit with an example: "minutes, such as 15"."""

    def parse(text: str) -> int:
        number = _number(text) if text.isdecimal() else -1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {unit}{', and above 0' if least else ''}")
        return number

    return parse


_INT32_MAX = (1 << 31) - 1
_milliseconds = number_of("milliseconds, such as 3000", 1)


def milliseconds(text: str) -> int:
    """Parse a time to wait, of at most 24 days, as in Kafka, where it is an int32."""
    number = _milliseconds(text)
    if number > _INT32_MAX:
        raise argparse.ArgumentTypeError(f"{text} milliseconds are more than {_INT32_MAX}, which are 24 days")
    return number


def named(text: str) -> str:
    """Check the name of a topic or group."""
    if not text.strip():
        raise argparse.ArgumentTypeError("a name has at least one character")
    return text


def assignment(text: str) -> tuple[str, str]:
    """Parse `name=value`. The value may be empty, and may contain more "=" characters."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name.strip(), value


def separator(text: str) -> bytes:
    r"""Parse the text between two parts of a line, with Python's escapes such as `\t`, `\n`, `\0`."""
    if not text:
        raise argparse.ArgumentTypeError("a separator has at least one character")
    return unescape(text).encode(errors="surrogateescape")


def unescape(text: str) -> str:
    r"""Return `text` with escapes such as `\n`, `\t`, `\r`, `\0`, `\\` and `\xHH` replaced by their characters."""
    if "\\" not in text:
        return text
    import codecs
    import re

    def one(found: re.Match[str]) -> str:
        return codecs.decode(found[0], "unicode_escape")

    return re.sub(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[0abtnvfr\\])", one, text)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
