"""The topics that a request names, and its group or transactional id, as a line about it shows them.

The functions are found once for each API, from the fields of its class: a brief trace calls them for every request.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from odradek.broker.explain.copying import TopicName
from odradek.broker.explain.shown import cut_text
from odradek.protocol.schema import Message, Scalar, fields
from odradek.protocol.uuids import uuid_to_text

MOST_TOPICS = 5

_NAMES = ("name", "topic", "topic_name")
_TOPIC_LISTS = frozenset({"topics", "topic_data", "topic_names", "subscribed_topic_names", "v3_and_below_topics"})
_SUBJECTS = ("group_id", "transactional_id", "v3_and_below_transactional_id", "key")

TopicsOf = Callable[[Any, TopicName], tuple[str, ...]]


def subject_field(cls: type[Message]) -> str | None:
    """Return the field with the group or the transactional id of a request, None if it has none."""
    known = {field.name for field in fields(cls)}
    return next((name for name in _SUBJECTS if name in known), None)


def topics_getter(cls: type[Message]) -> TopicsOf | None:
    """Return a function of a request that returns the first topics it names, None if it cannot name any."""
    field = next((field for field in fields(cls) if field.is_array and field.name in _TOPIC_LISTS), None)
    if field is None:
        return None
    if isinstance(field.kind, Scalar):
        return _texts(field.name) if field.kind.name == "string" else None
    parts = {part.name for part in fields(field.kind)}
    name = next((name for name in _NAMES if name in parts), None)
    return _structures(field.name, name, "topic_id" in parts)


def _texts(list_name: str) -> TopicsOf:
    def topics(request: Any, _: TopicName) -> tuple[str, ...]:
        names = getattr(request, list_name) or ()
        return _with_count(tuple(cut_text(name) for name in islice(names, MOST_TOPICS)), names)

    return topics


def _structures(list_name: str, name: str | None, has_id: bool) -> TopicsOf:
    def topics(request: Any, topic_name: TopicName) -> tuple[str, ...]:
        rows: Any = getattr(request, list_name) or ()
        if len(rows) == 1:  # as most; half the time of the general case
            return (_name_of(rows[0], name, has_id, topic_name),)
        found = tuple(_name_of(row, name, has_id, topic_name) for row in islice(rows, MOST_TOPICS))
        return _with_count(found, rows)

    return topics


def _name_of(row: Any, name: str | None, has_id: bool, topic_name: TopicName) -> str:
    text = getattr(row, name) if name is not None else None
    if not text and has_id:
        text = topic_name(row.topic_id) or uuid_to_text(row.topic_id)
    return cut_text(text or "")


def _with_count(found: tuple[str, ...], rows: Any) -> tuple[str, ...]:
    return found if len(rows) <= MOST_TOPICS else (*found, f"… {len(rows) - MOST_TOPICS} more")
