"""The interface of the metadata store: a small, strictly serializable key-value store with history, like etcd.

```
revision          one number for the whole store; every transaction that changes something makes it one larger
KV                a key with its value, the revisions that created and last changed it, its lease (0: none)
txn(when, then)   if every comparison holds, apply every operation at one revision; else nothing
watch(prefix, n)  every change after revision n, whole revisions, in order, without gaps
session(ttl)      a lease: keys under it are deleted when it is revoked, or `ttl` seconds after its owner is gone
```

The store may be shared with others: the revision also counts changes of foreign keys, for which a watch has no batch. A
caller that waits for a revision asks for it with `Watch.request_progress`.

Every transaction that changes something compares the modification (or the absence) of at least one key that it
overwrites. So a late or repeated delivery cannot apply twice, and after `UnknownOutcomeError` the identical transaction
is sent again until its outcome is definite.

```
StoreError
├ UnknownOutcomeError      a transaction may have been applied: send the identical one again
├ StoreUnreachableError    no server answered; nothing was applied: try again
├ StoreFullError           the store accepts no writes until an operator makes space
├ StoreAccessError         a wrong password or certificate, or a missing permission
├ CompactedError           the changes that a watch needs are no longer kept: load again
├ LeaseLostError           the lease of a key to put has ended
└ StoreFailedError         the store has failed, or is closed; every later call raises this
```

Implementations: `memory` (tests, simulation), `sqlite` (one node), `etcd` (several), `shared` (processes of one
machine, one of which has another of these). All pass the same tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

MAX_OPERATIONS = 128
"""The most comparisons, and operations, of a transaction that every store accepts: etcd's default (`--max-txn-ops`)."""


class KV(NamedTuple):
    """One key at some revision."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    lease: int = 0


class Cmp(NamedTuple):
    """Holds if the key has these revisions; a missing key has revision 0. None: not compared."""

    key: bytes
    create_revision: int | None = None
    mod_revision: int | None = None


class Put(NamedTuple):
    """Create or replace a key, under a session's lease or (0) without one."""

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
    """A change of one key: `kv` is its new state, or None if it is deleted."""

    key: bytes
    kv: KV | None


class Batch(NamedTuple):
    """The changes of one revision under a watch's prefix, sorted by key.

    Without changes it reports progress: the watch has returned every change up to `revision`.
    """

    revision: int
    changes: tuple[Change, ...]


class TxnResult(NamedTuple):
    """`ok`: the comparisons held. `revision`: of the change, or of the store if nothing changed."""

    ok: bool
    revision: int


class StoreError(Exception):
    """An operation of the store failed."""


class UnknownOutcomeError(StoreError):
    """The transaction may have been applied or not: send the identical one again."""


class StoreUnreachableError(StoreError):
    """No server answered in time. The operation was not applied, and may be tried again."""


class StoreFullError(StoreError):
    """The store accepts no writes until an operator makes space; reads, watches and sessions go on.

    A transaction that fails with it may have been applied (etcd checks its quota twice); `commit` finds out.
    """


class StoreAccessError(StoreError):
    """The store refuses this user: a wrong password or certificate, or a missing permission."""


class CompactedError(StoreError):
    """The requested changes are no longer kept: load with `range`, and watch from its revision."""


class LeaseLostError(StoreError):
    """The lease of a key to put has ended."""


class StoreFailedError(StoreError):
    """The store has failed, for example because of its disk; every later call raises this."""


TEMPORARY_ERRORS = (LeaseLostError, StoreUnreachableError, StoreFullError, StoreAccessError)
"""The errors after which a running broker tries again; a lost lease needs another session first."""


class Session(Protocol):
    """A lease that is kept alive until it is revoked or lost."""

    lease: int
    lost: asyncio.Event

    def deadline(self) -> float:
        """Return the time until which the session's keys exist for certain, on the clock of `Clock.boot_time`."""
        ...

    async def revoke(self) -> None:
        """Delete the session's keys now. Does nothing if it is lost already. Raises `StoreError`."""
        ...


