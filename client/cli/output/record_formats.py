r"""The formats of `consume`: the line of Kafka's console consumer, and format strings as kcat has them.

`input.json_records` has the third one, JSON. The line of the console consumer, whose parts `--print` or the consumer's
properties choose:

```
CreateTime:1700000000000 TAB Partition:0 TAB Offset:5 TAB trace:42,user:7 TAB key TAB value LF
```
| formatter property | default | |
|---|---|---|
| `print.timestamp`, `print.partition`, `print.offset`, `print.headers`, `print.key` | false | |
| `print.value` | true | |
| `key.separator`, `line.separator`, `headers.separator` | `\t`, `\n`, `,` | between parts, records, headers |
| `null.literal` | null | in place of a key or value that is null |

Source: Kafka `DefaultMessageFormatter`.

In a format string, `%t` is the topic, `%p` the partition, `%o` the offset, `%T` the timestamp in ms, `%k` the key, `%K`
its length, `%s` the value, `%S` its length, `%h` the headers (name=value,…), `%%` a percent sign. Null has length -1
and prints nothing. `\n`, `\t`, `\0`, `\xHH` and the like are escapes. No line end is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from odradek.client.cli.arguments.argument_types import unescape
from odradek.client.cli.input.json_records import TIMESTAMP_TYPES
from odradek.client.record import ConsumerRecord

Format = Callable[[ConsumerRecord], bytes]
"""Returns the printed bytes of a record, including the line end."""

_PART = re.compile(r"%(.?)", re.DOTALL)


class ConsoleFormat(NamedTuple):
    """The parts of the console consumer's line, and what separates them."""

    prints_timestamp: bool = False
    prints_partition: bool = False
    prints_offset: bool = False
    prints_headers: bool = False
    prints_key: bool = False
    prints_value: bool = True
    separator: bytes = b"\t"
    line_end: bytes = b"\n"
    headers_separator: bytes = b","
    null: bytes = b"null"

    def format(self, record: ConsumerRecord) -> bytes:
        parts = []
        if self.prints_timestamp:
            parts.append(_timestamp(record))
        if self.prints_partition:
            parts.append(b"Partition:%d" % record.partition)
        if self.prints_offset:
            parts.append(b"Offset:%d" % record.offset)
        if self.prints_headers:
            parts.append(self._headers(record))
        if self.prints_key:
            parts.append(self.null if record.key is None else record.key)
        if self.prints_value:
            parts.append(self.null if record.value is None else record.value)
        return self.separator.join(parts) + self.line_end

    def _headers(self, record: ConsumerRecord) -> bytes:
        pairs = (
            name.encode(errors="surrogateescape") + b":" + (self.null if value is None else value)
            for name, value in record.headers
        )
        return self.headers_separator.join(pairs) or b"NO_HEADERS"


PROPERTIES = {
    "print.timestamp": "prints_timestamp",
    "print.partition": "prints_partition",
    "print.offset": "prints_offset",
    "print.headers": "prints_headers",
    "print.key": "prints_key",
    "print.value": "prints_value",
    "key.separator": "separator",
    "line.separator": "line_end",
    "headers.separator": "headers_separator",
    "null.literal": "null",
}
"""The console consumer's formatter properties, and their names in ConsoleFormat."""


def from_properties(properties: Iterable[tuple[str, str]]) -> ConsoleFormat:
    """Return the line of the console consumer with these properties (of PROPERTIES)."""
    chosen: dict[str, Any] = {
        PROPERTIES[name]: value.lower() == "true" if name.startswith("print.") else value.encode()
        for name, value in properties
    }
    return ConsoleFormat()._replace(**chosen)


def compile_format(text: str) -> Format:
    """Return the function that formats records by a format string. Raises ValueError for an unknown `%` letter."""
    parts: list[bytes | Format] = []
    for index, piece in enumerate(_PART.split(text)):
        if index % 2 == 0:
            parts.append(unescape(piece).encode(errors="surrogateescape"))
        elif piece == "%":
            parts.append(b"%")
        elif piece in _FIELDS:
            parts.append(_FIELDS[piece])
        else:
            raise ValueError(f"there is no %{piece}: there are {' '.join('%' + name for name in _FIELDS)} and %%")

    def formatted(record: ConsumerRecord) -> bytes:
        return b"".join([part if isinstance(part, bytes) else part(record) for part in parts])

    return formatted


def _timestamp(record: ConsumerRecord) -> bytes:
    if record.timestamp_type is None:
        return b"NO_TIMESTAMP"
    return b"%s:%d" % (TIMESTAMP_TYPES[record.timestamp_type].encode(), record.timestamp)


def _length(part: bytes | None) -> bytes:
    return b"-1" if part is None else b"%d" % len(part)


def _kcat_headers(record: ConsumerRecord) -> bytes:
    pairs = (
        name.encode(errors="surrogateescape") + b"=" + (b"NULL" if value is None else value)
        for name, value in record.headers
    )
    return b",".join(pairs)


_FIELDS: dict[str, Format] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "k": lambda record: record.key or b"",
    "K": lambda record: _length(record.key),
    "s": lambda record: record.value or b"",
    "S": lambda record: _length(record.value),
    "h": _kcat_headers,
}
