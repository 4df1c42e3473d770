r"""The parser of Java's `.properties` files, compatible with `java.util.Properties`.

```
natural line    up to \n, \r or \r\n
comment         a natural line that begins, after white space, with # or !; it is never continued
logical line    natural lines, each except the last ending in an odd number of backslashes; the last backslash and the
                white space at the start of the next natural line are dropped. A continuation is never a comment
key             up to the first unescaped = : space \t \f
separator       white space, at most one = or :, white space
value           the rest, trailing white space included
escapes         \t \n \r \f, \uXXXX (UTF-16 code units), a backslash before anything else is dropped
white space     space, \t, \f
```

Pure functions over text; the caller reads the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_WHITE_SPACE = " \t\f"
_NATURAL_LINE = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u.{0,4}|.?)", re.DOTALL)
_HEX = re.compile(r"u[0-9a-fA-F]{4}\Z")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Entry(NamedTuple):
    """One key with its value, and the number (from 1) of its first natural line."""

    key: str
    value: str
    line: int


class MalformedPropertiesError(ValueError):
    r"""The text has a `\u` escape without four hexadecimal digits, which is the only error of the format."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line


def decode(data: bytes) -> str:
    """Decode a file's bytes.

    Differs from Kafka, which reads every file as ISO-8859-1: UTF-8 is tried first, because editors write it.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def parse(text: str) -> list[Entry]:
    """Return the entries in file order, duplicates included. Raises `MalformedPropertiesError`."""
    entries = []
    for line, logical in _logical_lines(text):
        key = _KEY.match(logical)
        assert key is not None
        separator = _SEPARATOR.match(logical, key.end())
        assert separator is not None
        entries.append(Entry(_unescape(key.group(), line), _unescape(logical[separator.end() :], line), line))
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending: list[str] = []
    started = 0
    naturals = _NATURAL_LINE.split(text)
    if not naturals[-1]:
        naturals.pop()
    for number, natural in enumerate(naturals, 1):
        line = natural.lstrip(_WHITE_SPACE)
        if not pending:
            if not line or line[0] in "#!":
                continue
            started = number
        if _is_continued(line):
            pending.append(line[:-1])
            continue
        logical = "".join([*pending, line])
        pending = []
        if logical:
            yield started, logical
    if pending:
        # The text ends after a continued line; in Java even an empty one is an entry.
        yield started, "".join(pending)


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        escape = match.group(1)
        if not escape.startswith("u"):
            return _CONTROL.get(escape, escape)
        if not _HEX.match(escape):
            raise MalformedPropertiesError(line, f"\\{escape} is not \\u and four hexadecimal digits")
        return chr(int(escape[1:], 16))

    unescaped = _ESCAPE.sub(replace, text)
    # \uXXXX are UTF-16 code units: a pair of surrogates is one character.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
