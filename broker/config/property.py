"""The rows of the tables: one property each, as a descriptor; and the base class of the tables.

A row declares everything about a property once. Parsing, error messages, topic overrides, DescribeConfigs,
`docs/configuration.md` and `config/server.properties` are derived from it:

```
max_connections = Property("max.connections", INT, 0x7FFF_FFFF, at_least(0), dynamic=True, doc="…")
log_segment_bytes = TopicDefault("log.segment.bytes", INT, LogConfig.segment_bytes, at_least(14), doc="…")
```

The attribute is the name with underscores. On an instance it is the effective value, a plain attribute; on the class it
is the row. The second row takes its default from the field of `LogConfig` and its topic-level name (`segment.bytes`)
from the field's name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Generic, NamedTuple, TypeVar, overload

import msgspec

from odradek.broker.config.bounds import Bound
from odradek.broker.config.types import Type, TypeCode

T = TypeVar("T")


class Fallback(NamedTuple):
    """The source of an unset property's value: another property, in units `factor` times as large."""

    name: str
    factor: int = 1


class Property(Generic[T]):
    """One broker-wide property.

    `default` None means unset; then the first of `fallback` that is set counts, else the last one's default.
    `dynamic`: it may be changed while the broker runs. `own`: the name is not Kafka's. `differs`: where a default or
    bound is not Kafka's, the reason, for the documentation.
    """

    topic: str | None = None
    """The name under which a topic overrides it, within `topic_bound`."""
    topic_bound: Bound | None = None

    def __init__(
        self,
        name: str,
        kind: Type[T],
        default: T | None,
        bound: Bound | None = None,
        *,
        doc: str,
        fallback: tuple[Fallback, ...] = (),
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
        """True if the value must not be shown; as in Kafka, the type decides."""
        return self.kind.code is TypeCode.PASSWORD

    @property
    def documentation(self) -> str:
        """The description of the property, with its difference from Kafka."""
        return f"{self.doc} Differs from Kafka: {self.differs}" if self.differs else self.doc

    def parse(self, text: str) -> T:
        """Raises `InvalidValueError`."""
        return parse_within(self.kind, self.bound, text)


class SecuredProperty(Property[T]):
    """A property of security, which only its file sets. It may differ for each listener (`listener_config`).

    `dynamic` is Kafka's value in DescribeConfigs. At run time it can only be set to the value that it has, which loads
    certificates again if it `reloads`.
    """

    def __init__(
        self,
        name: str,
        kind: Type[T],
        default: T | None,
        bound: Bound | None = None,
        *,
        doc: str,
        dynamic: bool = False,
        own: bool = False,
        reloads: bool = False,
        differs: str = "",
    ) -> None:
        super().__init__(name, kind, default, bound, doc=doc, dynamic=dynamic, own=own, differs=differs)
        self.reloads = reloads


class LogProperty(Property[T]):
    """A property that sets a field of `LogConfig`.

    `field` is written as `LogConfig.segment_bytes`: mypy checks that the field and `kind` have one type, and every use
    of the field is found from its definition. At run time it is the descriptor of the field, which has its name; the
    default is that of the field, unless there are fallbacks. A LIST sets a field that is any collection.
    """

    def __init__(
        self,
        name: str,
        kind: Type[T],
        field: T | Collection[Any],
        bound: Bound | None = None,
        *,
        doc: str,
        fallback: tuple[Fallback, ...] = (),
        dynamic: bool = False,
        own: bool = False,
        differs: str = "",
    ) -> None:
        descriptor: Any = field
        self.log_field: str = descriptor.__name__
        default = None if fallback else _default(descriptor.__objclass__, self.log_field)
        super().__init__(
            name, kind, default, bound, doc=doc, fallback=fallback, dynamic=dynamic, own=own, differs=differs
        )


class TopicDefault(LogProperty[T]):
    """The broker-wide default of a topic property, which has the name of the field, within `topic_bound`.

    All are dynamic.
    """

    def __init__(
        self,
        name: str,
        kind: Type[T],
        field: T | Collection[Any],
        bound: Bound | None = None,
        *,
        doc: str,
        fallback: tuple[Fallback, ...] = (),
        topic_bound: Bound | None = None,
        differs: str = "",
    ) -> None:
        super().__init__(name, kind, field, bound, doc=doc, fallback=fallback, dynamic=True, differs=differs)
        self.topic = self.log_field.replace("_", ".")
        self.topic_bound = topic_bound or bound


def _default(struct: type[msgspec.Struct], name: str) -> Any:
    default = next(field.default for field in msgspec.structs.fields(struct) if field.name == name)
    return sorted(default) if isinstance(default, frozenset) else default


def parse_within(kind: Type[T], bound: Bound | None, text: str) -> T:
    """Parse `text`. Raises `InvalidValueError` if the value does not have the type or is out of bounds."""
    value = kind.parse(text)
    if bound is not None:
        bound(value)
    return value


def attribute_name(name: str) -> str:
    return name.replace(".", "_")


class Table:
    """A class whose body contains properties. A table may inherit from several others."""

    @classmethod
    def properties(cls) -> dict[str, Property[Any]]:
        """Return every row by its dotted name, in the order of the class bodies."""
        return {row.name: row for row in _rows(cls)}


def _rows(cls: type) -> Iterator[Property[Any]]:
    for base in cls.__mro__:
        yield from (row for row in vars(base).values() if isinstance(row, Property))
