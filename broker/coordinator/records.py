"""The records of `__consumer_offsets`: typed in memory, bytes in the log.

`odradek.protocol.stored_records` draws the bytes.
They are written in the versions that Kafka 4.3.1 writes. What cannot be read is `MalformedRecordError`, what is of a
type that this version does not know is None: another version wrote it, and it is passed over.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from odradek.protocol.codec import decode, encode_into
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.schema import Message, spec
from odradek.protocol.stored_records.record_types import GROUP_RECORDS

_INT16 = struct.Struct(">h")
_KEY_VERSION = 0


class MalformedRecordError(Exception):
    """The bytes of a record are not what its type and version say."""


class CoordinatorRecord(NamedTuple):
    """One record. A `value` of None takes back what the key stands for."""

    record_type: int
    key: Message
    value: Message | None
    value_version: int = 0


def encode_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Key and value as they are stored. Raises LocalProtocolError."""
    key = bytearray(_INT16.pack(record.record_type))
    encode_into(record.key, _KEY_VERSION, key)
    if record.value is None:
        return bytes(key), None
    value = bytearray(_INT16.pack(record.value_version))
    encode_into(record.value, record.value_version, value)
    return bytes(key), bytes(value)


def decode_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord | None:
    """The record, or None if its type is unknown. Raises MalformedRecordError."""
    if key is None or len(key) < _INT16.size:
        raise MalformedRecordError("the key has no record type")
    record_type = _INT16.unpack_from(key)[0]
    known = GROUP_RECORDS.get(record_type)
    if known is None:
        return None
    try:
        key_message = decode(known.key, _KEY_VERSION, key, _INT16.size)
        if value is None:
            return CoordinatorRecord(record_type, key_message, None)
        version = _value_version(known.value, value)
        return CoordinatorRecord(record_type, key_message, decode(known.value, version, value, _INT16.size), version)
    except RemoteProtocolError as error:
        raise MalformedRecordError(str(error)) from error


def _value_version(cls: type[Message], value: bytes) -> int:
    if len(value) < _INT16.size:
        raise MalformedRecordError("the value has no version")
    version: int = _INT16.unpack_from(value)[0]
    declared = spec(cls)
    if not declared.first_version <= version <= declared.last_version:
        raise MalformedRecordError(f"version {version} of {cls.__name__} is not known")
    return version
