"""Records as tests write them, and how they are sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from odradek.client.producer.producer import Producer
from odradek.client.record import ConsumerRecord, RecordMetadata
from odradek.protocol.records.record_headers import Header

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

Sendable = bytes | tuple[bytes | None, bytes | None] | ConsumerRecord
"""A value; a key and a value; or a record as it was read, whose partition, headers and timestamp are kept."""

Headers = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]
"""Headers of records: a dict, or pairs if a name occurs twice."""

_NO_HEADERS = 'headers are a dict, such as {"trace": b"7"}, or pairs of a str and bytes'


class Stamp(NamedTuple):
    """What records get that have none of their own, or all records if the test says so (`wins`)."""

    headers: tuple[Header, ...] | None
    timestamp: int | None  # ms since the epoch; None: now, by the clock of the test
    timestamp_wins: bool


class _Arguments(NamedTuple):
    value: bytes | None
    key: bytes | None
    partition: int | None
    headers: tuple[Header, ...]
    timestamp: int | None


def stamp_of(headers: Headers | None, timestamp: int | datetime | None, now: int | None) -> Stamp:
    """Return what `produce` gives its records; `now` (ms) is the time of records without another one.

    Raises TypeError and ValueError.
    """
    given = None if headers is None else _headers(headers)
    return Stamp(given, now if timestamp is None else _milliseconds(timestamp), timestamp is not None)


async def send(
    producer: Producer[bytes, bytes], topic: str, records: Iterable[Sendable], stamp: Stamp
) -> list[RecordMetadata]:
    """Send records in order, and return where they are when all are acknowledged.

    Raises TypeError before anything is sent, and ClientError.
    """
    if isinstance(records, bytes | str | ConsumerRecord):
        raise TypeError(f"produce takes a list of records, not {records!r} alone")
    if not isinstance(records, Iterable):
        raise TypeError(f'produce takes a list, such as [b"three socks"], and not {records!r}')
    sent = [await producer.send(topic, *arguments) for arguments in [_arguments(record, stamp) for record in records]]
    await producer.flush()
    return [await future for future in sent]


def _arguments(record: object, stamp: Stamp) -> _Arguments:
    if isinstance(record, bytes):
        return _Arguments(record, None, None, stamp.headers or (), stamp.timestamp)
    if isinstance(record, ConsumerRecord):
        headers = record.headers if stamp.headers is None else stamp.headers
        own = _milliseconds(record.timestamp, least=None)
        timestamp = own if own >= 0 and not stamp.timestamp_wins else stamp.timestamp
        return _Arguments(record.value, record.key, record.partition, headers, timestamp)
    if (
        isinstance(record, tuple)
        and len(record) == 2
        and all(part is None or isinstance(part, bytes) for part in record)
    ):
        key, value = record
        return _Arguments(value, key, None, stamp.headers or (), stamp.timestamp)
    cure = "; encode it" if isinstance(record, str) else ""
    raise TypeError(f"{record!r} is no record: give bytes, a (key, value) of bytes, or a ConsumerRecord{cure}")


def _headers(headers: object) -> tuple[Header, ...]:
    if isinstance(headers, str | bytes) or not isinstance(headers, Iterable):
        raise TypeError(f"{_NO_HEADERS}, and not {headers!r}")
    pairs: tuple[Any, ...] = tuple(headers.items()) if isinstance(headers, Mapping) else tuple(headers)
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(f"{_NO_HEADERS}, and not {pair!r}")
        if not isinstance(pair[1], bytes | None):
            cure = "; encode it" if isinstance(pair[1], str) else ""
            raise TypeError(f"the header {pair[0]} is bytes or None, and not {pair[1]!r}{cure}")
    return pairs


def _milliseconds(timestamp: object, least: int | None = 0) -> int:
    """Return milliseconds since the epoch. Raises TypeError and ValueError; Kafka's producer refuses negative ones."""
    if isinstance(timestamp, datetime):
        if timestamp.tzinfo is None:
            raise ValueError(f"the timestamp {timestamp} has no time zone: write datetime(…, tzinfo=UTC)")
        timestamp = round(timestamp.timestamp() * 1000)
    if not isinstance(timestamp, int) or isinstance(timestamp, bool):
        raise TypeError(
            f"timestamp is a number of milliseconds since 1970, such as 1700000000000, or a datetime, and not"
            f" {timestamp!r}"
        )
    if (least is not None and timestamp < least) or timestamp >= 1 << 63:
        raise ValueError(f"timestamp is a number of milliseconds from 0 to 2^63 - 1, and not {timestamp}")
    return timestamp
