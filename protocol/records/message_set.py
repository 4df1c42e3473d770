"""Message sets of magic 0 and 1: what brokers stored before Kafka 0.11 and what Produce carried before version 3.

```
 0 offset        int64
 8 message size  int32    bytes after this field, so the message takes 12 more
12 crc           uint32   CRC-32 of everything from the magic to the end of the message
16 magic         int8     0, or 1 (KIP-32); at the same place in all formats
17 attributes    int8     bits 0-2 codec (not zstd), 3 timestamp type (magic 1; 1 = log append time), 4-7 unused
18 timestamp     int64    magic 1 only, ms; -1: none
18/26 key        int32 length (negative: no key), then the bytes
      value      int32 length (negative: no value), then the bytes
```
All integers big-endian. A set is a sequence of messages without a count. A message with a codec is a wrapper: it has no
key, and its value is a compressed set of messages of the same magic, none of them a wrapper.

| magic | offset of the wrapper | offsets inside | timestamps inside |
|---|---|---|---|
| 0 | of the last message inside | absolute | none |
| 1 | the same; 0 from producers that do not count | from the first message inside (KIP-31) | their own |

In a wrapper of log append time, its timestamp is that of every message inside. Source: Kafka `LegacyRecord`,
`AbstractLegacyRecordBatch`. These formats are only read; `convert_to_v2` converts a message set of an old producer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from odradek.protocol.buffer import Buffer
from odradek.protocol.checksum import crc32
from odradek.protocol.compression.codecs import Codec, decompress
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import (
    CODEC_BITS,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MIN_BATCH_LENGTH,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TimestampType,
)
from odradek.protocol.records.record_iterator import Record
from odradek.protocol.varint import INT64_MAX, INT64_MIN

_HEADER: Final = struct.Struct(">qiIbb")
_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
TIMESTAMP_POSITION: Final = _HEADER.size
MIN_LENGTHS: Final = (14, 22, MIN_BATCH_LENGTH)
"""By magic, the least size of a message and the least length of a batch: the fields after it, without any content."""
MESSAGE_ATTRIBUTES: Final = CODEC_BITS | TIMESTAMP_TYPE_BIT
"""The attributes that these formats have; in magic 2 the other bits have a meaning."""
_CODECS: Final = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)


class MessageHeader(NamedTuple):
    """The fields before a message's key; `timestamp` is -1 in magic 0."""

    offset: int
    message_size: int
    crc: int
    magic: int
    attributes: int
    timestamp: int

    @property
    def size(self) -> int:
        """Bytes of the whole message, with offset and size."""
        return self.message_size + LOG_OVERHEAD

    @property
    def codec(self) -> Codec:
        """The codec; of a wrapper not NONE. Raises RemoteProtocolError for a codec that these formats do not have."""
        try:
            return _CODECS[self.attributes & CODEC_BITS]
        except IndexError:
            raise RemoteProtocolError(
                f"compression codec {self.attributes & CODEC_BITS} in magic {self.magic}"
            ) from None

    @property
    def timestamp_type(self) -> TimestampType:
        is_append_time = self.magic > 0 and self.attributes & TIMESTAMP_TYPE_BIT
        return TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME


def magic_of(buffer: Buffer, position: int = 0) -> int:
    """Return the magic of the batch or message at `position`, of any format.

    Raises RemoteProtocolError if the buffer ends before it.
    """
    if position + MAGIC_POSITION >= len(buffer):
        raise RemoteProtocolError(f"a batch of records has more than {pluralize(len(buffer) - position, 'byte')}")
    magic = buffer[position + MAGIC_POSITION]
    return magic - 256 if magic > 127 else magic


def read_message_header(buffer: Buffer, position: int = 0) -> MessageHeader:
    """Decode the fields before the key of the message at `position`.

    Raises RemoteProtocolError if the buffer ends before them, or magic or size cannot be those of a message.
    """
    try:
        offset, size, crc, magic, attributes = _HEADER.unpack_from(buffer, position)
        if magic not in (0, 1):
            raise RemoteProtocolError(f"a message of magic {magic}, where 0 or 1 is expected")
        if size < MIN_LENGTHS[magic]:
            raise RemoteProtocolError(f"a message of size {size}, less than its fields take")
        timestamp = _TIMESTAMP.unpack_from(buffer, position + TIMESTAMP_POSITION)[0] if magic else NO_TIMESTAMP
    except struct.error:
        raise RemoteProtocolError("the buffer ends inside the header of a message") from None
    return MessageHeader(offset, size, crc, magic, attributes, timestamp)


def message_crc_is_valid(buffer: memoryview, position: int, header: MessageHeader) -> bool:
    """Whether the message at `position`, all of which is in the buffer, has the checksum that its header claims."""
    return crc32(buffer[position + MAGIC_POSITION : position + header.size]) == header.crc


