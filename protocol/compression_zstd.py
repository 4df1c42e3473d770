"""Zstandard as Kafka's clients write it (KIP-110): one frame or more, with or without the content size.

```
frame       magic 28 B5 2F FD | descriptor | window, 1 byte, unless single segment | dictionary id, 0-4 bytes
            | content size, 0-8 bytes | blocks … | checksum, 4 bytes, if the descriptor says so
descriptor  content size field (2 bits) | single segment | unused | reserved | checksum | dictionary id field (2 bits)
block       3 bytes: size (21 bits) | raw 0, RLE 1, compressed 2 (2 bits) | last (1 bit); then `size` bytes, for RLE one
skippable   magic 50 … 5F 2A 4D 18 | size, 4 bytes | that many bytes, ignored
```
All integers little-endian. A compressed block stands for at most 128 KiB, so a walk over the block headers (a few per
batch) proves how much a frame can expand to before anything is allocated, and that it is complete. Source: RFC 8878.
"""

from __future__ import annotations

from typing import Final

from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from protocol.errors import RemoteProtocolError
from protocol.primitives import Buffer

_MAGIC: Final = 0xFD2FB528
_SKIPPABLE: Final = 0x184D2A50
_LARGEST_BLOCK: Final = 128 * 1024
_DICTIONARY_ID_SIZES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES: Final = (0, 2, 4, 8)
_DEFAULT_LEVEL: Final = 3

# Contexts are costly to make and must not be used by two threads at once: each use takes one out of these pools, which
# so never hold more than ran at the same time. list.pop and list.append are atomic.
_compressors: dict[int, list[ZstdCompressor]] = {}
_decompressors: list[ZstdDecompressor] = []


def compress(data: Buffer, level: int | None) -> bytes:
    """Compress into one frame that states the content size, as librdkafka does."""
    pool = _compressors.setdefault(_DEFAULT_LEVEL if level is None else level, [])
    try:
        compressor = pool.pop()
    except IndexError:
        compressor = ZstdCompressor(level=_DEFAULT_LEVEL if level is None else level)
    compressed = compressor.compress(data)
    pool.append(compressor)
    return compressed


def decompress(data: Buffer, max_size: int) -> bytes:
    """Decompress frames of at most `max_size` bytes together; RemoteProtocolError when they are more, or malformed."""
    view = memoryview(data)
    frames: list[bytes] = []
    position = 0
    try:
        while position < len(view) or not frames:
            end, largest = _walk_frame(view, position)
            frame = _decompress_frame(view[position:end], largest, max_size)
            max_size -= len(frame)
            frames.append(frame)
            position = end
    except IndexError:
        raise RemoteProtocolError("zstd data are truncated") from None
    return frames[0] if len(frames) == 1 else b"".join(frames)


def _decompress_frame(frame: memoryview, largest: int, max_size: int) -> bytes:
    if largest == 0:
        return b""
    try:
        decompressor = _decompressors.pop()
    except IndexError:
        decompressor = ZstdDecompressor()
    try:
        content = decompressor.decompress(frame, max_output_size=min(largest, max_size + 1))
    except ZstdError as error:
        raise RemoteProtocolError(f"zstd data are malformed or expand to more than {max_size} bytes: {error}") from None
    _decompressors.append(decompressor)
    if len(content) > max_size:
        raise RemoteProtocolError(f"zstd data expand to more than {max_size} bytes")
    return content


def _walk_frame(view: memoryview, position: int) -> tuple[int, int]:
    """Return the position after the frame at `position`, and the most bytes that it can stand for.

    Raises IndexError when it is truncated.
    """
    magic = _little_endian(view, position, 4)
    if magic & ~0xF == _SKIPPABLE:
        return _checked_end(view, position + 8 + _little_endian(view, position + 4, 4)), 0
    if magic != _MAGIC:
        raise RemoteProtocolError("zstd data do not begin with a frame")
    descriptor = view[position + 4]
    is_single_segment = descriptor >> 5 & 1
    content_size_size = _CONTENT_SIZE_SIZES[descriptor >> 6] or is_single_segment
    position += 5 + (not is_single_segment) + _DICTIONARY_ID_SIZES[descriptor & 3]
    content_size = _little_endian(view, position, content_size_size) + (256 if content_size_size == 2 else 0)
    position += content_size_size
    largest = 0
    is_last = 0
    while not is_last:
        block = _little_endian(view, position, 3)
        is_last, kind, size = block & 1, block >> 1 & 3, block >> 3
        largest += size if kind < 2 else _LARGEST_BLOCK
        position = position + 3 + (1 if kind == 1 else size)
    if content_size > largest:
        raise RemoteProtocolError(f"a zstd frame claims {content_size} bytes and cannot stand for more than {largest}")
    return _checked_end(view, position + (descriptor & 4)), content_size if content_size_size else largest


def _little_endian(view: memoryview, position: int, size: int) -> int:
    return int.from_bytes(view[position : _checked_end(view, position + size)], "little")


def _checked_end(view: memoryview, end: int) -> int:
    if end > len(view):
        raise IndexError(end)
    return end
