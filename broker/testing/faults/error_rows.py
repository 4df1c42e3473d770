"""Answers of which some rows fail, made from the schemas of the messages.

| the API | its request | its answer |
|---|---|---|
| only reads | executed as it is | the rows of the failed topics and partitions are replaced (`replaced`) |
| changes something | split; the rest is executed (`split`) | gets the failed rows in addition (`with_rows`) |

A failed row has its names and numbers, the error, and what Kafka's own error rows have in the other fields. Nothing is
changed in place: handlers may keep parts of their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from odradek.broker.testing.faults.topic_rows import ERRORS, IDS, NUMBERS, NameOfId, Topics
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message, Scalar, Structure, fields

DETAIL: Final = "made to fail by a test"
"""The message of an injected error, where an answer has room for one."""

CodeOf = Callable[[str, int | None], ErrorCode | None]
"""Returns the error of a partition, or of a topic as a whole (None), or None if it does not fail."""

_KEYS: Final = frozenset({*IDS, *NUMBERS, "topic_id", "resource_type", "transactional_id", "producer_id", "group_id"})
# Kafka's values in the rows of failed partitions, where they are not the defaults of the messages.
_WITH_ERROR: Final[dict[str, Any]] = {
    "base_offset": -1,
    "committed_offset": -1,
    "committed_leader_epoch": -1,
    "high_watermark": -1,
    "leader_epoch": -1,
    "leader_id": -1,
    "low_watermark": -1,
    "records": b"",
}
_S = TypeVar("_S", bound=Structure)


class Failed(NamedTuple):
    """A failed topic or partition (None: the topic as a whole) of a request, with the structures that name it."""

    parent: Any
    topic: Any
    partition: int | None
    code: ErrorCode


def replaced(
    answer: Message, version: int, topics: Topics, name_of: NameOfId, code_of: CodeOf
) -> tuple[Message, list[tuple[str, int | None]]]:
    """Return an answer whose failed rows are replaced, and which those are."""
    done: list[tuple[str, int | None]] = []

    def topic_row(row: Any) -> Any:
        topic = topics.topic_of(row, name_of)
        if topic is None:
            return row
        code = code_of(topic, None) if topics.error is not None else None
        if code is not None:
            done.append((topic, None))
            return _failed_row(type(row), version, row, code)
        if topics.partitions is None or topics.partition_error is None:
            return row
        partitions = [partition_row(topic, each) for each in getattr(row, topics.partitions) or ()]
        return msgspec.structs.replace(row, **{topics.partitions: partitions})

    def partition_row(topic: str, row: Any) -> Any:
        index = topics.number_of(row)
        code = code_of(topic, index)
        if code is None:
            return row
        done.append((topic, index))
        return _failed_row(type(row), version, row, code, keeps_numbers=True)

    def of_parent(parent: Any) -> Any:
        rows = getattr(parent, topics.array)
        return (
            parent if rows is None else msgspec.structs.replace(parent, **{topics.array: [topic_row(r) for r in rows]})
        )

    if topics.parent is None:
        return of_parent(answer), done
    parents = [of_parent(each) for each in topics.parents(answer)]
    return msgspec.structs.replace(answer, **{topics.parent: parents}), done


def split(request: Message, topics: Topics, name_of: NameOfId, code_of: CodeOf) -> tuple[Message | None, list[Failed]]:
    """Return a request for the topics and partitions that do not fail, None if none is left, and the others."""
    failed: list[Failed] = []
    if topics.parent is None:
        rest = _rest_of(request, None, topics, name_of, code_of, failed)
        return (request if not failed else rest), failed
    parents = []
    for parent in topics.parents(request):
        before = len(failed)
        rest = _rest_of(parent, parent, topics, name_of, code_of, failed)
        if len(failed) == before:
            parents.append(parent)
        elif rest is not None:
            parents.append(rest)
    return (msgspec.structs.replace(request, **{topics.parent: parents}) if parents else None), failed


def _rest_of(
    owner: Any, parent: Any, topics: Topics, name_of: NameOfId, code_of: CodeOf, failed: list[Failed]
) -> Any | None:
    """Return the structure that has an array of topics without those that fail; None if none is left."""
    kept = []
    for entry in getattr(owner, topics.array) or ():
        topic = topics.topic_of(entry, name_of)
        if topics.partitions is None or topic is None:
            code = None if topic is None else code_of(topic, None)
            if code is None:
                kept.append(entry)
            else:
                failed.append(Failed(parent, entry, None, code))
            continue
        partitions = []
        for partition in getattr(entry, topics.partitions) or ():
            index = topics.number_of(partition)
            code = code_of(topic, index)
            if code is None:
                partitions.append(partition)
            else:
                failed.append(Failed(parent, entry, index, code))
        if partitions:
            kept.append(msgspec.structs.replace(entry, **{topics.partitions: partitions}))
    return msgspec.structs.replace(owner, **{topics.array: kept}) if kept else None


def with_rows(answer: Message, version: int, topics: Topics, failed: list[Failed]) -> Message:
    """Return an answer that has error rows of the failed topics and partitions in addition."""
    if topics.parent is None:
        return _with_topics(answer, version, topics, failed)
    kind = _kind(type(answer), topics.parent)
    parents = list(topics.parents(answer))
    for each in failed:
        parent = _named_alike(kind, version, each.parent)
        place = _place_of(parent, parents, version)
        if place == len(parents):
            parents.append(parent)
        parents[place] = _with_topics(parents[place], version, topics, [each])
    return msgspec.structs.replace(answer, **{topics.parent: parents})


def _with_topics(owner: _S, version: int, topics: Topics, failed: list[Failed]) -> _S:
    kind = _kind(type(owner), topics.array)
    rows = list(getattr(owner, topics.array) or ())
    for each in failed:
        row = _named_alike(kind, version, each.topic)
        if topics.partitions is None or each.partition is None:
            rows.append(_failed_row(kind, version, row, each.code))
            continue
        place = _place_of(row, rows, version)
        if place == len(rows):
            rows.append(row)
        assert topics.number is not None
        part = _kind(kind, topics.partitions)
        failure = _failed_row(part, version, part(**{topics.number: each.partition}), each.code)
        partitions = [*getattr(rows[place], topics.partitions), failure]
        rows[place] = msgspec.structs.replace(rows[place], **{topics.partitions: partitions})
    return msgspec.structs.replace(owner, **{topics.array: rows})


def carries(answer: Message, version: int, code: ErrorCode) -> bool:
    """Whether an answer has the error, at its top or in a row, in this version."""
    return any(getattr(owner, name) == code for owner, name in _errors(answer, version))


def with_error_everywhere(answer: _S, version: int, code: ErrorCode) -> _S:
    """Return an answer all of whose error codes are `code`, and which has nothing that the version cannot carry."""
    changed: dict[str, Any] = {}
    empty = type(answer)()
    for field in fields(type(answer)):
        value = getattr(answer, field.name)
        if not field.exists_in(version):
            changed[field.name] = getattr(empty, field.name)
        elif field.name in ERRORS:
            changed[field.name] = code
        elif isinstance(field.kind, Scalar) or value is None:
            continue
        elif field.is_array:
            changed[field.name] = [with_error_everywhere(each, version, code) for each in value]
        else:
            changed[field.name] = with_error_everywhere(value, version, code)
    return msgspec.structs.replace(answer, **changed)


def _errors(owner: Structure, version: int) -> Iterator[tuple[Structure, str]]:
    """Each error code of a structure and of its parts, as the structure that has it and the name of the field."""
    for field in fields(type(owner)):
        if not field.exists_in(version):
            continue
        value = getattr(owner, field.name)
        if field.name in ERRORS:
            yield owner, field.name
        elif not isinstance(field.kind, Scalar) and value is not None:
            for each in value if field.is_array else [value]:
                yield from _errors(each, version)


def _failed_row(cls: type[_S], version: int, row: Structure, code: ErrorCode, *, keeps_numbers: bool = False) -> _S:
    """A row with the error `code` and the names of `row`; with its arrays of numbers, too, such as its replicas."""
    values: dict[str, Any] = {}
    for field in fields(cls):
        name = field.name
        if not field.exists_in(version):
            continue
        if name in _KEYS or (keeps_numbers and field.is_array and isinstance(field.kind, Scalar)):
            values[name] = getattr(row, name)
        elif name in ERRORS:
            values[name] = code
        elif name == "error_message":
            values[name] = DETAIL
        elif name in _WITH_ERROR:
            values[name] = _WITH_ERROR[name]
    return cls(**values)


def _named_alike(kind: type[Structure], version: int, source: Any) -> Structure:
    """An empty structure of an answer with the names in the structure of a request, which may be a string."""
    wanted = [field.name for field in fields(kind) if field.name in _KEYS and field.exists_in(version)]
    if isinstance(source, str):
        return kind(**{name: source for name in wanted if name in IDS})
    has = [name for name in (*IDS, *_KEYS) if hasattr(source, name)]
    names = {name: name if name in has else next(iter(has)) for name in wanted if name in has or name in IDS}
    return kind(**{name: getattr(source, source_name) for name, source_name in names.items()})


def _place_of(row: Structure, rows: list[Any], version: int) -> int:
    """The place of the row with the same names, or the end of the rows."""
    keys = [field.name for field in fields(type(row)) if field.name in _KEYS and field.exists_in(version)]
    return next(
        (i for i, known in enumerate(rows) if all(getattr(known, k) == getattr(row, k) for k in keys)), len(rows)
    )


def _kind(cls: type[Structure], array: str) -> Any:
    return next(field.kind for field in fields(cls) if field.name == array)
