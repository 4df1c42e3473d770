"""The payloads that `perf` sends: random letters, or the lines of a file, in random order."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from pathlib import Path

_POOL = 1000
"""Number of different payloads. They are made in advance, so that making them does not slow sending down."""

_POOL_BYTES = 16 << 20  # of all payloads together; larger payloads are fewer
_LETTERS = bytes(ord(string.ascii_uppercase[byte % 26]) for byte in range(256))  # for bytes.translate


def random_payloads(size: int) -> Iterator[bytes]:
    """Yield payloads of `size` random letters, without end."""
    count = max(1, min(_POOL, _POOL_BYTES // size))
    return _cycle([random.randbytes(size).translate(_LETTERS) for _ in range(count)])


def payloads_of_file(path: str, delimiter: bytes) -> Iterator[bytes]:
    """Yield the parts of a file in random order, without end. Raises OSError; ValueError for an empty file."""
    parts = [part for part in Path(path).read_bytes().split(delimiter) if part]
    if not parts:
        raise ValueError(f"{path} is empty: there is nothing to send")
    random.shuffle(parts)
    return _cycle(parts)


def _cycle(parts: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from parts
