"""LZ4 as Kafka's clients write it: one LZ4 frame that Kafka's decoder can read.

```
frame  magic 04 22 4D 18 | FLG | BD | content size, 8 bytes, if FLG says so | HC | blocks …
       | end mark 00 00 00 00 | content checksum, 4 bytes, if FLG says so
FLG    version (2 bits, 01) | independent blocks | block checksums | content size | content checksum | 2 reserved (0)
BD     reserved (0) | largest block (3 bits: 4 = 64 KiB … 7 = 4 MiB) | 4 reserved (0)
HC     second byte of the xxHash32 of FLG, BD and content size
```
Kafka's decoder requires independent blocks and reserved bits of 0 (so no dictionary); the checksums and the content
size are optional. Bytes after the frame are ignored. In messages of magic 0 the HC was computed over the wrong bytes,
so readers ignore it there. Source: Kafka `Lz4BlockInputStream`, KIP-57; the LZ4 frame format 1.6.
"""

from __future__ import annotations

from typing import Final

from lz4 import frame

from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import DecompressionLimitError, RemoteProtocolError

_MAGIC: Final = b"\x04\x22\x4d\x18"
_SMALLEST_DESCRIPTOR: Final = 7
_VERSION_AND_RESERVED: Final = 0b1100_0011
_VERSION: Final = 0b0100_0000
_INDEPENDENT: Final = 0b0010_0000
_BLOCK_CHECKSUMS: Final = 0b0001_0000
_CONTENT_SIZE: Final = 0b0000_1000
_CONTENT_CHECKSUM: Final = 0b0000_0100
_CONTENT_SIZE_POSITION: Final = 6
_CONTENT_SIZE_END: Final = 14
_RESERVED_IN_BD: Final = 0b1000_1111
_SMALLEST_PIECE: Final = 64 * 1024
_LARGEST_PIECE: Final = 1 << 20
_DEFAULT_LEVEL: Final = 9


def compress(data: Buffer, level: int | None) -> bytes:
    """Compress into a frame like that of Kafka's writer: independent blocks of 64 KiB, no checksums, no content size.

    `level` is Kafka's (KIP-390): 9, the default, is the fast compressor, not level 9 of the slow one. Other levels are
    those of the slow one, from 3 (also for 1 and 2) to 12 (also for higher ones).
    """
    native = 0 if level is None or level == _DEFAULT_LEVEL else min(max(level, 3), 12)
    compressed: bytes = frame.compress(
        data,
        compression_level=native,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def decompress(data: Buffer, max_size: int, *, checked_header: bool = True) -> bytes:
    """Decompress a frame of at most `max_size` bytes.

    Without `checked_header` the checksum of the header is ignored. Raises DecompressionLimitError if the frame expands
    to more than `max_size`, RemoteProtocolError if it is malformed.
    """
    _check_descriptor(data)
    if data[4] & _CONTENT_SIZE and int.from_bytes(data[_CONTENT_SIZE_POSITION:_CONTENT_SIZE_END], "little") > max_size:
        raise DecompressionLimitError("lz4", max_size)
    rest = memoryview(data if checked_header else _rewrite_descriptor(data))
    pieces: list[bytes] = []
    size = 0
    # The library allocates the whole `max_length`, so request little for small data.
    piece_size = min(max(4 * len(rest), _SMALLEST_PIECE), _LARGEST_PIECE, max_size + 1)
    context = frame.create_decompression_context()
    try:
        while True:
            piece, consumed, is_complete = frame.decompress_chunk(context, rest, max_length=piece_size)
            size += len(piece)
            if size > max_size:
                raise DecompressionLimitError("lz4", max_size)
            pieces.append(piece)
            if is_complete:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if not piece and not consumed:
                raise RemoteProtocolError("lz4 data are truncated")
            rest = rest[consumed:]
    except RuntimeError as error:
        raise RemoteProtocolError(f"malformed lz4 data: {error}") from None


def _check_descriptor(data: Buffer) -> None:
    """Raise RemoteProtocolError for frames that Kafka's decoder rejects and the library accepts."""
    if len(data) < _SMALLEST_DESCRIPTOR or bytes(data[:4]) != _MAGIC:
        raise RemoteProtocolError("lz4 data do not begin with a frame")
    flags = data[4]
    if flags & _VERSION_AND_RESERVED != _VERSION:
        raise RemoteProtocolError(f"lz4 frame of unknown version or with reserved bits set: {flags:#x}")
    if not flags & _INDEPENDENT:
        raise RemoteProtocolError("lz4 blocks that depend on each other are not supported")
    if data[5] & _RESERVED_IN_BD or data[5] >> 4 < frame.BLOCKSIZE_MAX64KB:
        raise RemoteProtocolError(f"lz4 frame of unknown block size or with reserved bits set: {data[5]:#x}")


def _rewrite_descriptor(data: Buffer) -> bytes:
    """Return the frame with a valid checksum of the descriptor, and without the content size, which is optional."""
    flags = data[4]
    descriptor: bytes = frame.compress_begin(
        frame.create_compression_context(),
        block_size=data[5] >> 4,
        block_linked=False,
        content_checksum=bool(flags & _CONTENT_CHECKSUM),
        block_checksum=bool(flags & _BLOCK_CHECKSUMS),
    )
    return descriptor + data[_SMALLEST_DESCRIPTOR + (8 if flags & _CONTENT_SIZE else 0) :]
