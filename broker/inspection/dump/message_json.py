"""A stored message as the JSON that Kafka prints, or Kafka's error text for malformed bytes.

Fields have Kafka's names, in the order of their declaration; a tagged field is included if it differs from its default.
Bytes are base64, uuids Kafka's text of them.

Decoding walks the layouts of `odradek.protocol.schema`, as `odradek.protocol.cli.explainer` does, and not
`odradek.protocol.codec`, because text that is not UTF-8 is repaired, and Kafka's error texts are part of the output.
Sources: Kafka `MessageDataGenerator`, `JsonConverterGenerator`, `ByteBufferAccessor`.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any

from odradek.broker.inspection.dump.java import int32, utf8_text
from odradek.protocol.schema import Field, Layout, LayoutField, Message, Scalar, Structure, fields, layout
from odradek.protocol.uuids import uuid_to_text

Values = dict[str, Any]

_LONGEST_STRING = 0x7FFF
_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord(character): f"\\{letter}" for character, letter in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)
}


class MalformedMessageError(Exception):
    """Malformed bytes, with the message of Kafka's exception; `null` where it has none."""


def read_message(cls: type[Message], version: int, data: bytes, position: int) -> tuple[Values, int]:
    """Return the fields of the message at `position` by name and the position after it; the version must be known.

    Raises MalformedMessageError.
    """
    reader = _Reader(data, position)
    values = reader.structure(layout(cls, version))
    return values, reader.position


def json_values(cls: type[Structure], version: int, values: Values) -> Values:
    """Return the fields of a version under Kafka's names, in Kafka's order, with values that `json_text` takes."""
    out: Values = {}
    for field, name in _json_fields(cls):
        if field.tag is None:
            if field.name in values:
                out[name] = _json_value(field, version, values[field.name])
            elif field.exists_in(version):  # `values` are those of another version
                out[name] = _json_value(field, version, _default(field, version))
        elif field.name in values and values[field.name] != _default(field, version):
            out[name] = _json_value(field, version, values[field.name])
    return out


def json_text(value: Any) -> str:
    """JSON without white space, escaped as Jackson does."""
    if isinstance(value, dict):
        return "{" + ",".join(f'"{name}":{json_text(part)}' for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Reader:
    """Reads fields one after another; malformed bytes raise MalformedMessageError."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self.position = position

    def structure(self, of: Layout) -> Values:
        values = {field.name: self._field(field, of.flexible) for field in of.fields}
        if of.flexible:
            tagged = dict(of.tagged)
            for _ in range(int32(self._unsigned_varint())):
                tag = self._unsigned_varint()
                size = int32(self._unsigned_varint())
                field = tagged.get(tag)
                if field is None:
                    self._take(size)
                else:
                    values[field.name] = self._field(field, flexible=True, is_tagged=True)
        return values

    def _field(self, field: LayoutField, flexible: bool, is_tagged: bool = False) -> Any:
        name = _camel_case(field.name)
        if field.is_array:
            return self._array(field, flexible, name)
        return self._value(field, flexible, name, is_tagged)

    def _value(self, field: LayoutField, flexible: bool, name: str, is_tagged: bool = False) -> Any:
        if field.part is not None:
            if field.is_nullable and self._is_null(is_tagged):
                return None
            return self.structure(field.part)
        if field.kind.code:
            return self._fixed(">" + field.kind.code)
        is_string = field.kind.name == "string"
        length = self._length(flexible, ">h" if is_string else ">i", field.is_nullable, name)
        if length is None:
            return None
        if not is_string:
            return self._take(length)
        if length > _LONGEST_STRING:
            raise MalformedMessageError(f"string field {name} had invalid length {length}")
        return utf8_text(self._take(length))

    def _is_null(self, is_tagged: bool) -> bool:
        """A nullable structure has a byte in front of it, or its size plus one if it is tagged."""
        if is_tagged:
            return int32(self._unsigned_varint()) <= 0
        is_null: bool = self._fixed(">b") < 0
        return is_null

    def _array(self, field: LayoutField, flexible: bool, name: str) -> list[Any] | None:
        count = self._length(flexible, ">i", field.is_nullable, name)
        if count is None:
            return None
        remaining = len(self._data) - self.position
        if count > remaining:
            raise MalformedMessageError(
                f"Tried to allocate a collection of size {count}, but there are only {remaining} bytes remaining."
            )
        element = field._replace(is_array=False, is_nullable=False)
        return [self._value(element, flexible, f"{name} element") for _ in range(count)]

    def _length(self, flexible: bool, form: str, is_nullable: bool, name: str) -> int | None:
        length = int32(self._unsigned_varint() - 1) if flexible else self._fixed(form)
        if length >= 0:
            return int(length)
        if is_nullable:
            return None
        raise MalformedMessageError(f"non-nullable field {name} was serialized as null")

    def _fixed(self, form: str) -> Any:
        try:
            value = struct.unpack_from(form, self._data, self.position)[0]
        except struct.error:
            raise MalformedMessageError("null") from None
        self.position += struct.calcsize(form)
        return value

    def _take(self, size: int) -> bytes:
        remaining = len(self._data) - self.position
        if size > remaining:
            raise MalformedMessageError(
                f"Error reading byte array of {size} byte(s): only {remaining} byte(s) available"
            )
        if size < 0:
            raise MalformedMessageError(str(size))
        self.position += size
        return self._data[self.position - size : self.position]

    def _unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte: int = self._fixed(">B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF
        raise MalformedMessageError(
            "Varint is too long, the most significant bit in the 5th byte is set, converted value: "
            f"{value & 0xFFFFFFFF:x}"
        )


@cache
def _json_fields(cls: type[Structure]) -> tuple[tuple[Field, str], ...]:
    return tuple((field, _camel_case(field.name)) for field in fields(cls))


@cache
def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _default(field: Field, version: int) -> Any:
    if isinstance(field.default, type):
        return {part.name: _default(part, version) for part in fields(field.default) if part.exists_in(version)}
    return field.default


def _json_value(field: Field, version: int, value: Any) -> Any:
    if value is None:
        return None
    if field.is_array:
        element = field._replace(is_array=False)
        return [_json_value(element, version, part) for part in value]
    if not isinstance(field.kind, Scalar):
        return json_values(field.kind, version, value)
    convert = _JSON_FORMS.get(field.kind.name)
    return convert(value) if convert else value


_JSON_FORMS: dict[str, Callable[[bytes], str]] = {"bytes": lambda data: b64encode(data).decode(), "uuid": uuid_to_text}
