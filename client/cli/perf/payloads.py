"""What `perf` sends: random letters, or the lines of a file, in random order."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from pathlib import Path

_POOL = 1000
"""Different payloads that are made beforehand, so that making them takes no time from sending."""

_POOL_BYTES = 16 << 20  # of all of them together, or there are fewer
_LETTERS = bytes(ord(string.ascii_uppercase[byte % 26]) for byte in range(256))  # for bytes.translate


def random_payloads(size: int) -> Iterator[bytes]:
    """Records of `size` random letters, for ever."""
    count = max(1, min(_POOL, _POOL_BYTES // size))
    return _cycle([random.randbytes(size).translate(_LETTERS) for _ in range(count)])


def payloads_of_file(path: str, delimiter: bytes) -> Iterator[bytes]:
    """The parts of a file, in random order, for ever. Raises OSError, ValueError for a file without any."""
    parts = [part for part in Path(path).read_bytes().split(delimiter) if part]
    if not parts:
        raise ValueError(f"{path} is empty: there is nothing to send")
    random.shuffle(parts)
    return _cycle(parts)


def _cycle(parts: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from parts
