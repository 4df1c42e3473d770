"""Records as tests write them, and how they are sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from odradek.client.producer.producer import Producer
from odradek.client.record import ConsumerRecord, RecordMetadata
from odradek.protocol.records.record_headers import Header

Sendable = bytes | tuple[bytes | None, bytes | None] | ConsumerRecord
"""A value; a key and a value; or a record as it was read, whose partition, headers and timestamp are kept."""


class _Arguments(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None


async def send(producer: Producer[bytes, bytes], topic: str, records: Iterable[Sendable]) -> list[RecordMetadata]:
    """Send records in order, and return where they are when all are acknowledged.

    Raises TypeError before anything is sent, and ClientError.
    """
    if isinstance(records, bytes | str | ConsumerRecord):
        raise TypeError(f"produce takes a list of records, not {records!r} alone")
    sent = [await producer.send(topic, *arguments) for arguments in [_arguments(record) for record in records]]
    await producer.flush()
    return [await future for future in sent]


def _arguments(record: object) -> _Arguments:
    if isinstance(record, bytes):
        return _Arguments(record)
    if isinstance(record, ConsumerRecord):
        timestamp = record.timestamp if record.timestamp >= 0 else None
        return _Arguments(record.value, record.key, record.partition, record.headers, timestamp)
    if (
        isinstance(record, tuple)
        and len(record) == 2
        and all(part is None or isinstance(part, bytes) for part in record)
    ):
        key, value = record
        return _Arguments(value, key)
    cure = "; encode it" if isinstance(record, str) else ""
    raise TypeError(f"{record!r} is no record: give bytes, a (key, value) of bytes, or a ConsumerRecord{cure}")
