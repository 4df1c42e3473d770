"""Records as JSON, one object a line: what `consume --format json` prints and `produce --format json` reads.

```json
{"topic": "orders", "partition": 0, "offset": 5, "timestamp": 1700000000000, "timestamp_type": "CreateTime",
 "headers": [["trace", "42"]], "key": "customer 7", "value": "three socks"}
```
Keys, values and header values are text, null, or, if their bytes are not UTF-8, `{"base64": "…"}`.

In input every member may be missing; a missing `key` or `value` is null. `headers` may also be an object, and
`timestamp` ISO 8601; -1, which is printed for a record without one, is the time of sending. A key or value that is a
number, an array or another object is sent as its JSON text without the spaces: its numbers stay as they were written.
`topic`, `offset` and `timestamp_type` are ignored, so that printed records can be sent. Other members are refused.
Blank lines are skipped, as other readers of JSON lines do.
"""

from __future__ import annotations

import argparse
from base64 import b64decode, b64encode

import msgspec

from odradek.client.cli.arguments.times import record_timestamp
from odradek.client.cli.input.input_record import InputRecord, LineError
from odradek.client.record import ConsumerRecord
from odradek.protocol.records.batch_header import TimestampType

TIMESTAMP_TYPES: dict[TimestampType | None, str] = {
    None: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
"""The names of timestamp types in Kafka's tools."""

_INT32_MAX = (1 << 31) - 1
_INT64_MAX = (1 << 63) - 1
_NO_TIMESTAMP = -1


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """The members of a line."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | str | None = None
    timestamp_type: str | None = None
    headers: dict[str, msgspec.Raw] | list[tuple[msgspec.Raw, msgspec.Raw]] | None = None
    key: msgspec.Raw = msgspec.Raw(b"null")
    value: msgspec.Raw = msgspec.Raw(b"null")


_DECODER = msgspec.json.Decoder(_Line)
_TEXT_DECODER = msgspec.json.Decoder(str)
_OBJECT_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODER = msgspec.json.Encoder()


def parse_json(line: bytes, number: int) -> InputRecord | None:
    """Parse a line of JSON; return None for a blank one. Raises LineError."""
    if not line or line.isspace():
        return None
    try:
        members = _DECODER.decode(line)
        if isinstance(members.headers, dict):
            headers = [(name, _bytes(value)) for name, value in members.headers.items()]
        else:
            headers = [(_name(name), _bytes(value)) for name, value in members.headers or ()]
        return InputRecord(
            _bytes(members.key),
            _bytes(members.value),
            headers,
            _partition(members.partition),
            _timestamp(members.timestamp),
        )
    except (msgspec.DecodeError, argparse.ArgumentTypeError, ValueError, RecursionError) as error:
        raise LineError(f"line {number} is not a record in JSON: {error}") from None


def format_json(record: ConsumerRecord) -> bytes:
    """Return a record as a line of JSON, with the line's end."""
    members = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": TIMESTAMP_TYPES[record.timestamp_type],
        "headers": [[_text(name.encode(errors="surrogateescape")), _text(value)] for name, value in record.headers],
        "key": _text(record.key),
        "value": _text(record.value),
    }
    return _ENCODER.encode(members) + b"\n"


def _bytes(member: msgspec.Raw) -> bytes | None:
    """Return the bytes that a member stands for. Raises DecodeError, ValueError."""
    text = bytes(member)
    if text == b"null":
        return None
    if text.startswith(b'"'):
        return _TEXT_DECODER.decode(text).encode()
    if text.startswith(b"{") and b"base64" in text:
        members = _OBJECT_DECODER.decode(text)
        if members.keys() == {"base64"}:
            return b64decode(_TEXT_DECODER.decode(members["base64"]), validate=True)
    text.decode()  # the decoder has checked all but this
    return msgspec.json.format(text, indent=-1)


def _name(member: msgspec.Raw) -> str:
    name = _bytes(member)
    if name is None:
        raise ValueError("a header has no name")
    return name.decode(errors="surrogateescape")


def _text(part: bytes | None) -> str | dict[str, str] | None:
    if part is None:
        return None
    try:
        return part.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(part).decode()}


def _partition(number: int | None) -> int | None:
    if number is not None and not 0 <= number <= _INT32_MAX:
        raise ValueError(f"{number} is not the number of a partition")
    return number


def _timestamp(time: int | str | None) -> int | None:
    if isinstance(time, str):
        return record_timestamp(time)
    if time is None or time == _NO_TIMESTAMP:
        return None
    if not 0 <= time <= _INT64_MAX:
        raise ValueError(f"{time} is not a timestamp: write milliseconds since 1970, such as 1700000000000")
    return time
