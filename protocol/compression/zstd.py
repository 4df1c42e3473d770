"""Zstandard as Kafka's clients write it (KIP-110): one frame or more, with or without the content size.

```
frame       magic 28 B5 2F FD | descriptor | window, 1 byte, unless single segment | dictionary id, 0-4 bytes
            | content size, 0-8 bytes | blocks … | checksum, 4 bytes, if the descriptor says so
descriptor  content size field (2 bits) | single segment | unused | reserved | checksum | dictionary id field (2 bits)
block       3 bytes: size (21 bits) | raw 0, RLE 1, compressed 2 (2 bits) | last (1 bit); then `size` bytes, for RLE one
skippable   magic 50 … 5F 2A 4D 18 | size, 4 bytes | that many bytes, ignored
```
All integers little-endian. A compressed block expands to at most 128 KiB, so a walk over the block headers (a few per
batch) gives an upper bound for the size of a frame before anything is allocated, and shows that it is complete. The
library allocates the content size that a frame states, regardless of the limit that it is given, or otherwise the
window. So both are checked first. Source: RFC 8878.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import DecompressionLimitError, RemoteProtocolError

_MAGIC: Final = 0xFD2FB528
_SKIPPABLE: Final = 0x184D2A50
_LARGEST_BLOCK: Final = 128 * 1024
_DICTIONARY_ID_SIZES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES: Final = (0, 2, 4, 8)
_WINDOW_POSITION: Final = 5
_SMALLEST_WINDOW_LOG: Final = 10
_USUAL_WINDOW: Final = 8 << 20  # up to level 19, and what RFC 8878 requires of every decoder
_LARGEST_WINDOW: Final = 128 << 20  # the default limit of the library, also in Kafka
_DEFAULT_LEVEL: Final = 3

# Contexts are expensive to create, and two threads must not share one: each use removes one from these pools, which
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
    """Decompress frames of at most `max_size` bytes together.

    Raises DecompressionLimitError if they expand to more, RemoteProtocolError if they are malformed.
    """
    view = memoryview(data)
    contents: list[bytes] = []
    position = 0
    left = max_size
    try:
        while position < len(view) or not contents:
            frame = _walk_frame(view, position)
            if frame.states_size and frame.largest > left:
                raise DecompressionLimitError("zstd", max_size)
            content = _decompress_frame(view[position : frame.end], frame, left) if frame.largest else b""
            left -= len(content)
            if left < 0:
                raise DecompressionLimitError("zstd", max_size)
            contents.append(content)
            position = frame.end
    except IndexError:
        raise RemoteProtocolError("zstd data are truncated") from None
    return contents[0] if len(contents) == 1 else b"".join(contents)


def largest_size(data: Buffer) -> int:
    """Return an upper bound of the size that the frames expand to. Raises RemoteProtocolError if they are malformed."""
    view = memoryview(data)
    size = position = 0
    try:
        while position < len(view):
            frame = _walk_frame(view, position)
            size += frame.largest
            position = frame.end
    except IndexError:
        raise RemoteProtocolError("zstd data are truncated") from None
    return size


class _Frame(NamedTuple):
    """A complete frame: its end, and the most bytes that it expands to; the exact number if it states its size."""

    end: int
    largest: int
    states_size: bool
    window: int  # bytes that a decoder must keep of its output; 0: all of it


def _decompress_frame(data: Buffer, frame: _Frame, left: int) -> bytes:
    """Decompress `data`, one frame; of more than `left` bytes at least `left` + 1 are returned."""
    needed = min(frame.largest, left + _LARGEST_BLOCK)  # no copy reaches further back
    window = frame.window
    if window > _USUAL_WINDOW:
        data, window = _with_smaller_window(data, window, needed)
    try:
        decompressor = _decompressors.pop()
    except IndexError:
        decompressor = ZstdDecompressor()
    try:
        if frame.largest <= max(left, _LARGEST_BLOCK):
            content = decompressor.decompress(data, max_output_size=frame.largest)
        else:
            content = decompressor.stream_reader(data).read(left + 1)
    except ZstdError as error:
        if "not enough memory" in str(error):
            raise MemoryError(str(error)) from None
        raise RemoteProtocolError(f"malformed zstd data: {error}") from None
    if window <= _USUAL_WINDOW:  # otherwise it keeps the memory of the window
        _decompressors.append(decompressor)
    return content


def _with_smaller_window(data: Buffer, window: int, needed: int) -> tuple[Buffer, int]:
    """Return the frame with a window of little more than the `needed` bytes, and the size of that window.

    The library allocates the window that a frame states. Compressors at levels 20 to 22 state up to 128 MiB for any
    input.
    """
    if window > _LARGEST_WINDOW:
        raise RemoteProtocolError(f"a zstd window of {window} bytes, where {_LARGEST_WINDOW} are the most")
    exponent = (max(needed, _LARGEST_BLOCK) - 1).bit_length()
    if 1 << exponent >= window:
        return data, window
    changed = bytearray(data)
    changed[_WINDOW_POSITION] = exponent - _SMALLEST_WINDOW_LOG << 3
    return changed, 1 << exponent


def _walk_frame(view: memoryview, position: int) -> _Frame:
    """Read the headers of the blocks of the frame at `position`. Raises IndexError if it is truncated."""
    magic = _little_endian(view, position, 4)
    if magic & ~0xF == _SKIPPABLE:
        return _Frame(_checked_end(view, position + 8 + _little_endian(view, position + 4, 4)), 0, True, 0)
    if magic != _MAGIC:
        raise RemoteProtocolError("zstd data do not begin with a frame")
    descriptor = view[position + 4]
    is_single_segment = descriptor >> 5 & 1
    window = 0 if is_single_segment else _window(view[position + _WINDOW_POSITION])
    content_size_size = _CONTENT_SIZE_SIZES[descriptor >> 6] or is_single_segment
    position += 5 + (not is_single_segment) + _DICTIONARY_ID_SIZES[descriptor & 3]
    content_size = _little_endian(view, position, content_size_size) + (256 if content_size_size == 2 else 0)
    position += content_size_size
    largest = 0
    is_last = 0
    while not is_last:
        block = _little_endian(view, position, 3)
        is_last, kind, size = block & 1, block >> 1 & 3, block >> 3
        largest += min(size, _LARGEST_BLOCK) if kind < 2 else _LARGEST_BLOCK
        position = position + 3 + (1 if kind == 1 else size)
    if content_size > largest:
        raise RemoteProtocolError(f"a zstd frame claims {content_size} bytes and cannot expand to more than {largest}")
    end = _checked_end(view, position + (descriptor & 4))
    return _Frame(end, content_size if content_size_size else largest, bool(content_size_size), window)


def _window(stated: int) -> int:
    base = 1 << _SMALLEST_WINDOW_LOG + (stated >> 3)
    return base + (base >> 3) * (stated & 7)


def _little_endian(view: memoryview, position: int, size: int) -> int:
    return int.from_bytes(view[position : _checked_end(view, position + size)], "little")


def _checked_end(view: memoryview, end: int) -> int:
    if end > len(view):
        raise IndexError(end)
    return end
