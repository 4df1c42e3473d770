"""Records as JSON, one object a line: what `consume --format json` prints and `produce --format json` reads.

```json
{"topic": "orders", "partition": 0, "offset": 5, "timestamp": 1700000000000, "timestamp_type": "CreateTime",
 "headers": [["trace", "42"]], "key": "customer 7", "value": "three socks"}
```
Keys, values and header values are text, null, or, where their bytes are no UTF-8, `{"base64": "…"}`.

Read, every member may be missing; `key` and `value` are then null. `headers` may also be an object, `timestamp` also
ISO 8601. A key or value that is a number, an array or another object stands for its compact JSON text. `topic`,
`offset` and `timestamp_type` are not looked at, so that what was printed can be sent again; other members are refused.
Blank lines are skipped, as by others who read lines of JSON.
"""

from __future__ import annotations

import argparse
from base64 import b64decode, b64encode
from typing import Any

import msgspec

from odradek.client.cli.arguments.times import timestamp
from odradek.client.cli.input.input_record import InputRecord, LineError
from odradek.client.record import ConsumerRecord
from odradek.protocol.records.batch_header import TimestampType

TIMESTAMP_TYPES: dict[TimestampType | None, str] = {
    None: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
"""What Kafka's tools call the types of timestamps."""

_INT32_MAX = (1 << 31) - 1


class _Told(msgspec.Struct, forbid_unknown_fields=True):
    """A line, as far as its form goes."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | str | None = None
    timestamp_type: str | None = None
    headers: dict[str, Any] | list[tuple[Any, Any]] | None = None
    key: Any = None
    value: Any = None


_DECODER = msgspec.json.Decoder(_Told)
_ENCODER = msgspec.json.Encoder()


def parse_json(line: bytes, number: int) -> InputRecord | None:
    """The record of a line of JSON; None for a blank one, which separates nothing. Raises LineError."""
    if not line or line.isspace():
        return None
    try:
        told = _DECODER.decode(line)
        headers = told.headers.items() if isinstance(told.headers, dict) else told.headers or ()
        return InputRecord(
            _bytes(told.key),
            _bytes(told.value),
            [(_name(name), _bytes(value)) for name, value in headers],
            _partition(told.partition),
            timestamp(told.timestamp) if isinstance(told.timestamp, str) else told.timestamp,
        )
    except (msgspec.DecodeError, argparse.ArgumentTypeError, ValueError) as error:
        raise LineError(f"line {number} is no record in JSON: {error}") from None


def format_json(record: ConsumerRecord) -> bytes:
    """A record as a line of JSON, with its end."""
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


def _bytes(told: Any) -> bytes | None:
    if told is None:
        return None
    if isinstance(told, str):
        return told.encode()
    if isinstance(told, dict) and told.keys() == {"base64"}:
        return b64decode(str(told["base64"]), validate=True)
    return _ENCODER.encode(told)


def _name(told: Any) -> str:
    name = _bytes(told)
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


def _partition(told: int | None) -> int | None:
    if told is not None and not 0 <= told <= _INT32_MAX:
        raise ValueError(f"{told} is no partition")
    return told
