"""Keys and values of `__consumer_offsets` and `__transaction_state` as JSON.

```
key: {"type":"1","data":{"group":"g","topic":"t","partition":0}} payload: {"version":"3","data":{"offset":150,…}}
```
The type is that of the record, the version that of the value's message; a null value prints as `<DELETE>`. A malformed
record gets a sentence for its key and no payload, and the dump continues; only a record without a key ends it. In a
group of consumers the members' subscriptions and assignments, which are opaque to brokers, are JSON as well if they can
be decoded. Source: Kafka `CoordinatorRecordMessageParser`, `OffsetsMessageParser`, `CoordinatorRecordSerde`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from odradek.broker.inspection.dump.complaints import DumpError
from odradek.broker.inspection.dump.message_json import (
    MalformedMessageError,
    Values,
    json_text,
    json_values,
    read_message,
)
from odradek.protocol.schema import Message, spec
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from odradek.protocol.stored_records.group_metadata import GroupMetadataValue
from odradek.protocol.stored_records.record_types import GROUP_RECORDS, TRANSACTION_RECORDS, StoredRecord

_VERSION: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0
_MEMBER_FIELDS: Final = (
    ("subscription", ConsumerProtocolSubscription),
    ("assignment", ConsumerProtocolAssignment),
)
_MEMBER_PARTITIONS: Final = ("owned_partitions", "assigned_partitions")


def offsets_text(offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    return _record_text(GROUP_RECORDS, offset, key, value)


def transaction_log_text(offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    return _record_text(TRANSACTION_RECORDS, offset, key, value)


def _record_text(
    records: Mapping[int, StoredRecord], offset: int, key: bytes | None, value: bytes | None
) -> tuple[str | None, str | None]:
    if key is None:
        raise DumpError(f"the record at offset {offset} has no key, so it is none of those that the option is for")
    try:
        return _decode(records, offset, key, value)
    except MalformedMessageError as error:
        return f"Error at offset {offset}, skipping. {error}", None


def _decode(
    records: Mapping[int, StoredRecord], offset: int, key: bytes, value: bytes | None
) -> tuple[str, str | None]:
    record_type = _read_version(key, "key")
    record = records.get(record_type)
    if record is None:
        return f"Unknown record type {record_type} at offset {offset}, skipping.", None
    key_json = json_values(record.key, _KEY_VERSION, _read(record.key, record_type, key, "key"))
    key_text = json_text({"type": str(record_type), "data": key_json})
    if value is None:
        return key_text, "<DELETE>"
    version = _read_version(value, "value")
    if not _is_known(record.value, version):
        raise MalformedMessageError(f"Found an unknown record version {version} for {record_type} type")
    value_json = _value_json(record.value, version, _read(record.value, version, value, "value"))
    return key_text, json_text({"version": str(version), "data": value_json})


def _read_version(data: bytes, part: str) -> int:
    if len(data) < _VERSION.size:
        raise MalformedMessageError(f"Could not read version from {part}'s buffer.")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _is_known(cls: type[Message], version: int) -> bool:
    declared = spec(cls)
    return declared.first_version <= version <= declared.last_version


def _read(cls: type[Message], version: int, data: bytes, part: str) -> Values:
    try:
        return read_message(cls, _KEY_VERSION if part == "key" else version, data, _VERSION.size)[0]
    except MalformedMessageError as error:
        raise MalformedMessageError(
            f"Could not read record with version {version} from {part}'s buffer due to: {error}."
        ) from None


def _value_json(cls: type[Message], version: int, values: Values) -> Values:
    value = json_values(cls, version, values)
    if cls is GroupMetadataValue and values["protocol_type"] == "consumer":
        for member, raw in zip(value["members"], values["members"], strict=True):
            for name, member_message in _MEMBER_FIELDS:
                member[name] = _opaque_json(member_message, raw[name], member[name])
    return value


def _opaque_json(cls: type[Message], data: bytes, otherwise: Any) -> Any:
    """Decode an unknown version as the nearest known one, but not a newer one with partitions, as Kafka does."""
    if len(data) < _VERSION.size:
        return otherwise
    version = _VERSION.unpack_from(data)[0]
    declared = spec(cls)
    known_version = min(max(version, declared.first_version), declared.last_version)
    try:
        values, _ = read_message(cls, known_version, data, _VERSION.size)
    except MalformedMessageError:
        return otherwise
    if version > known_version and any(values.get(name) for name in _MEMBER_PARTITIONS):
        return otherwise
    return json_values(cls, known_version, values)
