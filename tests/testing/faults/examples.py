"""Requests of any API, made from the schemas: what they ask for does not matter, only what they name."""

from __future__ import annotations

from typing import Any

from odradek.broker.testing.faults.topic_rows import NUMBERS, Topics, topics_of
from odradek.protocol.schema import Message, Scalar, Structure, fields

VALUES: dict[str, Any] = {"string": "x", "bytes": b"x", "uuid": bytes(16), "records": b"", "bool": False}


def filled(cls: type[Structure], version: int) -> Any:
    """A structure whose arrays all have one element."""
    values: dict[str, Any] = {}
    for field in fields(cls):
        if not field.exists_in(version):
            continue
        scalar = isinstance(field.kind, Scalar)
        if field.is_array:
            values[field.name] = [VALUES.get(field.kind.name, 0) if scalar else filled(field.kind, version)]
        elif scalar and field.kind.name == "string":
            values[field.name] = "x"
        elif not scalar:
            values[field.name] = filled(field.kind, version)
    return cls(**values)


def naming(cls: type[Message], version: int, named: dict[str, list[int]], ids: dict[str, bytes]) -> Any:
    """A message that names these partitions of topics."""
    topics = topics_of(cls, version)
    assert topics is not None
    message = filled(cls, version)
    [parent] = topics.parents(message)
    setattr(parent, topics.array, [_entry(cls, topics, version, topic, named[topic], ids[topic]) for topic in named])
    return message


def _entry(cls: type[Message], topics: Topics, version: int, topic: str, indexes: list[int], topic_id: bytes) -> Any:
    owner: Any = cls if topics.parent is None else _kind(cls, topics.parent)
    kind = _kind(owner, topics.array)
    if isinstance(kind, Scalar):
        return topic
    entry = filled(kind, version)
    if topics.name is not None:
        setattr(entry, topics.name, topic)
    if topics.has_ids:
        entry.topic_id = topic_id
    if topics.are_resources:
        entry.resource_type = 2
    if topics.partitions is not None:
        rows = _kind(kind, topics.partitions)
        setattr(
            entry, topics.partitions, indexes if isinstance(rows, Scalar) else [_row(rows, i, version) for i in indexes]
        )
    return entry


def _row(kind: type[Structure], index: int, version: int) -> Any:
    row = filled(kind, version)
    setattr(row, next(name for name in NUMBERS if hasattr(row, name)), index)
    return row


def _kind(cls: type[Structure], name: str) -> Any:
    return next(field.kind for field in fields(cls) if field.name == name)
