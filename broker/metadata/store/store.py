"""The metadata store seam: a small, strictly serializable key-value store with history, as etcd is one.

```
revision          one number for the whole store; every transaction that changes something makes it one larger
KV                a key with its value, the revisions that created and last changed it, its lease (0: none)
txn(when, then)   if every comparison holds, apply every operation at one revision; else nothing
watch(prefix, n)  every change after revision n, whole revisions, in order, without gaps
session(ttl)      a lease: keys put under it vanish when it is revoked or its owner is gone for `ttl` seconds
```

Rule for every transaction that changes something: it compares the modification (or the absence) of at least one key
that it overwrites. Then a late or repeated delivery cannot apply twice, and after `UnknownOutcomeError` the identical
transaction is simply sent again until the answer is definite.

Back ends: `memory` (tests, simulation), `sqlite` (one node). All pass one conformance suite.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

MAX_OPERATIONS = 128
"""The most comparisons, and the most operations, of one transaction: etcd's default limit (`--max-txn-ops`)."""


class KV(NamedTuple):
    """One key as it is at some revision."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    lease: int = 0


class Cmp(NamedTuple):
    """Holds if the key's revision is as seen; a key that does not exist has revision 0. None: do not look."""

    key: bytes
    create_revision: int | None = None
    mod_revision: int | None = None


class Put(NamedTuple):
    """Create or replace a key, under a session's lease or (0) under none."""

    key: bytes
    value: bytes
    lease: int = 0


class Delete(NamedTuple):
    """Delete one key; nothing happens if it does not exist."""

    key: bytes


class DeletePrefix(NamedTuple):
    """Delete every key that starts with `prefix`."""

    prefix: bytes


Op = Put | Delete | DeletePrefix


class Change(NamedTuple):
    """What a transaction did to one key: `kv` is its new state, or None if it is gone."""

    key: bytes
    kv: KV | None


class Batch(NamedTuple):
    """All changes of one revision, sorted by key: of a watch, those under its prefix, which may be none."""

    revision: int
    changes: tuple[Change, ...]


class TxnResult(NamedTuple):
    """Whether the comparisons held; and the revision of the change, or of the store if nothing changed."""

    ok: bool
    revision: int


class StoreError(Exception):
    """The store cannot do what was asked."""


class UnknownOutcomeError(StoreError):
    """The transaction may or may not have been applied: send the identical one again."""


class CompactedError(StoreError):
    """The changes asked for are no longer kept: load with `range`, and watch from its revision."""


class LeaseLostError(StoreError):
    """The lease that a key should be put under is gone."""


class StoreFailedError(StoreError):
    """The store broke, for instance because its disk did; every call from now on ends so."""


class Session(Protocol):
    """A lease that is kept alive until it is revoked or lost."""

    lease: int
    lost: asyncio.Event

    def deadline(self) -> float:
        """Return until when, on the loop's clock, nobody else can have seen this session's keys vanish."""
        ...

    async def revoke(self) -> None:
        """Delete the session's keys now. Harmless when it is already lost."""
        ...


class Watch(Protocol):
    """The changes under a prefix. Iterate it; `close` ends the iteration."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...
    async def __anext__(self) -> Batch:
        """Raises `CompactedError`, `StoreFailedError`."""
        ...

    def close(self) -> None: ...


class MetadataStore(Protocol):
    """What every back end offers. All methods are safe to cancel: a cancelled transaction may still apply."""

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        """Return the keys that start with `prefix`, sorted, as they are at the returned revision."""
        ...

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        """Apply `then` at one revision if all of `when` holds.

        Raises `UnknownOutcomeError`, `LeaseLostError`, `StoreFailedError`; `ValueError` for more than `MAX_OPERATIONS`
        or two operations on one key.
        """
        ...

    def watch(self, prefix: bytes, after: int) -> Watch:
        """Watch for changes at revisions above `after`."""
        ...

    async def session(self, ttl: float) -> Session:
        """Open a session whose keys vanish `ttl` seconds after its owner was last heard of."""
        ...

    async def revoke(self, lease: int) -> None:
        """Delete the keys of a lease, whoever's it is, and end it. Harmless when it is gone."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of everything. Watches end."""
        ...


def absent(key: bytes) -> Cmp:
    """The key does not exist."""
    return Cmp(key, create_revision=0)


def unchanged(kv: KV) -> Cmp:
    """The key is exactly as it was seen."""
    return Cmp(kv.key, mod_revision=kv.mod_revision)


def still(key: bytes, mod_revision: int) -> Cmp:
    """The key was last changed at `mod_revision`, 0 if it was seen not to exist."""
    return Cmp(key, mod_revision=mod_revision)


def created_at(key: bytes, create_revision: int) -> Cmp:
    """The key has existed without a break since `create_revision`."""
    return Cmp(key, create_revision=create_revision)


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the first key after all that start with `prefix`, or None if there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None
