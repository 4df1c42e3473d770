r"""Snappy as Kafka's clients write it: raw (librdkafka), or in the framing of the Java library (xerial).

```
raw       uncompressed length (unsigned varint), then snappy's literals and copies
framed    header, then blocks until the data end
  header  82 53 4E 41 50 50 59 00 (\x82 "SNAPPY" \0) | version int32, 1 | oldest compatible version int32, 1
  block   length int32 | that many bytes of raw snappy (32 KiB of data in each but the last)
```
All integers big-endian. A header may recur between blocks, after a concatenation. Readers accept both forms; the first
eight bytes distinguish them. Like the Java library, this reader ignores the versions, and bytes at the end that are too
few for a length. The writer uses the framing, because readers of all versions support it. Source: snappy-java
`SnappyInputStream`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from snappy import UncompressError
from snappy import compress as compress_raw
from snappy import uncompress as decompress_raw

from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import DecompressionLimitError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.uvarint import uvarint_rest

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + Struct(">ii").pack(1, 1)
_BLOCK: Final = 32 * 1024
_LENGTH: Final = Struct(">i")
# The largest ratio is that of a copy of 64 bytes, which takes three bytes.
_LARGEST_RATIO: Final = 64 / 3


def compress(data: Buffer) -> bytes:
    """Compress in xerial framing."""
    view = memoryview(data)
    out = [_HEADER]
    for start in range(0, len(view), _BLOCK):
        block = compress_raw(view[start : start + _BLOCK])
        out += (_LENGTH.pack(len(block)), block)
    return b"".join(out)


def decompress(data: Buffer, max_size: int) -> bytes:
    """Decompress raw or framed snappy of at most `max_size` bytes.

    Raises DecompressionLimitError if it expands to more, RemoteProtocolError if it is malformed.
    """
    view = memoryview(data)
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        return _decompress_block(view, max_size, max_size)
    blocks = []
    position = 0
    left = max_size
    while len(view) - position >= _LENGTH.size:
        if bytes(view[position : position + len(_MAGIC)]) == _MAGIC:
            position += len(_HEADER)
            continue
        start = position + _LENGTH.size
        length = _LENGTH.unpack_from(view, position)[0]
        if not 0 <= length <= len(view) - start:
            raise RemoteProtocolError(f"a snappy block of {pluralize(length, 'byte')} where {len(view) - start} remain")
        position = start + length
        block = _decompress_block(view[start:position], left, max_size)
        left -= len(block)
        blocks.append(block)
    return b"".join(blocks)


def _decompress_block(block: memoryview, left: int, max_size: int) -> bytes:
    """Decompress raw snappy, after checking the length that it claims, which the library allocates.

    `left` is the rest of `max_size` after the previous blocks.
    """
    try:
        claimed, _ = uvarint_rest(block, 1, block[0]) if block[0] > 127 else (block[0], 1)
        if claimed > len(block) * _LARGEST_RATIO:
            raise RemoteProtocolError(f"{len(block)} bytes of snappy cannot expand to {claimed}")
        if claimed > left:
            raise DecompressionLimitError("snappy", max_size)
        return decompress_raw(block)  # type: ignore[no-any-return]
    except (UncompressError, IndexError):
        raise RemoteProtocolError("malformed snappy data") from None
