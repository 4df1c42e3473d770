"""The schema of messages: annotations on the fields of a class declare their encoding in all versions.

```python
@message(key=1, versions=(4, 18), flexible_since=12)
class FetchRequest(Message):
    max_wait_ms: i32 = 0
    max_bytes: Annotated[i32, since(3)] = 0x7FFFFFFF
    cluster_id: Annotated[string | None, since(12), tag(0)] = None
    topics: list[FetchTopic] = []
```

The annotation of a field is its Python type (`int`, `str | None`, `list[FetchTopic]`) with markers for the encoding:

| annotation | meaning |
|---|---|
| `i8 i16 i32 i64 u16 u32 f64 boolean` | big-endian, fixed width |
| `string`, `binary` | text and bytes after an i16 or i32 length, in flexible versions after a compact one |
| `uuid` | 16 bytes, as `bytes` |
| `record_batches` | record batches, as a view of the input buffer |
| `list[T]`, a class | array of T, nested structure |
| `since(n)`, `until(n)` | the versions that carry the field, both inclusive |
| `... | None`, `nullable(since, until)` | may be null: in all versions that carry the field, or in those named |
| `tag(n)` | in flexible versions an optional tagged field (KIP-482) |
| `ignorable` | a version without the field drops its value; without this marker a value raises an error there |
| `may_be_encoded` | elements of the array of structures may be `EncodedPart`s, in a message that is sent |

`layout(cls, version)` resolves a class for one version. Layouts are values: versions with the same encoding have equal
layouts, so that `odradek.protocol.codec` compiles each only once. This module reads annotations at run time, so message
modules must not use `from __future__ import annotations`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

ZERO_UUID = bytes(16)


class Scalar(NamedTuple):
    """A type without parts. `code` is its `struct` format if its width is fixed, otherwise empty."""

    name: str
    code: str = ""


# Markers of two kinds must not be equal, as named tuples would be: Python 3.11.2 keeps one object for equal annotations
# and confused `Annotated[i16, since(1), until(2)]` in one module with `Annotated[i16, since(1), tag(2)]` in another.
@dataclass(frozen=True, slots=True)
class Since:
    """Marker: the first version, inclusive."""

    version: int


@dataclass(frozen=True, slots=True)
class Until:
    """Marker: the last version, inclusive."""

    version: int


@dataclass(frozen=True, slots=True)
class Nullable:
    """Marker: the versions that allow null, both inclusive."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Tag:
    """Marker: the number of a tagged field (KIP-482)."""

    number: int


@dataclass(frozen=True, slots=True)
class _Ignorable:
    pass


@dataclass(frozen=True, slots=True)
class _MayBeEncoded:
    pass


i8 = Annotated[int, Scalar("int8", "b")]
i16 = Annotated[int, Scalar("int16", "h")]
i32 = Annotated[int, Scalar("int32", "i")]
i64 = Annotated[int, Scalar("int64", "q")]
u16 = Annotated[int, Scalar("uint16", "H")]
u32 = Annotated[int, Scalar("uint32", "I")]
f64 = Annotated[float, Scalar("float64", "d")]
boolean = Annotated[bool, Scalar("bool", "?")]
string = Annotated[str, Scalar("string")]
binary = Annotated[bytes, Scalar("bytes")]
uuid = Annotated[bytes, Scalar("uuid", "16s")]
# Decoded to a view of the input; to encode, any bytes-like object or a slice of a file (see `odradek.protocol.codec`).
record_batches = Annotated[Any, Scalar("records")]

ignorable = _Ignorable()
may_be_encoded = _MayBeEncoded()
LAST_VERSION = 32767


def since(version: int) -> Since:
    """The field exists from `version` on, inclusive."""
    return Since(version)


def until(version: int) -> Until:
    """The field exists up to `version`, inclusive."""
    return Until(version)


def nullable(first: int, last: int = LAST_VERSION) -> Nullable:
    """The field may be null in versions `first` to `last`, both inclusive, and in no other."""
    return Nullable(first, last)


def tag(number: int) -> Tag:
    """The field is the optional tagged field `number` of its structure."""
    return Tag(number)


class Structure(msgspec.Struct, gc=False):
    """A part of a message: fields in the order of the encoding, each with Kafka's default.

    Messages are trees without cycles, so the garbage collector does not track them (`gc=False`). They are created a
    fifth faster, and are smaller.
    """


class Message(Structure):
    """A whole request, response or stored record. Decorated with `@message`."""


class MessageSpec(NamedTuple):
    """The declaration of a message: API key, versions.

    Versions are inclusive; `flexible_since` is None for never.
    """

    key: int | None
    first_version: int
    last_version: int
    flexible_since: int | None

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since


_M = TypeVar("_M", bound=type[Message])
_SPECS: dict[type[Message], MessageSpec] = {}


def message(
    *, key: int | None = None, versions: tuple[int, int], flexible_since: int | None = None
) -> Callable[[_M], _M]:
    """Declare the API key (None for a stored record), the first and last version, and the first flexible one."""

    def register(cls: _M) -> _M:
        _SPECS[cls] = MessageSpec(key, versions[0], versions[1], flexible_since)
        return cls

    return register


