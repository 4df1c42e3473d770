"""Values as short texts: strings and bytes, cut at 64 bytes."""

from __future__ import annotations

import json

from odradek.protocol.buffer import Buffer
from odradek.protocol.plural import pluralize

MOST_BYTES = 64
_SURELY_SHORT = MOST_BYTES // 4  # characters: each takes at most four bytes


class Shown(str):
    """A text that is printed as it is, without quotes."""

    __slots__ = ()


def cut_text(text: str) -> str:
    """Return the text, or its first 64 bytes and the number of its bytes."""
    if len(text) <= _SURELY_SHORT:
        return text
    data = text.encode(errors="replace")
    if len(data) <= MOST_BYTES:
        return text
    return f"{data[:MOST_BYTES].decode(errors='ignore')}… ({pluralize(len(data), 'byte')})"


def bytes_text(data: Buffer) -> Shown:
    """Return the first 64 bytes, in quotes if they are text, else in hex; and the number of bytes if there are more."""
    size = len(data)
    start = bytes(data[:MOST_BYTES])
    rest = f"… ({pluralize(size, 'byte')})" if size > MOST_BYTES else ""
    text = _as_text(start, is_cut=bool(rest))
    return Shown((f"0x{start.hex()}" if text is None else json.dumps(text, ensure_ascii=False)) + rest)


def _as_text(data: bytes, *, is_cut: bool) -> str | None:
    """Return printable UTF-8, without a last character that is cut; None if it is something else."""
    for missing in range(4 if is_cut else 1):
        try:
            text = data[: len(data) - missing].decode()
        except UnicodeDecodeError:
            continue
        return text if all(each.isprintable() or each in "\t\r\n" for each in text) else None
    return None