class Watch(Protocol):
    """The changes under a prefix. Iterate it; `close` ends the iteration.

    Revisions of batches never decrease; those of batches with changes increase.
    """

    def __aiter__(self) -> AsyncIterator[Batch]: ...
    async def __anext__(self) -> Batch:
        """Raises `CompactedError`, `StoreFailedError`. Waits while no server can be reached, or none allows access."""
        ...

    def request_progress(self, revision: int) -> None:
        """Ask for a batch, possibly without changes, at `revision` or above, which the store has reached already."""
        ...

    def close(self) -> None: ...


class MetadataStore(Protocol):
    """A metadata store. All methods may be cancelled; a cancelled transaction may still apply.

    All methods may raise `StoreUnreachableError`, `StoreAccessError` and `StoreFailedError`.
    """

    @property
    def max_operations(self) -> int:
        """The most comparisons, and the most operations, of one transaction; at least `MAX_OPERATIONS`."""
        ...

    async def check(self, prefix: bytes) -> None:
        """Check that the store can be used for keys under `prefix`; raise `StoreFailedError` if it is too old."""
        ...

    async def range(self, prefix: bytes) -> tuple[list[KV], int]:
        """Return the keys that start with `prefix`, sorted, and the revision at which they were read."""
        ...

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        """Apply `then` at one revision if all of `when` holds.

        Raises `UnknownOutcomeError`, `StoreFullError`, `LeaseLostError`; `ValueError` for more than `max_operations`
        or two operations on one key.
        """
        ...

    def watch(self, prefix: bytes, after: int) -> Watch:
        """Watch for changes at revisions above `after`."""
        ...

    async def session(self, ttl: float) -> Session:
        """Open a session whose keys are deleted `ttl` seconds after the last sign of its owner."""
        ...

    async def revoke(self, lease: int) -> None:
        """Delete the keys of a lease of any owner, and end it. Does nothing if it has ended."""
        ...

    async def close(self) -> None:
        """Finish running transactions and release all resources. Watches end."""
        ...


async def read_key(store: MetadataStore, key: bytes) -> tuple[KV | None, int]:
    """Return a key, None if it does not exist, and the revision of the store. Raises `StoreError`."""
    found, revision = await store.range(key)
    return next((kv for kv in found if kv.key == key), None), revision


def absent(key: bytes) -> Cmp:
    """Return the comparison that the key does not exist."""
    return Cmp(key, create_revision=0)


def unchanged(kv: KV) -> Cmp:
    """Return the comparison that the key has not changed since `kv`."""
    return Cmp(kv.key, mod_revision=kv.mod_revision)


def still(key: bytes, mod_revision: int) -> Cmp:
    """Return the comparison that the key was last changed at `mod_revision`; 0: it did not exist."""
    return Cmp(key, mod_revision=mod_revision)


def created_at(key: bytes, create_revision: int) -> Cmp:
    """Return the comparison that the key has existed without a break since `create_revision`."""
    return Cmp(key, create_revision=create_revision)


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the first key after all that start with `prefix`, or None if there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None


def check_operations(when: Sequence[Cmp], then: Sequence[Op], most: int = MAX_OPERATIONS) -> None:
    """Raise `ValueError` for a transaction that etcd would refuse if `most` were its limit of operations."""
    comparisons = sum((each.create_revision is not None) + (each.mod_revision is not None) for each in when)
    if max(comparisons, len(then)) > most:
        raise ValueError(f"a transaction has at most {most} comparisons and operations")
    puts = [op.key for op in then if isinstance(op, Put)]
    touched = puts + [op.key for op in then if isinstance(op, Delete)]
    prefixes = tuple(op.prefix for op in then if isinstance(op, DeletePrefix))
    if len(set(touched)) != len(touched) or any(key.startswith(prefixes) for key in puts if prefixes):
        raise ValueError("a transaction changes each key at most once")
