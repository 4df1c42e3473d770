"""What the writers of decoders and encoders share: growing source text, and the objects that the source refers to."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, ClassVar

from protocol.schema import Layout


@lru_cache(maxsize=1024)
def fixed(codes: str) -> struct.Struct:
    """Return the compiled `struct` format of big-endian fields in a row."""
    return struct.Struct(">" + codes)


class SourceWriter:
    """Writes the source of one function: lines at a depth, names for temporaries, objects the source refers to."""

    verb: ClassVar[str]

    def __init__(self, of: Layout) -> None:
        self.layout = of
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._count = 0

    def source(self) -> str:
        raise NotImplementedError

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def refer(self, name: str, value: Any) -> str:
        self.names[name] = value
        return name

    def unpacker(self, codes: str) -> str:
        return self.refer(f"unpack_{codes.replace('?', 'bool_')}", fixed(codes).unpack_from)

    def packer(self, codes: str) -> str:
        return self.refer(f"pack_{codes.replace('?', 'bool_')}", fixed(codes).pack)
