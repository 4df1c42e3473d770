"""Bounded copies of messages, for as long as a trace keeps them.

A message may refer to the buffer that it was received in, which the next request overwrites, and to file slices, which
are released when they are sent. A copy refers to neither. It has at most

| | |
|---|---|
| of a string, key, value | 64 bytes, then its length |
| of an array | 10 elements, then the number of the others |
| of all values together | about 400 |

so that a Metadata response of ten thousand topics costs what one of ten costs. Errors and topics have their names,
subscriptions and assignments inside of JoinGroup and SyncGroup are decoded, and so is an `EncodedPart`. Secrets are
hidden (`secrets`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odradek.broker.explain.events import Fields
from odradek.broker.explain.record_copying import copy_batches
from odradek.broker.explain.secrets import hidden_fields
from odradek.broker.explain.shown import Shown, bytes_text, cut_text
from odradek.protocol.api import NAMES
from odradek.protocol.codec import decode_part
from odradek.protocol.errors import ErrorCode, RemoteProtocolError
from odradek.protocol.schema import ZERO_UUID, EncodedPart, Layout, LayoutField, Message, Structure, layout
from odradek.protocol.stored_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    read_consumer_protocol,
    read_version,
)
from odradek.protocol.uuids import uuid_to_text

MOST_ELEMENTS = 10
MOST_VALUES = 400
HIDDEN = Shown("(hidden)")

TopicName = Callable[[bytes], str | None]
"""Returns the name of the topic with an id, None if there is none."""

_OVERHEAD = 64  # bytes of a value in a dictionary or list, beside its text
_ERRORS = {code.value: Shown(code.name) for code in ErrorCode}
_APIS = {key: Shown(name) for key, name in NAMES.items()}
_CONSUMER_PROTOCOL: dict[str, Any] = {
    "metadata": ConsumerProtocolSubscription,
    "member_metadata": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
    "member_assignment": ConsumerProtocolAssignment,
}


class MessageCopy:
    """The copy of one message: its `fields`, and their approximate `size` in bytes."""

    def __init__(self, message: Message, version: int, topic_name: TopicName) -> None:
        self.size = 0
        self._left = MOST_VALUES
        self._topic_name = topic_name
        self._is_of_consumers = getattr(message, "protocol_type", None) in (None, "", "consumer")
        self.fields = self._structure(message, layout(type(message), version))

    def _structure(self, structure: Structure, of: Layout) -> Fields:
        hidden = hidden_fields(structure)
        copied = {field.name: self._field(field, structure, hidden) for field in of.fields}
        for _, field in of.tagged:
            if not _is_default(field, getattr(structure, field.name)):
                copied[field.name] = self._field(field, structure, hidden)
        return copied

    def _field(self, field: LayoutField, structure: Structure, hidden: frozenset[str]) -> Any:
        value = getattr(structure, field.name)
        self.size += _OVERHEAD
        if field.name in hidden and value:
            return HIDDEN
        if value is None:
            return None
        return self._array(field, value) if field.is_array else self._element(field, value)

    def _array(self, field: LayoutField, values: Any) -> list[Any]:
        copied: list[Any] = []
        for value in values:
            if len(copied) == MOST_ELEMENTS or self._left <= 0:
                copied.append(Shown(f"… {len(values) - len(copied)} more"))
                break
            copied.append(self._element(field, value))
        return copied

    def _element(self, field: LayoutField, value: Any) -> Any:
        if field.part is not None:
            structure = decode_part(value) if isinstance(value, EncodedPart) else value
            return self._structure(structure, field.part)
        self._left -= 1
        copied = self._scalar(field, value)
        self.size += _OVERHEAD + (len(copied) if isinstance(copied, str) else 0)
        return copied

    def _scalar(self, field: LayoutField, value: Any) -> Any:
        match field.kind.name:
            case "string":
                return cut_text(value)
            case "uuid":
                return self._uuid(field.name, value)
            case "bytes":
                return self._bytes(field.name, value)
            case "records":
                batches, size = copy_batches(value)
                self.size += size
                self._left -= len(batches)
                return batches
        if field.name.endswith("error_code"):
            return _ERRORS.get(value, value)
        return _APIS.get(value, value) if field.name == "api_key" else value

    def _uuid(self, name: str, value: bytes) -> Shown:
        topic = self._topic_name(value) if name.endswith("topic_id") and value != ZERO_UUID else None
        text = uuid_to_text(value)
        return Shown(text if topic is None else f"{text} ({cut_text(topic)})")

    def _bytes(self, name: str, value: Any) -> Any:
        kind = _CONSUMER_PROTOCOL.get(name) if self._is_of_consumers and value else None
        if kind is not None:
            try:
                message = read_consumer_protocol(kind, value)
                return self._structure(message, layout(kind, read_version(value)))
            except RemoteProtocolError:
                pass  # of another protocol type: bytes
        return bytes_text(value)


def _is_default(field: LayoutField, value: Any) -> bool:
    if field.is_array:
        return not value
    return bool(value == (field.default() if isinstance(field.default, type) else field.default))
