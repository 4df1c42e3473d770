"""The lines of a message of magic 0 or 1, and of the messages in it if it is a wrapper.

```
offset: 2 position: 0 CreateTime: 1700000000000 size: 82 magic: 1 compresscodec: gzip crc: 3077404021 isvalid: true
| offset: 0 CreateTime: 1700000000000 keySize: 1 valueSize: 1 isValid: true crc: 1041228170 key: a payload: b
```
`odradek.protocol.records.message_set` describes the bytes and rejects faults. Here they are printed as they are: a
wrong checksum is no error, an inner set that is cut off ends before the incomplete message, an inner message may have
another magic. A message whose lengths exceed it ends the dump. Source: Kafka `AbstractLegacyRecordBatch`,
`LegacyRecord`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from odradek.broker.inspection.dump.complaints import DumpError, OffsetWatch
from odradek.broker.inspection.dump.java import boolean, int64
from odradek.broker.inspection.dump.log_file import Batch, LogFile
from odradek.broker.inspection.dump.options import DumpOptions
from odradek.broker.inspection.dump.record_text import RecordText, contents, string_text
from odradek.protocol.checksum import crc32
from odradek.protocol.compression.codecs import Codec, decompress
from odradek.protocol.records.batch_header import (
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    OFFSET_AND_LENGTH,
    TIMESTAMP_TYPE_BIT,
    codec_of,
)
from odradek.protocol.records.message_set import MIN_LENGTHS

_MAX_DECOMPRESSED: Final = 1 << 30
_HEADER: Final = struct.Struct(">Ibb")  # crc, magic, attributes
_CRC_START: Final = 4
_TIMESTAMP: Final = struct.Struct(">q")
_SIZE: Final = struct.Struct(">i")
_SMALLEST_SIZE: Final = MIN_LENGTHS[0]


class _CutOffError(DumpError):
    """A key or value of `length` bytes where `remaining` are left; `reason` is the message of Java's exception."""

    def __init__(self, offset: int, length: int, remaining: int) -> None:
        super().__init__(f"the message at offset {offset} has {remaining} bytes of a key or value of {length}")
        self.reason = f"newLimit > capacity: ({length} > {remaining})"


class _Message(NamedTuple):
    """A message with its absolute offset; `data` begins with the checksum. `append_time` is that of the wrapper."""

    offset: int
    data: memoryview
    crc: int
    magic: int
    attributes: int
    append_time: int | None = None

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp(self) -> int:
        if self.magic == 0:
            return NO_TIMESTAMP
        if self.append_time is not None:
            return self.append_time
        timestamp: int = _TIMESTAMP.unpack_from(self.data, _HEADER.size)[0]
        return timestamp

    @property
    def timestamp_type(self) -> str:
        if self.magic == 0:
            return "NoTimestampType"
        return "LogAppendTime" if self.attributes & TIMESTAMP_TYPE_BIT else "CreateTime"

    @property
    def is_valid(self) -> bool:
        return crc32(self.data[_CRC_START:]) == self.crc

    @property
    def key_position(self) -> int:
        """The position of the key's length."""
        return _HEADER.size if self.magic == 0 else _HEADER.size + _TIMESTAMP.size

    @property
    def value_position(self) -> int:
        return self.key_position + _SIZE.size + max(0, self.length_at(self.key_position))

    def length_at(self, position: int) -> int:
        length: int = _SIZE.unpack_from(self.data, position)[0]
        return length

    def bytes_at(self, position: int) -> bytes | None:
        """The bytes behind the length at `position`, None for a negative length."""
        length = self.length_at(position)
        if length < 0:
            return None
        start = position + _SIZE.size
        if length > len(self.data) - start:
            raise _CutOffError(self.offset, length, len(self.data) - start)
        return bytes(self.data[start : start + length])


def max_record_timestamp(log: LogFile, batch: Batch) -> int:
    """The largest timestamp of the messages, at least -1."""
    try:
        return max((message.timestamp for message in _messages(_outer(log, batch))), default=NO_TIMESTAMP)
    except struct.error:
        raise _cut_off(log, batch) from None


