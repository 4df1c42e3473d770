"""Types, defaults and values of fields as text of one line."""

from __future__ import annotations

import json
from typing import Any

from odradek.protocol.api import NAMES
from odradek.protocol.buffer import Buffer
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import CODEC_BITS, BatchHeader
from odradek.protocol.schema import LayoutField, Scalar
from odradek.protocol.uuids import uuid_to_text

BYTES_SHOWN = 32  # of a `bytes` field, after its length

_ERRORS = {code.value: code.name for code in ErrorCode}
_CODECS = {codec.value: codec.name.lower() for codec in Codec}


def type_text(field: LayoutField) -> str:
    """Return the type of a field: `int32`, `array of FetchTopic`, `string or null`."""
    name = field.kind.name if isinstance(field.kind, Scalar) else field.kind.__name__
    return f"{'array of ' if field.is_array else ''}{name}{' or null' if field.is_nullable else ''}"


def default_text(field: LayoutField) -> str:
    """Return the default of a field; empty for a structure, whose fields have their own."""
    if field.is_array:
        return "null" if field.default is None else "[]"
    if not isinstance(field.kind, Scalar):
        return "null" if field.default is None else ""
    if isinstance(field.default, int | float) and not isinstance(field.default, bool):
        return str(field.default)
    return "empty" if field.default == b"" else value_text(field, field.default)


def value_text(field: LayoutField, value: Any) -> str:
    """Return a value of a field without parts; error codes and API keys with their names."""
    if value is None:
        return "null"
    match field.kind.name:
        case "bool":
            return "true" if value else "false"
        case "string":
            return json.dumps(value, ensure_ascii=False)
        case "uuid":
            return uuid_to_text(value)
        case "bytes":
            return bytes_text(value)
        case "records":
            return pluralize(len(value), "byte")
    if field.name == "api_key" and value in NAMES:
        return f"{value} {NAMES[value]}"
    if field.name.endswith("error_code") and value in _ERRORS:
        return f"{value} {_ERRORS[value]}"
    return str(value)


def bytes_text(value: Buffer) -> str:
    """Return the number of bytes, and the first ones in hex."""
    shown = bytes(value[:BYTES_SHOWN]).hex()
    return f"{pluralize(len(value), 'byte')} {shown}{'…' if len(value) > BYTES_SHOWN else ''}".rstrip()


def batch_text(header: BatchHeader, crc_is_right: bool) -> str:
    """A record batch, by its header."""
    codec = header.attributes & CODEC_BITS
    parts = [
        pluralize(header.size, "byte"),
        f"offsets {header.base_offset} to {header.last_offset}",
        pluralize(header.records_count, "record"),
        f"codec {_CODECS.get(codec, codec)}",
        f"leader epoch {header.partition_leader_epoch}",
    ]
    if header.has_producer_id:
        parts.append(f"producer {header.producer_id} epoch {header.producer_epoch} sequence {header.base_sequence}")
    if header.is_transactional:
        parts.append("transactional")
    if header.is_control:
        parts.append("control")
    parts.append("crc ok" if crc_is_right else "crc WRONG")
    return ", ".join(parts)
