"""Recompression of a batch with another codec, without decoding its records (`compression.type` of a topic)."""

from __future__ import annotations

import struct

from odradek.protocol.buffer import Buffer
from odradek.protocol.compression.codecs import Codec, compress
from odradek.protocol.records.batch_header import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    CODEC_BITS,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    BatchHeader,
    write_crc,
)
from odradek.protocol.records.record_iterator import records_section


def recompress(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    codec: Codec,
    level: int | None = None,
    max_decompressed: int | None = None,
) -> bytearray:
    """Return a copy of the batch at `position` with its records compressed by `codec`, and with the new length and CRC.

    The encoded records are not decoded. Raises as `records_section`.
    """
    records = records_section(buffer, position, header, max_decompressed)
    out = bytearray(memoryview(buffer)[position : position + BATCH_HEADER_SIZE])
    out += compress(codec, records, level) if codec else records
    struct.pack_into(">i", out, LENGTH_POSITION, len(out) - LOG_OVERHEAD)
    struct.pack_into(">h", out, ATTRIBUTES_POSITION, header.attributes & ~CODEC_BITS | codec)
    write_crc(out, 0, len(out))
    return out
