"""The descriptor that one row of the tables is made of, and the base of the classes whose bodies are the tables.

A row declares everything about a property once; parsing, error texts, topic overrides, DescribeConfigs,
`docs/configuration.md` and `config/server.properties` are read off it:

```
log_retention_ms = Property("log.retention.ms", LONG, None, fallback=("log.retention.minutes", 60_000, …),
                            topic=TopicScope("retention.ms", at_least(-1)), dynamic=True, doc="…")
```

The attribute is the name with underscores. On an instance it is the effective value, a plain attribute; on the class it
is the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar, overload

from odradek.broker.config.bounds import Bound
from odradek.broker.config.types import Type, TypeCode

T = TypeVar("T")


NOT_YET = "nothing acts on it yet."
"""The difference of a property whose feature is not built: setting it is allowed, and warned of."""


class Fallback(NamedTuple):
    """Where an unset property's value comes from: another property, in units `factor` times as large."""

    name: str
    factor: int = 1


class TopicScope(NamedTuple):
    """The name under which topics override a property, where the bound there is another than broker-wide."""

    name: str | None
    bound: Bound | None


class Property(Generic[T]):
    """One broker-wide property.

    `default` None means unset; then the first of `fallback` that is set counts, else the last one's default.
    `topic` is the name under which a topic overrides it, within `topic_bound`.
    `dynamic`: it may be changed while the broker runs. `own`: the name is not Kafka's. `differs`: where a default or
    bound is not Kafka's, the reason, for the documentation.
    """

    def __init__(
        self,
        name: str,
        kind: Type[T],
        default: T | None,
        bound: Bound | None = None,
        *,
        doc: str,
        fallback: tuple[Fallback, ...] = (),
        topic: str | TopicScope | None = None,
        dynamic: bool = False,
        own: bool = False,
        differs: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.bound = bound
        self.doc = doc
        self.fallback = fallback
        scope = topic if isinstance(topic, TopicScope) else TopicScope(topic, bound)
        self.topic = scope.name
        self.topic_bound = scope.bound
        self.dynamic = dynamic
        self.own = own
        self.differs = differs

    def __set_name__(self, owner: type, attribute: str) -> None:
        if attribute != attribute_name(self.name):
            raise TypeError(f"{owner.__name__}.{attribute} declares the property {self.name}")

    @overload
    def __get__(self, instance: None, owner: type) -> Property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Property[T] | T:
        # Not reached on a loaded instance: its own dictionary holds the value, and no __set__ here takes precedence.
        if instance is None:
            return self
        raise AttributeError(f"{self.name} is not loaded")

    @property
    def sensitive(self) -> bool:
        """Whether the value must not be shown; Kafka decides by type alone."""
        return self.kind.code is TypeCode.PASSWORD

    @property
    def is_pending(self) -> bool:
        """Whether what it is about is not built yet."""
        return self.differs.startswith(NOT_YET)

    @property
    def documentation(self) -> str:
        """What the property means, and where that is not what Kafka does."""
        return f"{self.doc} Differs from Kafka: {self.differs}" if self.differs else self.doc

    def parse(self, text: str) -> T:
        """Raises `InvalidValueError`."""
        return parse_within(self.kind, self.bound, text)


def parse_within(kind: Type[T], bound: Bound | None, text: str) -> T:
    """Return the value of `text`. Raises `InvalidValueError` if it is not of its type or breaks its bound."""
    value = kind.parse(text)
    if bound is not None:
        bound(value)
    return value


def attribute_name(name: str) -> str:
    return name.replace(".", "_")


class Table:
    """A class whose body holds properties; a table may be put together from several by inheritance."""

    @classmethod
    def properties(cls) -> dict[str, Property[Any]]:
        """Return every row by its dotted name, in the order of the class bodies."""
        return {row.name: row for row in _rows(cls)}


def _rows(cls: type) -> Iterator[Property[Any]]:
    for base in cls.__mro__:
        yield from (row for row in vars(base).values() if isinstance(row, Property))
