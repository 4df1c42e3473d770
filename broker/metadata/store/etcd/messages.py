"""The messages of etcd's API that are used: requests as bytes, responses as tuples.

The numbers of the fields are those of `rpc.proto`, `kv.proto` and `auth.proto`, the same in etcd 3.5 and 3.6. Every
response begins with a header, whose field 3 is the revision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from odradek.broker.metadata.store.etcd.wire import bytes_field, fields, message_field, number_field
from odradek.broker.metadata.store.store import KV, Change, Cmp, Delete, Op, Put, TxnResult, prefix_end

RANGE = "/etcdserverpb.KV/Range"
TXN = "/etcdserverpb.KV/Txn"
WATCH = "/etcdserverpb.Watch/Watch"
LEASE_GRANT = "/etcdserverpb.Lease/LeaseGrant"
LEASE_KEEP_ALIVE = "/etcdserverpb.Lease/LeaseKeepAlive"
LEASE_REVOKE = "/etcdserverpb.Lease/LeaseRevoke"
AUTHENTICATE = "/etcdserverpb.Auth/Authenticate"
STATUS = "/etcdserverpb.Maintenance/Status"

_CREATE, _MOD = 1, 2
"""The targets of a comparison."""
_FIRST_KEY = b"\x00"
_NO_END = b"\x00"
"""As the end of a range: all keys from its beginning."""


class RangePage(NamedTuple):
    """Keys in order, the revision at which they were read, and whether the range has more."""

    kvs: list[KV]
    revision: int
    more: bool


class WatchResponse(NamedTuple):
    """`changes` with the revision of each. `header_revision` is that of the server, not of the changes."""

    header_revision: int
    created: bool
    canceled: bool
    compact_revision: int
    cancel_reason: str
    fragment: bool
    changes: list[tuple[int, Change]]


class Status(NamedTuple):
    """A server: its version, the bytes of its database, and how many it may have; 0: not reported (before 3.6)."""

    version: str
    size_bytes: int
    quota_bytes: int


class Lease(NamedTuple):
    """`ttl`: the whole seconds that the server granted, or that remain; not positive: the lease has ended."""

    id: int
    ttl: int


def range_request(prefix: bytes, start: bytes, limit: int, revision: int) -> bytes:
    """Read up to `limit` keys under `prefix` from the key `start` on; `revision` 0: the newest state."""
    return _key_range(prefix, start) + number_field(3, limit) + number_field(4, revision)


def range_response(message: bytes) -> RangePage:
    kvs, revision, more = [], 0, False
    for number, value, data in fields(message):
        if number == 1:
            revision = _header_revision(data)
        elif number == 2:
            kvs.append(_kv(data))
        elif number == 3:
            more = bool(value)
    return RangePage(kvs, revision, more)


def txn_request(when: Sequence[Cmp], then: Sequence[Op]) -> bytes:
    comparisons = [part for comparison in when for part in _comparisons(comparison)]
    return b"".join(
        [message_field(1, each) for each in comparisons] + [message_field(2, _operation(op)) for op in then]
    )


def txn_response(message: bytes) -> TxnResult:
    ok, revision = False, 0
    for number, value, data in fields(message):
        if number == 1:
            revision = _header_revision(data)
        elif number == 2:
            ok = bool(value)
    return TxnResult(ok, revision)


def watch_request(prefix: bytes, start_revision: int) -> bytes:
    """Create the only watch of a stream, which starts at `start_revision`, inclusive and positive."""
    return message_field(1, _key_range(prefix, prefix) + number_field(3, start_revision))


PROGRESS_REQUEST = message_field(3, b"")


def watch_response(message: bytes) -> WatchResponse:
    revision = compact_revision = 0
    created = canceled = fragment = False
    reason = ""
    changes = []
    for number, value, data in fields(message):
        if number == 1:
            revision = _header_revision(data)
        elif number == 3:
            created = bool(value)
        elif number == 4:
            canceled = bool(value)
        elif number == 5:
            compact_revision = value
        elif number == 6:
            reason = data.decode(errors="replace")
        elif number == 7:
            fragment = bool(value)
        elif number == 11:
            changes.append(_event(data))
    return WatchResponse(revision, created, canceled, compact_revision, reason, fragment, changes)


def lease_grant_request(ttl: int) -> bytes:
    return number_field(1, ttl)


def lease_request(lease: int) -> bytes:
    """Keep a lease alive, or revoke it."""
    return number_field(1, lease)


def lease_response(message: bytes) -> Lease:
    """Decode the answer to a grant or a keep-alive."""
    values = {number: value for number, value, _ in fields(message)}
    return Lease(values.get(2, 0), values.get(3, 0))


def authenticate_request(username: str, password: str) -> bytes:
    return bytes_field(1, username.encode()) + bytes_field(2, password.encode())


def authenticate_response(message: bytes) -> str:
    return next((data.decode() for number, _, data in fields(message) if number == 2), "")


def status_response(message: bytes) -> Status:
    found = {number: (value, data) for number, value, data in fields(message)}
    absent = 0, b""
    version, size, quota = (found.get(number, absent) for number in (2, 3, 12))
    return Status(version[1].decode(errors="replace"), size[0], quota[0])


def _key_range(prefix: bytes, start: bytes) -> bytes:
    end = prefix_end(prefix)
    return bytes_field(1, start or _FIRST_KEY) + bytes_field(2, _NO_END if end is None else end)


def _comparisons(comparison: Cmp) -> list[bytes]:
    """Return an equality for each revision that is compared; etcd has one target in each."""
    key, created, modified = comparison
    return [
        number_field(2, target) + bytes_field(3, key) + number_field(field, revision)
        for target, field, revision in ((_CREATE, 5, created), (_MOD, 6, modified))
        if revision is not None
    ]


def _operation(op: Op) -> bytes:
    if isinstance(op, Put):
        return message_field(2, bytes_field(1, op.key) + bytes_field(2, op.value) + number_field(3, op.lease))
    key_range = bytes_field(1, op.key) if isinstance(op, Delete) else _key_range(op.prefix, op.prefix)
    return message_field(3, key_range)


def _header_revision(header: bytes) -> int:
    return next((value for number, value, _ in fields(header) if number == 3), 0)


def _event(message: bytes) -> tuple[int, Change]:
    deleted, kv = False, b""
    for number, value, data in fields(message):
        if number == 1:
            deleted = bool(value)
        elif number == 2:
            kv = data
    changed = _kv(kv)
    return changed.mod_revision, Change(changed.key, None if deleted else changed)


def _kv(message: bytes) -> KV:
    key = content = b""
    created = modified = lease = 0
    for number, value, data in fields(message):
        if number == 1:
            key = data
        elif number == 2:
            created = value
        elif number == 3:
            modified = value
        elif number == 5:
            content = data
        elif number == 6:
            lease = value
    return KV(key, content, created, modified, lease)
