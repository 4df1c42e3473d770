"""The conditions of `--filter` on key, value or a header of a record; all of them must hold.

| condition | holds where the part |
|---|---|
| `key=abc`, `value=`, `header.trace=42` | equals the text |
| `key!=abc` | does not equal the text, or is null or missing |
| `value~err.*42` | contains a match of the regular expression (Python's, on bytes) |
| `value!~^DEBUG` | contains no match, or is null or missing |

If a record has a header several times, one that fulfils the condition is enough. The pattern comes from the user of the
command, so Python's own engine needs no protection against slow patterns.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from odradek.client.record import ConsumerRecord

Condition = Callable[[ConsumerRecord], bool]

_CONDITION = re.compile(r"(key|value|header\.(?P<header>[^=~!]+))(?P<operator>!?[=~])(?P<text>.*)", re.DOTALL)


def condition(text: str) -> Condition:
    """Parse a condition; raises ArgumentTypeError."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a condition: write key=TEXT, value~REGEX, header.NAME!=TEXT or the like"
        )
    holds = _test(found["operator"][-1], found["text"].encode(errors="surrogateescape"))
    parts = _parts(found[1], found["header"])
    is_wanted = not found["operator"].startswith("!")
    return lambda record: any(part is not None and holds(part) for part in parts(record)) == is_wanted


def _test(operator: str, text: bytes) -> Callable[[bytes], bool]:
    if operator == "=":
        return text.__eq__
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(
            f"{text.decode(errors='replace')!r} is not a regular expression: {error}"
        ) from None
    return lambda part: pattern.search(part) is not None


def _parts(part: str, header: str | None) -> Callable[[ConsumerRecord], list[bytes | None]]:
    if header is not None:
        return lambda record: [value for name, value in record.headers if name == header]
    if part == "key":
        return lambda record: [record.key]
    return lambda record: [record.value]