def spec(cls: type[Message]) -> MessageSpec:
    """Return the declaration of a message class."""
    return _SPECS[cls]


class Field(NamedTuple):
    """A field of a structure as the class declares it, for all versions. `kind` is a Scalar or a Structure class."""

    name: str
    kind: Any
    is_array: bool
    first_version: int
    last_version: int
    nullable_first: int
    nullable_last: int
    tag: int | None
    is_ignorable: bool
    may_be_encoded: bool
    default: Any  # a value; for a structure its class, of which a new instance is created

    def exists_in(self, version: int) -> bool:
        return self.first_version <= version <= self.last_version

    def is_nullable_in(self, version: int) -> bool:
        return self.nullable_first <= version <= self.nullable_last


class LayoutField(NamedTuple):
    """A field in one version. `part` is the nested layout if `kind` is a Structure class."""

    name: str
    kind: Any
    part: "Layout | None"
    is_array: bool
    is_nullable: bool
    default: Any
    may_be_encoded: bool = False


class Layout(NamedTuple):
    """A structure in one version: all that an encoder and a decoder depend on.

    `fields` are in the order of the encoding, `tagged` by tag number. `absent` are fields that this version does not
    have; they must have their defaults. `flexible` means compact lengths and a tag section at the end (KIP-482).
    """

    cls: type[Structure]
    flexible: bool
    fields: tuple[LayoutField, ...]
    tagged: tuple[tuple[int, LayoutField], ...]
    absent: tuple[LayoutField, ...]


class EncodedPart(NamedTuple):
    """An element of an array that `may_be_encoded`, in the bytes of one version of its message.

    It is encoded once, for all messages of that version that have it (`odradek.protocol.codec.PartEncoder`). `errors`
    are the error codes in it, each with the number of its occurrences.
    """

    content: bytes
    errors: tuple[tuple[int, int], ...]
    layout: Layout


def _unwrap(annotation: Any) -> tuple[Any, list[Any], bool]:
    """Return the bare type of an annotation, all its markers, and whether None is allowed."""
    markers: list[Any] = []
    optional = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            bare, *extra = get_args(annotation)
            markers += extra
            annotation = bare
        elif origin in (Union, UnionType):
            annotation = next(a for a in get_args(annotation) if a is not type(None))
            optional = True
        else:
            return annotation, markers, optional


@cache
def fields(cls: type[Structure]) -> tuple[Field, ...]:
    """Return the declared fields of a structure, in the order of the encoding."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(
        _field(name, hints[name], default, factory)
        for name, default, factory in ((f.name, f.default, f.default_factory) for f in msgspec.structs.fields(cls))
    )


def _field(name: str, annotation: Any, default: Any, factory: Any) -> Field:
    bare, markers, optional = _unwrap(annotation)
    is_array = get_origin(bare) is list
    if is_array:
        bare, inner, _ = _unwrap(get_args(bare)[0])
        markers += [m for m in inner if isinstance(m, Scalar)]
    scalar = next((m for m in markers if isinstance(m, Scalar)), None)
    first = next((m.version for m in markers if isinstance(m, Since)), 0)
    last = next((m.version for m in markers if isinstance(m, Until)), LAST_VERSION)
    null = next((m for m in markers if isinstance(m, Nullable)), Nullable(first, last) if optional else None)
    if default is msgspec.NODEFAULT:
        default = [] if factory is list else factory
    return Field(
        name=name,
        kind=scalar or bare,
        is_array=is_array,
        first_version=first,
        last_version=last,
        nullable_first=null.first if null else LAST_VERSION + 1,
        nullable_last=null.last if null else LAST_VERSION + 1,
        tag=next((m.number for m in markers if isinstance(m, Tag)), None),
        is_ignorable=any(isinstance(m, _Ignorable) for m in markers),
        may_be_encoded=any(isinstance(m, _MayBeEncoded) for m in markers),
        default=default,
    )


@cache
def layout(cls: type[Structure], version: int, flexible: bool | None = None) -> Layout:
    """Return the layout of `cls` in `version`.

    Pass `flexible` for structures only; messages declare it.
    """
    if flexible is None:
        if not issubclass(cls, Message):
            raise TypeError(f"{cls.__name__} is a part of a message: pass `flexible`")
        flexible = spec(cls).is_flexible(version)
    plain: list[LayoutField] = []
    tagged: list[tuple[int, LayoutField]] = []
    absent: list[LayoutField] = []
    for field in fields(cls):
        part = None
        if not isinstance(field.kind, Scalar) and field.exists_in(version):
            part = layout(field.kind, version, flexible)
        resolved = LayoutField(
            field.name,
            field.kind,
            part,
            field.is_array,
            field.is_nullable_in(version),
            _Default.freeze(field.default),
            field.may_be_encoded,
        )
        if not field.exists_in(version):
            if not field.is_ignorable:
                absent.append(resolved)
        elif field.tag is not None:
            tagged.append((field.tag, resolved))
        else:
            plain.append(resolved)
    return Layout(cls, flexible, tuple(plain), tuple(sorted(tagged)), tuple(absent))


class _Default:
    """Layouts contain defaults and are dictionary keys, so an empty list is stored as an empty tuple."""

    @staticmethod
    def freeze(value: Any) -> Any:
        return () if isinstance(value, list) else value
