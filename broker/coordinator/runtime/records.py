"""The records of an internal topic: typed in memory, bytes in the log.

`odradek.protocol.stored_records` draws the bytes. Keys and values begin with a number of two bytes: in a key the record
type, in a value the version. Keys are written in version 0, values in the version that the record names.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from odradek.protocol.codec import decode, encode_into
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.schema import Message, spec
from odradek.protocol.stored_records.record_types import StoredRecord

_INT16 = struct.Struct(">h")
_KEY_VERSION = 0


class MalformedRecordError(Exception):
    """The bytes of a record are not what its type and version say."""


class CoordinatorRecord(NamedTuple):
    """One record. A `value` of None is a tombstone: it deletes what earlier records with this key said."""

    record_type: int
    key: Message
    value: Message | None
    value_version: int = 0


def encode_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Return key and value as they are stored. Raises LocalProtocolError."""
    key = bytearray(_INT16.pack(record.record_type))
    encode_into(record.key, _KEY_VERSION, key)
    if record.value is None:
        return bytes(key), None
    value = bytearray(_INT16.pack(record.value_version))
    encode_into(record.value, record.value_version, value)
    return bytes(key), bytes(value)


def decode_record(
    record_types: Mapping[int, StoredRecord], key: bytes | None, value: bytes | None
) -> CoordinatorRecord | None:
    """Return the record, or None if `record_types` does not have its type. Raises MalformedRecordError."""
    if key is None or len(key) < _INT16.size:
        raise MalformedRecordError("the key has no record type")
    record_type = _INT16.unpack_from(key)[0]
    known = record_types.get(record_type)
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