def batch_line(log: LogFile, batch: Batch) -> Iterator[str]:
    yield f"offset: {batch.offset}"
    if batch.magic not in (0, 1):
        raise DumpError(f"{log.path} at {batch.position}: magic {batch.magic} is unknown")
    outer = _outer(log, batch)
    yield (
        f" position: {batch.position}"
        f" {outer.timestamp_type}: {outer.timestamp}"
        f" size: {batch.size}"
        f" magic: {batch.magic}"
        f" compresscodec: {outer.codec.name.lower()}"
        f" crc: {outer.crc}"
        f" isvalid: {boolean(outer.is_valid)}\n"
    )


def record_lines(log: LogFile, batch: Batch, options: DumpOptions, watch: OffsetWatch) -> Iterator[str]:
    outer = _outer(log, batch)
    prefix = "| " if options.skips_record_metadata else " "
    try:
        for message in _messages(outer):
            watch.see(message.offset)
            if not options.skips_record_metadata:
                yield (
                    f"| offset: {message.offset} {outer.timestamp_type}: {message.timestamp}"
                    f" keySize: {message.length_at(message.key_position)}"
                    f" valueSize: {message.length_at(message.value_position)}"
                    f" isValid: {boolean(message.is_valid)} crc: {message.crc}"
                )
            if options.prints_contents:
                yield _contents(message, options.record_text, prefix)
            yield "\n"
    except struct.error:
        raise _cut_off(log, batch) from None


def _contents(message: _Message, record_text: RecordText, prefix: str) -> str:
    try:
        key = message.bytes_at(message.key_position)
        value = message.bytes_at(message.value_position)
    except _CutOffError as error:
        if record_text is string_text or message.length_at(message.key_position) < 0:
            raise
        return f"{prefix}key: Error at offset {message.offset}, skipping. {error.reason}"
    return contents(record_text, prefix, message.offset, key, value)


def _cut_off(log: LogFile, batch: Batch) -> DumpError:
    return DumpError(f"{log.path} at {batch.position}: a message ends inside its fields")


def _outer(log: LogFile, batch: Batch) -> _Message:
    return _message(batch.offset, log.read(batch.position, batch.size)[LOG_OVERHEAD:])


def _message(offset: int, data: memoryview, append_time: int | None = None) -> _Message:
    crc, magic, attributes = _HEADER.unpack_from(data)
    return _Message(offset, data, crc, magic, attributes, append_time)


def _messages(outer: _Message) -> Iterator[_Message]:
    if not outer.codec:
        yield outer
        return
    inner = list(_inner_messages(outer))
    if not inner:
        raise DumpError(f"the wrapper at offset {outer.offset} has no message in it")
    base_offset = 0
    if outer.magic == 1 and outer.offset != 0:
        base_offset = outer.offset - inner[-1].offset
        if base_offset < 0:
            raise DumpError(f"a wrapper at offset {outer.offset} ends with a message at {inner[-1].offset}")
    for message in inner:
        if message.codec:
            raise DumpError(f"a wrapper at offset {outer.offset} has another one in it")
        yield message._replace(offset=int64(base_offset + message.offset))


def _inner_messages(outer: _Message) -> Iterator[_Message]:
    value = outer.bytes_at(outer.value_position)
    if value is None or outer.codec == Codec.ZSTD or outer.magic not in (0, 1):
        raise DumpError(f"the message at offset {outer.offset} is marked as a wrapper, and cannot be one")
    view = memoryview(decompress(outer.codec, value, _MAX_DECOMPRESSED, outer.magic))
    is_append_time = outer.magic == 1 and outer.attributes & TIMESTAMP_TYPE_BIT
    append_time = outer.timestamp if is_append_time else None
    position = 0
    while len(view) - position >= OFFSET_AND_LENGTH.size:
        offset, size = OFFSET_AND_LENGTH.unpack_from(view, position)
        if size < _SMALLEST_SIZE:
            raise DumpError(f"a message of size {size} in the wrapper at offset {outer.offset}")
        position += OFFSET_AND_LENGTH.size
        if size > len(view) - position:
            return
        message = _message(offset, view[position : position + size])
        yield message._replace(append_time=append_time) if message.magic == 1 else message
        position += size
