r"""Records as lines of text, as Kafka's console producer reads them.

```
[headers TAB] [key TAB] value          headers: name:value,name:value
```
Flags, or the properties of the console producer, choose the parts and what separates them:

| reader property | default | |
|---|---|---|
| `parse.key` | false | the line has a key before the value |
| `key.separator` | `\t` | behind the key |
| `parse.headers` | false | the line begins with headers |
| `headers.delimiter` | `\t` | behind the headers |
| `headers.separator` | `,` | between headers |
| `headers.key.separator` | `:` | between the name and the value of a header |
| `null.marker` | none | a key, value or header value equal to it is null; if the headers equal it, there are none |
| `ignore.error` | false | a line without its separator is a value without a key |

Source: Kafka `LineMessageReader`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from odradek.client.cli.input.input_record import Headers, InputRecord, LineError

PROPERTIES = frozenset(
    {
        "parse.key",
        "key.separator",
        "parse.headers",
        "headers.delimiter",
        "headers.separator",
        "headers.key.separator",
        "null.marker",
        "ignore.error",
    }
)


class TextLines(NamedTuple):
    """The parts of a line and their separators."""

    key_separator: bytes | None = None  # None: lines have no keys
    headers_delimiter: bytes | None = None  # None: lines have no headers
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None
    ignores_errors: bool = False

    def parse(self, line: bytes, number: int) -> InputRecord:
        """Parse a line. Raises LineError if a separator is missing."""
        headers: Headers = []
        key: bytes | None = None
        value: bytes | None = line
        if self.headers_delimiter is not None:
            text, line = self._split(line, self.headers_delimiter, "headers", number)
            if text is not None and text != self.null_marker:
                headers = self._headers(text, number)
            value = line
        if self.key_separator is not None:
            key, value = self._split(line, self.key_separator, "key", number)
        if self.null_marker is not None:
            key, value = self._nullable(key), self._nullable(value)
        return InputRecord(key, value, headers)

    def _split(self, line: bytes, separator: bytes, part: str, number: int) -> tuple[bytes | None, bytes]:
        before, found, rest = line.partition(separator)
        if found:
            return before, rest
        if self.ignores_errors:
            return None, line
        raise LineError(f"line {number} has no {part}: it does not contain {separator.decode(errors='replace')!r}")

    def _headers(self, text: bytes, number: int) -> Headers:
        pairs = text.split(self.headers_separator)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()  # as Kafka does, ignore separators at the end
        return [self._header(pair, number) for pair in pairs]

    def _header(self, pair: bytes, number: int) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self.headers_key_separator)
        if not found and not self.ignores_errors:
            shown = self.headers_key_separator.decode(errors="replace")
            raise LineError(f"line {number} has a header without a value: {pair!r} does not contain {shown!r}")
        if name == self.null_marker:
            raise LineError(f"line {number} has a header whose name is the null marker")
        return name.decode(errors="surrogateescape"), self._nullable(value) if found else None

    def _nullable(self, part: bytes | None) -> bytes | None:
        return None if part == self.null_marker else part


def from_properties(properties: Iterable[tuple[str, str]]) -> TextLines:
    """Return the form of lines that the console producer reads with these properties."""
    given = dict(properties)
    keys, headers, ignores = (
        given.get(name, "false").lower() == "true" for name in ("parse.key", "parse.headers", "ignore.error")
    )
    marker = given.get("null.marker")
    return TextLines(
        key_separator=given.get("key.separator", "\t").encode() if keys else None,
        headers_delimiter=given.get("headers.delimiter", "\t").encode() if headers else None,
        headers_separator=given.get("headers.separator", ",").encode(),
        headers_key_separator=given.get("headers.key.separator", ":").encode(),
        null_marker=None if marker is None else marker.encode(),
        ignores_errors=ignores,
    )
