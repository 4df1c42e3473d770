from __future__ import annotations

from odradek.broker.metadata.store.etcd.messages import (
    Status,
    authenticate_response,
    lease_response,
    range_request,
    range_response,
    status_response,
    txn_request,
    watch_request,
    watch_response,
)
from odradek.broker.metadata.store.etcd.wire import bytes_field, message_field, number_field
from odradek.broker.metadata.store.store import KV, Change, Cmp, Delete, DeletePrefix, Put


def _header(revision: int) -> bytes:
    """With a cluster, a member and a term, which are unsigned and large."""
    return message_field(
        1, number_field(1, (1 << 64) - 5) + number_field(2, 1 << 63) + number_field(3, revision) + number_field(4, 9)
    )


def _kv(key: bytes, value: bytes, created: int, modified: int, lease: int = 0) -> bytes:
    return (
        bytes_field(1, key)
        + number_field(2, created)
        + number_field(3, modified)
        + number_field(4, 3)  # the version of the key, which is not used
        + bytes_field(5, value)
        + number_field(6, lease)
    )


def test_a_range_has_the_end_of_its_prefix() -> None:
    assert range_request(b"a/", b"a/k\x00", 10, 7) == b"\x0a\x04a/k\x00\x12\x02a0\x18\x0a\x20\x07"


def test_the_empty_prefix_is_from_the_first_key_without_end() -> None:
    assert range_request(b"", b"", 0, 0) == watch_request(b"", 0)[2:] == b"\x0a\x01\x00\x12\x01\x00"


def test_a_transaction_compares_each_revision_by_itself() -> None:
    request = txn_request(
        [Cmp(b"k", create_revision=0), Cmp(b"k", create_revision=3, mod_revision=4), Cmp(b"k")],
        [Put(b"p", b"v", 5), Delete(b"d"), DeletePrefix(b"x")],
    )

    assert request == (
        b"\x0a\x05\x10\x01\x1a\x01k"  # create revision, absent: 0
        b"\x0a\x07\x10\x01\x1a\x01k\x28\x03"
        b"\x0a\x07\x10\x02\x1a\x01k\x30\x04"
        b"\x12\x0a\x12\x08\x0a\x01p\x12\x01v\x18\x05"
        b"\x12\x05\x1a\x03\x0a\x01d"
        b"\x12\x08\x1a\x06\x0a\x01x\x12\x01y"
    )


def test_a_range_is_read_with_every_field() -> None:
    message = _header(12) + message_field(2, _kv(b"k", b"v", 3, 4, 5)) + message_field(2, _kv(b"l", b"", 6, 6))

    page = range_response(message + number_field(3, 1) + number_field(4, 2))

    assert page == ([KV(b"k", b"v", 3, 4, 5), KV(b"l", b"", 6, 6, 0)], 12, True)


def test_the_events_of_a_watch_are_read_with_their_revisions() -> None:
    put = message_field(11, message_field(2, _kv(b"k", b"v", 3, 4)))
    deletion = message_field(11, number_field(1, 1) + message_field(2, bytes_field(1, b"l") + number_field(3, 5)))

    response = watch_response(_header(9) + put + deletion + number_field(7, 1))

    assert response.changes == [(4, Change(b"k", KV(b"k", b"v", 3, 4))), (5, Change(b"l", None))]
    assert (response.header_revision, response.fragment, response.created) == (9, True, False)


def test_a_cancelled_watch_has_its_reason() -> None:
    response = watch_response(
        number_field(2, -1) + number_field(3, 1) + number_field(4, 1) + number_field(5, 8) + bytes_field(6, b"why")
    )

    assert response == (0, True, True, 8, "why", False, [])


def test_a_lease_that_has_ended_has_no_time_left() -> None:
    assert lease_response(_header(9) + number_field(2, 77) + number_field(3, 2)) == (77, 2)
    assert lease_response(_header(9) + number_field(2, 77)) == (77, 0)


def test_a_token_is_a_text() -> None:
    assert authenticate_response(_header(9) + bytes_field(2, b"token.1")) == "token.1"


def test_a_status_has_the_version_and_from_3_6_on_the_quota() -> None:
    before = _header(9) + bytes_field(2, b"3.5.30") + number_field(3, 20480) + number_field(9, 8192)
    assert status_response(before) == Status("3.5.30", 20480, 0)
    alarms = bytes_field(8, b"memberID:1 alarm:NOSPACE ") + bytes_field(8, b"another")
    after = _header(9) + bytes_field(2, b"3.6.16") + number_field(3, 4 << 30) + alarms + number_field(12, 2 << 30)
    assert status_response(after) == Status("3.6.16", 4 << 30, 2 << 30)
