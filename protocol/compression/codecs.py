"""The compression codecs of record batches, for whole buffers, with a limit on the decompressed size.

| id | codec  | bytes in a batch | module |
|---|---|---|---|
| 0 | none   | as they are | |
| 1 | gzip   | one or more gzip members (RFC 1952) | here |
| 2 | snappy | raw snappy, or xerial framing around it | `snappy` |
| 3 | lz4    | one LZ4 frame of independent blocks | `lz4` |
| 4 | zstd   | one or more Zstandard frames (RFC 8878; KIP-110) | `zstd` |

A few kilobytes can expand to a gigabyte of zeros, and lengths in a header can be wrong. So decompression goes piece by
piece, or after a check that a length is possible. It raises DecompressionLimitError as soon as the output is known to
exceed `max_size`; if the data state their size, before anything is allocated. It never holds more than `max_size`, one
piece and, at the end, the joined result. Malformed input raises RemoteProtocolError. All functions are thread-safe.

Every reader of records (the broker, compaction, the client, the pipeline) has the limit `max_decompressed_size` of the
compressed size. Kafka has no limit, because its readers decompress records one by one.

The libraries of lz4, snappy and zstd take 1, 2 and 1 MB of memory; each is imported for the first batch with it.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import Final

from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import DecompressionLimitError, RemoteProtocolError

_MAX_DECOMPRESSED: Final = 128 << 20  # 128 times the default largest batch; JSON shrinks 5 to 20 times
_ALLOWED_RATIO: Final = 10  # for batches over 13 MB, which need a large max.message.bytes
_PIECE: Final = 1 << 20  # of gzip output; one holds a typical batch
_MOST_MEMBERS: Final = 1000  # Kafka's clients write one
_GZIP_WINDOW: Final = 31  # in zlib: a window of 32 KiB and a gzip header
# The most bytes that one byte can expand to: of gzip four copies of 258 bytes, each of two bits; of lz4 a byte of
# 255 in the length of a copy; of snappy a third of a copy of 64 bytes.
_LARGEST_RATIOS: Final = {1: 4 * 258, 2: 22, 3: 255}


class Codec(IntEnum):
    """Compression of a batch: the three lowest bits of its attributes (Kafka `CompressionType`)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data` in a form that Kafka's readers decompress.

    `level` is that of Kafka's `compression.gzip.level`, `compression.lz4.level`, `compression.zstd.level`; None is the
    default. For `Codec.NONE` this is a copy; snappy has no levels and ignores the argument.
    """
    if codec == Codec.GZIP:
        return zlib.compress(data, -1 if level is None else level, _GZIP_WINDOW)
    if codec == Codec.SNAPPY:
        from odradek.protocol.compression import snappy

        return snappy.compress(data)
    if codec == Codec.LZ4:
        from odradek.protocol.compression import lz4

        return lz4.compress(data, level)
    if codec == Codec.ZSTD:
        from odradek.protocol.compression import zstd

        return zstd.compress(data, level)
    return bytes(data)


def max_decompressed_size(compressed_size: int) -> int:
    """Return the limit for data of this compressed size: 128 MiB, or ten times the size if that is more."""
    return max(_MAX_DECOMPRESSED, _ALLOWED_RATIO * compressed_size)


def largest_decompressed_size(codec: Codec, data: Buffer) -> int:
    """Return an upper bound of the size that `data` expands to, without decompressing it.

    Raises RemoteProtocolError if they are found to be malformed.
    """
    if codec == Codec.ZSTD:
        from odradek.protocol.compression import zstd

        return zstd.largest_size(data)
    return len(data) * _LARGEST_RATIOS.get(codec, 1)


def decompress(codec: Codec, data: Buffer, max_size: int | None = None, magic: int = 2) -> bytes:
    """Decompress the whole of `data`; `magic` is that of the records around it (LZ4 was framed wrongly in magic 0).

    `max_size` None means `max_decompressed_size`. Raises DecompressionLimitError if `data` expands to more than
    `max_size` bytes, and other RemoteProtocolErrors if it is malformed or truncated.
    """
    if max_size is None:
        max_size = max_decompressed_size(len(data))
    if codec == Codec.GZIP:
        return _gunzip(data, max_size)
    if codec == Codec.SNAPPY:
        from odradek.protocol.compression import snappy

        return snappy.decompress(data, max_size)
    if codec == Codec.LZ4:
        from odradek.protocol.compression import lz4

        return lz4.decompress(data, max_size, checked_header=magic > 0)
    if codec == Codec.ZSTD:
        from odradek.protocol.compression import zstd

        return zstd.decompress(data, max_size)
    if len(data) > max_size:
        raise DecompressionLimitError("uncompressed", max_size)
    return bytes(data)


def _gunzip(data: Buffer, max_size: int) -> bytes:
    """Decompress gzip. Like Java's reader, read all members, and ignore the bytes after the last one.

    Differs from Kafka: the number of members is limited, because zlib copies the rest of the data for each, and a batch
    can have 50,000.
    """
    pieces: list[bytes] = []
    size = 0
    members_left = _MOST_MEMBERS
    rest: Buffer = data
    member = zlib.decompressobj(_GZIP_WINDOW)
    try:
        while True:
            room = min(_PIECE, max_size - size + 1)
            piece = member.decompress(rest, room)
            size += len(piece)
            if size > max_size:
                raise DecompressionLimitError("gzip", max_size)
            pieces.append(piece)
            if not member.eof:
                if not member.unconsumed_tail and len(piece) < room:
                    raise RemoteProtocolError("gzip data are truncated")
                rest = member.unconsumed_tail
            elif member.unused_data[:2] == b"\x1f\x8b":
                members_left -= 1
                if not members_left:
                    raise RemoteProtocolError(f"gzip data of more than {_MOST_MEMBERS} members")
                rest = member.unused_data
                member = zlib.decompressobj(_GZIP_WINDOW)
            else:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    except zlib.error as error:
        raise RemoteProtocolError(f"malformed gzip data: {error}") from None
