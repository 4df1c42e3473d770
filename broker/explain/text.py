"""Events as lines of text.

```
20:15:00.123  #7 Produce v13 from 127.0.0.1:50312 "rdkafka", correlation 3
                 acks=-1 timeout_ms=30000
                 topic_data[0] name="orders"
                   partition_data[0] index=0
                     batch 78 bytes, offsets 0 to 0, …
                       offset 0 key="a" value="hello"
20:15:00.123  #7   write orders-0/00000000000000000000.log: 78 bytes at 0
20:15:00.124  #7 Produce answered after 0.6 ms
```

Times are UTC. A number stands before everything that belongs to a request. Left out are fields that are null or empty,
a throttle time of 0, the id of no topic, and authorized operations that were not requested.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from odradek.broker.explain.events import (
    Exchange,
    Fields,
    FileOperation,
    GroupTransition,
    RequestAnswered,
    RequestReceived,
    TraceEvent,
    TransactionTransition,
)
from odradek.broker.explain.shown import Shown
from odradek.broker.inspection.text import time_text
from odradek.protocol.plural import pluralize
from odradek.protocol.schema import ZERO_UUID
from odradek.protocol.uuids import uuid_to_text

_WIDTH = 118
MARGIN = " " * 20
_EMPTY: Final[tuple[Any, ...]] = ("", [], '""', uuid_to_text(ZERO_UUID))
_NOT_REQUESTED: Final = -2147483648
_EMPTY_FIELDS: Final = {
    "throttle_time_ms": 0,
    "topic_authorized_operations": _NOT_REQUESTED,
    "cluster_authorized_operations": _NOT_REQUESTED,
}
_TIME_OF_DAY = slice(11, 23)
_RESET = "\x1b[0m"
_COLOURS = {"request": "\x1b[1;36m", "answer": "\x1b[32m", "error": "\x1b[31m", "state": "\x1b[33m", "file": "\x1b[2m"}


def event_lines(event: TraceEvent, *, coloured: bool = False) -> list[str]:
    """Return the lines of an event."""
    if isinstance(event, Exchange):
        return [exchange_line(event)]
    kind, title, fields = _parts(event)
    if coloured:
        title = f"{_COLOURS[kind]}{title}{_RESET}"
    number = "" if event.cause is None else f"#{event.cause}"
    return [f"{_time(event.time_ms)} {number:>4} {title}", *(f"{MARGIN}{line}" for line in _field_lines(fields, 0))]


def exchange_line(exchange: Exchange) -> str:
    """Return a request and its answer as one line."""
    parts = [f"{_time(exchange.time_ms)} {exchange.api} v{exchange.version} from {_client(exchange)}"]
    if exchange.subject:
        parts.append(f"for {exchange.subject}")
    if exchange.topics:
        parts.append(f"of {', '.join(exchange.topics)}")
    return f"{' '.join(parts)}: {_answer(exchange)}"


def _parts(event: TraceEvent) -> tuple[str, str, Fields]:
    """Return the kind of an event, its title, and the fields below it."""
    match event:
        case RequestReceived():
            each = event.exchange
            title = f"{each.api} v{each.version} from {_client(each)}, correlation id {each.correlation_id}"
            return "request", title, event.fields
        case RequestAnswered():
            each = event.exchange
            return "error" if each.errors else "answer", f"{each.api} {_answer(each)}", event.fields or {}
        case GroupTransition():
            return "state", f"  {_group(event)}", {}
        case TransactionTransition():
            return "state", f"  {_transaction(event)}", {}
        case FileOperation():
            return "file", f"  {_file(event)}", {}
    raise TypeError(f"not an event of a trace: {event!r}")


def _time(time_ms: int) -> str:
    return time_text(time_ms)[_TIME_OF_DAY]


def _client(exchange: Exchange) -> str:
    host, port = exchange.peer
    name = "" if exchange.client_id is None else f" {_quoted(exchange.client_id)}"
    return f"{host}:{port}{name}"


def _answer(exchange: Exchange) -> str:
    if exchange.seconds is None:
        return "waits"
    duration = f"after {exchange.seconds * 1000:.1f} ms"
    if exchange.errors:
        detail = f" ({exchange.outcome})" if exchange.outcome else ""
        return f"answered {', '.join(exchange.errors)} {duration}{detail}"
    return f"{exchange.outcome or 'answered'} {duration}"


def _group(event: GroupTransition) -> str:
    name = "generation" if event.group_type == "classic" else "epoch"
    about = f"{name} {event.generation}, {pluralize(event.members, 'member')}"
    reason = f" ({event.reason})" if event.reason else ""
    return f"group {_quoted(event.group_id)}: {' → '.join(event.states)}, {about}{reason}"


def _transaction(event: TransactionTransition) -> str:
    producer = f"producer id {event.producer_id} epoch {event.producer_epoch}"
    partitions = f", {', '.join(event.partitions)}" if event.partitions else ""
    return f"transactional id {_quoted(event.transactional_id)}: {' → '.join(event.states)}, {producer}{partitions}"


def _file(event: FileOperation) -> str:
    about = ""
    if event.operation == "more":
        return f"… {pluralize(event.length or 0, 'more file operation')}"
    if event.operation == "write":
        about = f": {pluralize(event.length or 0, 'byte')} at {event.position}"
    elif event.operation == "truncate":
        about = f": to {pluralize(event.length or 0, 'byte')}"
    elif event.target:
        about = f" to {event.target}"
    return f"{event.operation} {event.path}{about}{f' failed: {event.error}' if event.error else ''}"


def _field_lines(fields: Fields, depth: int) -> Iterator[str]:
    """Yield the plain fields in as few lines as they need, then those with fields of their own."""
    shown = {name: value for name, value in fields.items() if not _is_empty(name, value)}
    plain = [f"{name}={_value(value)}" for name, value in shown.items() if not _is_nested(value)]
    yield from _wrapped(plain, depth)
    for name, value in shown.items():
        if _is_nested(value):
            yield from _nested_lines(name, value, depth)


def _nested_lines(name: str, value: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(value, dict):
        yield from _titled(name, value, depth)
        return
    for index, element in enumerate(value):
        if not isinstance(element, dict):
            yield f"{indent}{name} {_value(element)}"
        elif "batch" in element:
            yield f"{indent}batch {element['batch']}"
            yield from _record_lines(element["records"], depth + 1)
        else:
            yield from _titled(f"{name}[{index}]", element, depth)


def _titled(title: str, fields: Fields, depth: int) -> Iterator[str]:
    """Yield the title with the plain fields behind it, then the others below it."""
    lines = list(_field_lines(fields, depth + 1))
    indent = "  " * depth
    if lines and not _is_nested(next(iter(fields.values()), None)):
        yield f"{indent}{title} {lines[0].strip()}"
        yield from lines[1:]
    else:
        yield f"{indent}{title}"
        yield from lines


def _record_lines(records: list[Any], depth: int) -> Iterator[str]:
    for record in records:
        if isinstance(record, dict):
            offset = record["offset"]
            others = " ".join(f"{name}={_value(value)}" for name, value in record.items() if name != "offset")
            yield f"{'  ' * depth}offset {offset} {others}"
        else:
            yield f"{'  ' * depth}{_value(record)}"


def _wrapped(parts: list[str], depth: int) -> Iterator[str]:
    line = ""
    for part in parts:
        if line and len(MARGIN) + 2 * depth + len(line) + len(part) >= _WIDTH:
            yield "  " * depth + line
            line = ""
        line = f"{line} {part}" if line else part
    if line:
        yield "  " * depth + line


def _is_empty(name: str, value: Any) -> bool:
    return value is None or value in _EMPTY or value == _EMPTY_FIELDS.get(name)


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str) and not isinstance(value, Shown):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