def message_headers(buffer: Buffer) -> Iterator[tuple[int, MessageHeader]]:
    """Yield position and header of every complete message, in order; wrappers are not opened.

    An incomplete message at the end ends the iteration: responses to Fetch may end with one. Raises as
    `read_message_header`.
    """
    position = 0
    end = len(buffer)
    while end - position >= LOG_OVERHEAD:
        # Only the size determines whether the message is complete; its other fields are read afterwards.
        next_position = position + LOG_OVERHEAD + _LENGTH.unpack_from(buffer, position + LENGTH_POSITION)[0]
        if next_position > end:
            return
        yield position, read_message_header(buffer, position)
        position = next_position


def iter_messages(buffer: Buffer, max_decompressed: int | None = None) -> Iterator[Record]:
    """Yield the records of a message set and of its wrappers, with absolute offsets; none has headers.

    An incomplete message at the end ends the iteration. Raises RemoteProtocolError at the first message that is
    malformed, has a wrong checksum, or is a wrapper of more than `max_decompressed` bytes.
    """
    view = memoryview(buffer)
    for position, header in message_headers(view):
        key, value = _read_content(view, position, header)
        if header.codec:
            yield from _unwrap(header, value, max_decompressed)
        else:
            yield Record(header.offset, header.timestamp, key, value, [])


def convert_to_v2(
    buffer: Buffer,
    codec: Codec | None = None,
    level: int | None = None,
    max_decompressed: int | None = None,
) -> bytearray:
    """Return one batch of magic 2 with the records of a producer's message set, at offsets from 0.

    Timestamps do not change (-1 from magic 0). `codec` None keeps the codec of the last wrapper, as Kafka's
    `LogValidator` does. Raises RemoteProtocolError as `iter_messages`, and for a set that is empty or ends inside a
    message.
    """
    end = 0
    for position, header in message_headers(buffer):
        end = position + header.size
    if end != len(buffer) or end == 0:
        raise RemoteProtocolError(
            f"a message set of {pluralize(len(buffer), 'byte')} of which {end} are complete messages"
        )
    if codec is None:
        codec = Codec.NONE
        for _, header in message_headers(buffer):
            codec = header.codec or codec
    builder = BatchBuilder(codec, level)
    try:
        for record in iter_messages(buffer, max_decompressed):
            builder.append(record.timestamp, record.key, record.value)
        return builder.build()
    except LocalProtocolError as error:
        raise RemoteProtocolError(f"a message set that does not fit into a batch: {error}") from None


def _unwrap(wrapper: MessageHeader, value: bytes | None, max_decompressed: int | None) -> Iterator[Record]:
    if value is None:
        raise RemoteProtocolError("a compressed message without a value")
    view = memoryview(decompress(wrapper.codec, value, max_decompressed, wrapper.magic))
    inner = list(message_headers(view))
    if not inner:
        raise RemoteProtocolError("a compressed message with no message inside")
    last_position, last = inner[-1]
    if last_position + last.size != len(view):
        raise RemoteProtocolError("a compressed message set ends inside a message")
    base_offset = 0
    if wrapper.magic == 1 and wrapper.offset != 0:
        base_offset = wrapper.offset - last.offset
        if base_offset < 0:
            raise RemoteProtocolError(f"a wrapper at offset {wrapper.offset}, with offset {last.offset} inside")
    is_append_time = wrapper.timestamp_type == TimestampType.LOG_APPEND_TIME
    for position, header in inner:
        if header.magic != wrapper.magic:
            raise RemoteProtocolError(f"a message of magic {header.magic} in a wrapper of magic {wrapper.magic}")
        if header.codec:
            raise RemoteProtocolError("a compressed message inside a compressed message")
        offset = base_offset + header.offset
        if not INT64_MIN <= offset <= INT64_MAX:
            raise RemoteProtocolError(f"offset {offset} is wider than 64 bits")
        key, value = _read_content(view, position, header)
        yield Record(offset, wrapper.timestamp if is_append_time else header.timestamp, key, value, [])


def _read_content(view: memoryview, position: int, header: MessageHeader) -> tuple[bytes | None, bytes | None]:
    """Return the key and the value of the message. Raises RemoteProtocolError if its checksum is wrong."""
    end = position + header.size
    if not message_crc_is_valid(view, position, header):
        raise RemoteProtocolError(f"the message at offset {header.offset} has a wrong checksum")
    key, at = _read_bytes(view, position + _HEADER.size + (_TIMESTAMP.size if header.magic else 0), end)
    value, at = _read_bytes(view, at, end)
    if at != end:  # Differs from Kafka, which ignores such bytes, because records could be lost unnoticed.
        raise RemoteProtocolError(f"{pluralize(end - at, 'byte follows', 'bytes follow')} the value of a message")
    return key, value


def _read_bytes(view: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    if end - at < _LENGTH.size:
        raise RemoteProtocolError("a message ends inside a length")
    length = _LENGTH.unpack_from(view, at)[0]
    at += _LENGTH.size
    if length < 0:
        return None, at
    if length > end - at:
        raise RemoteProtocolError(f"{pluralize(length, 'byte')} in a message where {end - at} remain")
    return bytes(view[at : at + length]), at + length
