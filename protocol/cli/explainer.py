"""A decoder that explains the bytes of a message: a row with offset, name and value for every field.

`python -m protocol decode` prints its rows. Compiled decoders (`odradek.protocol.codec`) are many times as fast, but
report little about malformed bytes; this one reports the offset and the field. The two are independent; tests check
that they return the same values and reject the same bytes.

Headings (elements of arrays, structures, record batches) are rows of zero bytes. The other rows follow each other
without a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from odradek.protocol.api import Api
from odradek.protocol.buffer import Buffer
from odradek.protocol.cli.field_text import batch_text, bytes_text, value_text
from odradek.protocol.code_generation.codec_parts import MAX_STRING_SIZE, fixed
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.header import request_header_version, response_header_version
from odradek.protocol.plural import pluralize
from odradek.protocol.records.batch_header import MAGIC_POSITION, batch_headers, crc_is_valid
from odradek.protocol.schema import Layout, LayoutField, Message, Scalar, Structure, layout
from odradek.protocol.uvarint import uvarint_rest


class Row(NamedTuple):
    """The bytes from `start` to `end` (exclusive) and their meaning; `depth` counts the structures around them."""

    start: int
    end: int
    depth: int
    name: str
    text: str


class ExplanationError(RemoteProtocolError):
    """The bytes at `offset` are not a value of the field with this `path`."""

    def __init__(self, offset: int, path: str, reason: str) -> None:
        super().__init__(f"decoding stopped at offset {offset}, {path}: {reason}")
        self.offset = offset
        self.path = path


def _header_field(name: str, type_name: str, code: str = "", *, nullable: bool = False) -> LayoutField:
    return LayoutField(name, Scalar(type_name, code), None, is_array=False, is_nullable=nullable, default=None)


# The headers of `odradek.protocol.header`. The length of a client id is an i16 in header v2 as well.
_API_KEY = _header_field("api_key", "int16", "h")
_API_VERSION = _header_field("api_version", "int16", "h")
_CORRELATION_ID = _header_field("correlation_id", "int32", "i")
_CLIENT_ID = _header_field("client_id", "string", nullable=True)


class Explainer:
    """Decodes a buffer from `offset` to its end. `rows` keeps the rows before an ExplanationError."""

    def __init__(self, buffer: Buffer, offset: int = 0) -> None:
        self.buffer = memoryview(buffer)
        self.offset = offset
        self.rows: list[Row] = []
        self._path: list[str] = []

    def size_prefix(self) -> None:
        """Explain the four bytes of size before a frame."""
        self._field(_header_field("size", "int32", "i"), False, 0)

    def request(self, api: Api, version: int) -> Message:
        """Explain a whole request. Raises ExplanationError if it is of another API or version."""
        for field, expected in ((_API_KEY, api.key), (_API_VERSION, version)):
            start = self.offset
            found = self._field(field, False, 0)
            if found != expected:
                raise ExplanationError(
                    start, field.name, f"it is {value_text(field, found)}, not {value_text(field, expected)}"
                )
        self._field(_CORRELATION_ID, False, 0)
        self._field(_CLIENT_ID, False, 0)
        if request_header_version(api.key, version) == 2:
            self._tagged_fields((), 0)
        return self.message(api.request, version)

    def response(self, api: Api, version: int) -> Message:
        """Explain a whole response."""
        self._field(_CORRELATION_ID, False, 0)
        if response_header_version(api.key, version) == 1:
            self._tagged_fields((), 0)
        return self.message(api.response, version)

    def message(self, cls: type[Message], version: int) -> Message:
        """Explain the body of a message. Raises ExplanationError if bytes follow it."""
        self._heading(0, f"{cls.__name__} v{version}", "")
        message = self._structure(layout(cls, version), 0)
        if self.offset < len(self.buffer):
            raise ExplanationError(
                self.offset,
                "end of the message",
                pluralize(len(self.buffer) - self.offset, "byte follows", "bytes follow"),
            )
        assert isinstance(message, cls)
        return message

    def _structure(self, of: Layout, depth: int) -> Structure:
        values = {field.name: self._field(field, of.flexible, depth) for field in of.fields}
        if of.flexible:
            values |= self._tagged_fields(of.tagged, depth)
        return of.cls(**values)

    def _field(self, field: LayoutField, flexible: bool, depth: int, *, is_tagged: bool = False) -> Any:
        self._path.append(field.name)
        start = self.offset
        value: Any
        if field.is_array:
            value = self._array(field, flexible, depth)
        elif field.part is not None:
            value = self._nested(field, field.part, depth, is_tagged=is_tagged)
        else:
            value = self._scalar(field, flexible)
            self._row(start, depth, field.name, value_text(field, value))
            if field.kind.name == "records" and value:
                self._record_batches(value, self.offset - len(value), depth + 1)
        self._path.pop()
        return value

    def _scalar(self, field: LayoutField, flexible: bool) -> Any:
        if field.kind.code:
            form = fixed(field.kind.code)
            return form.unpack(self._take(form.size))[0]
        length = self._length(field, flexible, "h" if field.kind.name == "string" else "i")
        if length is None:
            return None
        if field.kind.name == "string" and length > MAX_STRING_SIZE:
            raise self._error(f"a string of {pluralize(length, 'byte')} where {MAX_STRING_SIZE} are the most")
        data = self._take(length)
        if field.kind.name != "string":
            return data if field.kind.name == "records" else bytes(data)
        return str(data, "utf-8", "replace")

    def _array(self, field: LayoutField, flexible: bool, depth: int) -> list[Any] | None:
        start = self.offset
        count = self._length(field, flexible, "i")
        if count is None:
            self._row(start, depth, field.name, "null")
            return None
        remaining = len(self.buffer) - self.offset
        if count > remaining:  # every element takes at least a byte
            raise self._error(
                f"{pluralize(count, 'element')} where {pluralize(remaining, 'byte remains', 'bytes remain')}", start
            )
        self._row(start, depth, field.name, f"array of {count}")
        element = field._replace(is_array=False, is_nullable=False)
        return [self._field(element._replace(name=f"[{index}]"), flexible, depth + 1) for index in range(count)]

    def _nested(self, field: LayoutField, part: Layout, depth: int, *, is_tagged: bool) -> Structure | None:
        if field.is_nullable:
            start = self.offset
            first = self._take(1)[0]
            is_null = first == 0 if is_tagged else first > 127
            self._row(start, depth, field.name, "null" if is_null else part.cls.__name__)
            if is_null:
                return None
        else:
            self._heading(depth, field.name, part.cls.__name__)
        return self._structure(part, depth + 1)

    def _tagged_fields(self, known: Sequence[tuple[int, LayoutField]], depth: int) -> dict[str, Any]:
        """Explain the section at the end of a flexible structure; return the values of the known fields."""
        self._path.append("tagged fields")
        values = {field.name: _default(field) for _, field in known}
        fields = dict(known)
        start = self.offset
        count = self._uvarint()
        self._row(start, depth, "tagged fields", str(count) if count else "none")
        for _ in range(count):
            start = self.offset
            number = self._uvarint()
            size = self._uvarint()
            remaining = len(self.buffer) - self.offset
            if size > remaining:
                raise self._error(f"tag {number} claims {pluralize(size, 'byte')} where {remaining} remain", start)
            self._row(start, depth + 1, f"tag {number}", pluralize(size, "byte"))
            start, stop = self.offset, self.offset + size
            if number not in fields:
                self._row(start, depth + 2, "unknown", bytes_text(self._take(size)))
                continue
            field = fields[number]
            values[field.name] = self._field(field, True, depth + 2, is_tagged=True)
            if self.offset != stop:
                raise self._error(
                    f"{field.name} takes {self.offset - start} of the {pluralize(size, 'byte')} of its tag", start
                )
        self._path.pop()
        return values

    def _record_batches(self, records: memoryview, start: int, depth: int) -> None:
        """Summarize the batches in a `records` field; a malformed batch is a row, not an error of the message."""
        magic = records[MAGIC_POSITION] if len(records) > MAGIC_POSITION else None
        if magic in (0, 1):
            self.rows.append(Row(start, start, depth, "message set", f"magic {magic}"))
            return
        end = 0
        try:
            for position, header in batch_headers(records):
                end = position + header.size
                text = batch_text(header, crc_is_valid(records, position, header))
                self.rows.append(Row(start + position, start + position, depth, "batch", text))
        except RemoteProtocolError as error:
            self.rows.append(Row(start + end, start + end, depth, "not a batch", str(error)))
        else:
            if end < len(records):
                text = f"{pluralize(len(records) - end, 'byte')}, cut off"
                self.rows.append(Row(start + end, start + end, depth, "batch", text))

    def _length(self, field: LayoutField, flexible: bool, code: str) -> int | None:
        """Read a length or count, None for null. Raises ExplanationError for one that the field does not allow."""
        start = self.offset
        length: int
        if flexible:
            length = self._uvarint() - 1
        else:
            form = fixed(code)
            (length,) = form.unpack(self._take(form.size))
        if length < -1:
            raise self._error(f"the length is {length}", start)
        if length == -1 and not field.is_nullable:
            raise self._error("it is null, which this version does not allow", start)
        return None if length == -1 else length

    def _uvarint(self) -> int:
        start = self.offset
        first = self._take(1)[0]
        if first < 128:
            return first
        try:
            value, self.offset = uvarint_rest(self.buffer, self.offset, first)
        except IndexError:
            raise self._error("the bytes end inside a varint", start) from None
        except RemoteProtocolError as error:
            raise self._error(str(error), start) from None
        return value

    def _take(self, size: int) -> memoryview:
        remaining = len(self.buffer) - self.offset
        if size > remaining:
            raise self._error(f"{pluralize(size, 'byte')} wanted where {remaining} remain")
        self.offset += size
        return self.buffer[self.offset - size : self.offset]

    def _row(self, start: int, depth: int, name: str, text: str) -> None:
        self.rows.append(Row(start, self.offset, depth, name, text))

    def _heading(self, depth: int, name: str, text: str) -> None:
        self.rows.append(Row(self.offset, self.offset, depth, name, text))

    def _error(self, reason: str, offset: int | None = None) -> ExplanationError:
        path = ".".join(self._path).replace(".[", "[")
        return ExplanationError(self.offset if offset is None else offset, path, reason)


def _default(field: LayoutField) -> Any:
    """Return the value of a tagged field that is absent."""
    if field.is_array and field.default == ():
        return []
    if field.part is not None and field.default is not None:
        return field.part.cls()
    return field.default
