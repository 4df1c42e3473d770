"""The messages between a worker and the owner of the store, in msgpack.

```
message      array: [tag, fields in order]
request      Check, Range, Transact, Open, Revoke, Ping: one answer, or Failed, with the same id; no id comes twice
Range        answered by pages; `more`: another one follows
Watch        answered by Changes until EndWatch or Failed; `more`: the rest of this revision follows
SessionLost  sent when a session of this connection has ended, whoever ended it
```

Decoding is strict: other tags, types, and lengths of arrays are `MalformedMessageError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final, TypeVar

import msgspec

from odradek.broker.metadata.store.store import (
    KV,
    Batch,
    Change,
    Cmp,
    CompactedError,
    Delete,
    DeletePrefix,
    LeaseLostError,
    Op,
    Put,
    StoreAccessError,
    StoreError,
    StoreFailedError,
    StoreFullError,
    StoreUnreachableError,
    UnknownOutcomeError,
)

T = TypeVar("T")

PAGE_BYTES: Final = 1 << 20
"""Keys and values of one page come to about this size, so that others wait for a short time only."""

_KEY_BYTES: Final = 64
"""What a key or a deletion counts beside its name and value."""

_ERRORS: Final = {
    each.__name__: each
    for each in (
        CompactedError,
        LeaseLostError,
        StoreAccessError,
        StoreError,
        StoreFailedError,
        StoreFullError,
        StoreUnreachableError,
        UnknownOutcomeError,
        ValueError,
    )
}

Id = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Revision = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class MalformedMessageError(StoreError):
    """The bytes are no message of this protocol."""


class _Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    id: Id


class Check(_Message, frozen=True, tag=1):
    """Check the store; answered by `Done`."""

    prefix: bytes


class Range(_Message, frozen=True, tag=2):
    """Read the keys under a prefix; answered by pages."""

    prefix: bytes


class Transact(_Message, frozen=True, tag=3):
    """A transaction; answered by `Transacted`. Its operations need no order: each key is changed once."""

    when: tuple[Cmp, ...]
    puts: tuple[Put, ...]
    deletes: tuple[bytes, ...]
    prefixes: tuple[bytes, ...]

    @property
    def then(self) -> list[Op]:
        """The operations."""
        return [*self.puts, *map(Delete, self.deletes), *map(DeletePrefix, self.prefixes)]


class Open(_Message, frozen=True, tag=4):
    """Open a session; answered by `Opened`."""

    ttl: Seconds


class Revoke(_Message, frozen=True, tag=5):
    """End a lease of any worker; answered by `Done`."""

    lease: int


class Ping(_Message, frozen=True, tag=6):
    """A sign of life, which is answered by `Done`."""


class Watch(_Message, frozen=True, tag=7):
    """Send the changes after a revision."""

    prefix: bytes
    after: Revision


class RequestProgress(_Message, frozen=True, tag=8):
    """`id`: that of the watch."""

    revision: Revision


class EndWatch(_Message, frozen=True, tag=9):
    """`id`: that of the watch. Nothing answers, but changes may be on their way."""


class Done(_Message, frozen=True, tag=20):
    """Answers `Check`, `Revoke` and `Ping`."""


class Page(_Message, frozen=True, tag=21):
    """Keys of a range, at the same revision in all pages."""

    kvs: list[KV]
    revision: Revision
    more: bool


class Transacted(_Message, frozen=True, tag=22):
    """A `TxnResult`."""

    ok: bool
    revision: Revision


class Opened(_Message, frozen=True, tag=23):
    """A session exists."""

    lease: int


class Changes(_Message, frozen=True, tag=24):
    """A `Batch`, or a part of one."""

    revision: Revision
    changes: tuple[Change, ...]
    more: bool


class Failed(_Message, frozen=True, tag=25):
    """`kind`: the name of an error's class."""

    kind: str
    text: str

    def error(self) -> StoreError | ValueError:
        """Return the error; a `StoreError` for a kind that this version does not have."""
        return _ERRORS.get(self.kind, StoreError)(self.text)


class SessionLost(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=26):
    """A session of this connection has ended."""

    lease: int


Request = Check | Range | Transact | Open | Revoke | Ping | Watch | RequestProgress | EndWatch
Answer = Done | Page | Transacted | Opened | Changes | Failed | SessionLost

_ENCODER: Final = msgspec.msgpack.Encoder()
_REQUESTS: Final = msgspec.msgpack.Decoder(Request)
_ANSWERS: Final = msgspec.msgpack.Decoder(Answer)

encode: Final = _ENCODER.encode


def decode_request(frame: bytes | bytearray) -> Request:
    """Return what a worker has sent. Raises `MalformedMessageError`."""
    try:
        request: Request = _REQUESTS.decode(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessageError(f"no request: {error}") from None
    return request


def decode_answer(frame: bytes | bytearray) -> Answer:
    """Return what the server has sent. Raises `MalformedMessageError`."""
    try:
        answer: Answer = _ANSWERS.decode(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessageError(f"no answer: {error}") from None
    return answer


def transact(id_: int, when: Sequence[Cmp], then: Sequence[Op]) -> Transact:
    """Return the request of a transaction."""
    return Transact(
        id_,
        tuple(when),
        tuple(op for op in then if isinstance(op, Put)),
        tuple(op.key for op in then if isinstance(op, Delete)),
        tuple(op.prefix for op in then if isinstance(op, DeletePrefix)),
    )


def failed(id_: int, error: StoreError | ValueError) -> Failed:
    """Return the answer that carries `error`; a class without a name of its own becomes the nearest base class."""
    kind = next(base.__name__ for base in type(error).__mro__ if base.__name__ in _ERRORS)
    return Failed(id_, kind, str(error))


def pages(id_: int, kvs: Sequence[KV], revision: int) -> Iterator[Page]:
    """Yield the keys of a range in pages of about `PAGE_BYTES`; one page if there are none."""
    for part, more in _parts(kvs, map(_size, kvs)):
        yield Page(id_, list(part), revision, more)


def changes(id_: int, batch: Batch) -> Iterator[Changes]:
    """Yield a batch in parts of about `PAGE_BYTES`; one part if it only reports progress."""
    sizes = (_size(change.kv) if change.kv is not None else _KEY_BYTES for change in batch.changes)
    for part, more in _parts(batch.changes, sizes):
        yield Changes(id_, batch.revision, tuple(part), more)


def _size(kv: KV) -> int:
    return len(kv.key) + len(kv.value) + _KEY_BYTES


def _parts(entries: Sequence[T], sizes: Iterable[int]) -> Iterator[tuple[Sequence[T], bool]]:
    """Yield slices, and whether others follow."""
    start = total = 0
    for position, size in enumerate(sizes):
        if total and total + size > PAGE_BYTES:
            yield entries[start:position], True
            start, total = position, 0
        total += size
    yield entries[start:], False
