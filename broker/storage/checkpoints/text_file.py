"""The form of Kafka's checkpoint files: a version, the number of rows, and the rows, one a line.

```
0
2
topic-a 0 170
topic-a 1 42
```
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.plural import pluralize


class MalformedFileError(Exception):
    """A small file of the log directory does not have its form."""


def encode_rows(version: int, rows: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in (version, len(rows), *rows)).encode()


def parse_rows(data: bytes, columns: int, version: int = 0) -> list[list[str]]:
    """The fields of each row, `columns` of them, separated by white space. Raises `MalformedFileError`."""
    try:
        lines = data.decode().splitlines()
        found_version, count = int(lines[0]), int(lines[1])
    except (UnicodeDecodeError, ValueError, IndexError):
        raise MalformedFileError(f"no version and count in {data[:40]!r}") from None
    if found_version != version:
        raise MalformedFileError(f"version {found_version} is unknown")
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(rows) != count:
        raise MalformedFileError(f"{pluralize(len(rows), 'row')} where the file claims {count}")
    for row in rows:
        if len(row) != columns or not all(field.isdecimal() for field in row[-2:]):
            raise MalformedFileError(f"{row} is no row of {columns} fields")
    return rows
