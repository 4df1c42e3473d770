"""The places of topics and partitions in a message, found in its schema, so that no API needs code of its own.

| message | topics | partitions |
|---|---|---|
| ProduceRequest | `topic_data`: `name`, or from version 13 on `topic_id` | `partition_data`: `index` |
| FetchResponse | `responses` | `partitions`: `partition_index`, `error_code` |
| DeleteTopicsRequest up to version 5 | `topic_names`: strings | none |
| AddPartitionsToTxnRequest from version 4 on | `transactions` (a parent): `topics` | `partitions`: numbers |
| DescribeConfigsResponse | `results` whose `resource_type` is that of topics | none |

A structure is a topic if it is an element of an array and has a name or id of a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from odradek.protocol.schema import ZERO_UUID, Field, Message, Scalar, Structure, fields

NameOfId = Callable[[bytes], str | None]
"""Returns the name of the topic with an id, None if there is none."""

IDS: Final = ("name", "topic", "topic_name", "resource_name")
NUMBERS: Final = ("partition_index", "index", "partition", "partition_id")
ERRORS: Final = ("error_code", "partition_error_code")
_TOPIC_RESOURCE: Final = 2


class Named(NamedTuple):
    """A partition that a message names, or a topic: then `partition` is None. The topic of an unknown id is ""."""

    topic: str
    partition: int | None


class Topics(NamedTuple):
    """The topics of a message in one version: names of fields, None for those that it does not have.

    `parent` is the array of structures that have the topics. `name` is None if topics are strings or have only ids,
    `number` if partitions are numbers. `error` and `partition_error` are the codes in the rows of an answer. An empty
    array of a request means all topics if it `may_mean_all`: Metadata 0 and DescribeTopicPartitions have no null.
    """

    parent: str | None
    array: str
    name: str | None = None
    has_ids: bool = False
    are_resources: bool = False
    may_mean_all: bool = False
    error: str | None = None
    partitions: str | None = None
    number: str | None = None
    partition_error: str | None = None

    def parents(self, message: Any) -> list[Any]:
        """The structures with the arrays of topics: the message itself, unless it has parents."""
        return [message] if self.parent is None else getattr(message, self.parent) or []

    def are_all(self, message: Any) -> bool:
        """Whether a request names no topics because it means all of them."""
        arrays = [getattr(parent, self.array) for parent in self.parents(message)]
        return any(array is None or (self.may_mean_all and not array) for array in arrays)

    def topic_of(self, entry: Any, name_of: NameOfId) -> str | None:
        """The name of a topic, "" if its id is unknown; None if the entry is no topic."""
        if isinstance(entry, str):
            return entry
        if self.are_resources and entry.resource_type != _TOPIC_RESOURCE:
            return None
        if self.has_ids and entry.topic_id != ZERO_UUID:
            return name_of(entry.topic_id) or ""
        return "" if self.name is None else getattr(entry, self.name) or ""

    def number_of(self, partition: Any) -> int:
        number: int = partition if self.number is None else getattr(partition, self.number)
        return number

    def named(self, message: Any, name_of: NameOfId) -> Iterator[Named]:
        """The partitions that a message names; of topics without partitions the topics."""
        for parent in self.parents(message):
            for entry in getattr(parent, self.array) or ():
                topic = self.topic_of(entry, name_of)
                if topic is None:
                    continue
                if self.partitions is None:
                    yield Named(topic, None)
                else:
                    for partition in getattr(entry, self.partitions) or ():
                        yield Named(topic, self.number_of(partition))


@cache
def topics_of(cls: type[Message], version: int) -> Topics | None:
    """Return where a message has its topics, None if it has none in this version."""
    for field in _arrays(cls, version):
        found = _as_topics(None, field, version)
        if found is not None:
            return found
        if not isinstance(field.kind, Scalar):
            for inner in _arrays(field.kind, version):
                found = _as_topics(field.name, inner, version)
                if found is not None:
                    return found
    return None


def error_field(cls: type[Structure], version: int) -> str | None:
    """The name of the error code in a structure, None if it has none."""
    return _first(cls, version, ERRORS)


def _arrays(cls: type[Structure], version: int) -> list[Field]:
    return [field for field in fields(cls) if field.is_array and field.exists_in(version)]


def _as_topics(parent: str | None, field: Field, version: int) -> Topics | None:
    if isinstance(field.kind, Scalar):
        if field.name != "topic_names":
            return None
        return Topics(parent, field.name)
    cls = field.kind
    names = {each.name for each in fields(cls)}
    are_resources = {"resource_type", "resource_name"} <= names and "Config" in cls.__name__
    if not (
        are_resources or names & {"topic", "topic_name", "topic_id"} or ("name" in names and "Topic" in cls.__name__)
    ):
        return None
    topics = Topics(
        parent,
        field.name,
        name=_first(cls, version, IDS),
        has_ids=_first(cls, version, ("topic_id",)) is not None,
        are_resources=are_resources,
        error=error_field(cls, version),
    )
    partitions = next((each for each in _arrays(cls, version) if "partition" in each.name), None)
    if partitions is None:
        return topics._replace(may_mean_all=not field.is_nullable_in(version))
    if isinstance(partitions.kind, Scalar):
        return topics._replace(partitions=partitions.name)
    return topics._replace(
        partitions=partitions.name,
        number=_first(partitions.kind, version, NUMBERS),
        partition_error=error_field(partitions.kind, version),
    )


def _first(cls: type[Structure], version: int, names: tuple[str, ...]) -> str | None:
    known = {field.name for field in fields(cls) if field.exists_in(version)}
    return next((name for name in names if name in known), None)
