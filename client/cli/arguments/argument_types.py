"""What stands behind a flag, read and checked for argparse: each function turns text into a value or refuses it.

argparse prints the message of ArgumentTypeError behind the flag's name and exits with status 2.
"""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A number above 0."""
    number = _number(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def not_negative(text: str) -> int:
    """A number, 0 or above."""
    number = _number(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def named(text: str) -> str:
    """The name of a topic or group."""
    if not text.strip():
        raise argparse.ArgumentTypeError("a name has at least one character")
    return text


def assignment(text: str) -> tuple[str, str]:
    """`name=value`; the value may be empty and may hold more of "="."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name.strip(), value


def separator(text: str) -> bytes:
    r"""Text between two parts of a line; `\t`, `\n`, `\0` and the other escapes stand for what they are in Python."""
    if not text:
        raise argparse.ArgumentTypeError("a separator has at least one character")
    return unescape(text).encode(errors="surrogateescape")


def unescape(text: str) -> str:
    r"""`text` with `\n`, `\t`, `\r`, `\0`, `\\`, `\xHH` and the like replaced by what they stand for."""
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
