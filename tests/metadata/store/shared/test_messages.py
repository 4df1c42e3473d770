from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.metadata.store.shared.messages import (
    PAGE_BYTES,
    Changes,
    Failed,
    MalformedMessageError,
    Page,
    SessionLost,
    changes,
    decode_answer,
    decode_request,
    encode,
    failed,
    pages,
    transact,
)
from odradek.broker.metadata.store.store import (
    KV,
    Batch,
    Change,
    Cmp,
    CompactedError,
    Delete,
    DeletePrefix,
    LeaseLostError,
    Put,
    StoreAccessError,
    StoreError,
    StoreFailedError,
    StoreFullError,
    StoreUnreachableError,
    UnknownOutcomeError,
)

ERRORS = [
    StoreError,
    UnknownOutcomeError,
    StoreUnreachableError,
    StoreFullError,
    StoreAccessError,
    CompactedError,
    LeaseLostError,
    StoreFailedError,
    ValueError,
]


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_arrives_with_its_class_and_text(kind: type[StoreError]) -> None:
    answer = decode_answer(encode(failed(3, kind("because"))))

    assert isinstance(answer, Failed)
    assert answer.id == 3
    assert type(answer.error()) is kind
    assert str(answer.error()) == "because"


def test_an_error_that_has_no_name_here_arrives_as_its_base_class() -> None:
    class OwnError(StoreFullError):
        pass

    assert failed(1, OwnError("x")).kind == "StoreFullError"
    assert type(Failed(1, "Exception", "x").error()) is StoreError


def test_every_part_of_a_transaction_arrives() -> None:
    when = [Cmp(b"a", 1), Cmp(b"b", None, 2), Cmp(b"c")]
    then = [Put(b"a", b"\x00", 7), Put(b"b", b""), Delete(b"d"), DeletePrefix(b"e")]

    request = decode_request(encode(transact(5, when, then)))

    assert request == transact(5, when, then)
    assert request.when == tuple(when)
    assert request.then == then


@pytest.mark.parametrize("sizes", [[], [1], [PAGE_BYTES // 2] * 5, [3 * PAGE_BYTES, 1, 1], [1, 3 * PAGE_BYTES]])
def test_long_answers_come_in_parts(sizes: list[int]) -> None:
    kvs = [KV(b"%d" % i, b"x" * size, 1, 1) for i, size in enumerate(sizes)]
    batch = Batch(9, tuple(Change(kv.key, kv) for kv in kvs))

    ranged, changed = list(pages(1, kvs, 9)), list(changes(1, batch))

    assert [kv for page in ranged for kv in page.kvs] == kvs
    assert [change for part in changed for change in part.changes] == list(batch.changes)
    for parts in (ranged, changed):
        assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]
        assert all(len(encode(part)) <= max(PAGE_BYTES, *sizes, 0) + 100 for part in parts)
    assert decode_answer(encode(ranged[0])) == ranged[0]
    assert decode_answer(encode(changed[0])) == changed[0]


def test_deleted_keys_arrive_as_such() -> None:
    (part,) = changes(1, Batch(2, (Change(b"a", None),)))

    assert decode_answer(encode(part)) == Changes(1, 2, (Change(b"a", None),), more=False)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc1",
        encode(Page(1, [], 1, more=False)),
        encode(SessionLost(1)),
        *map(
            msgspec.msgpack.encode,
            [
                {},
                [],
                [99, 1],
                [1],
                [1, 1],
                [1, -1, b""],
                [1, 1, "text"],
                [1, 1, b"", b"more"],
                [3, 1, [], [[b"a"]], [], []],
                [4, 1, 0.0],
                [4, 1, float("nan")],
                [4, 1, float("inf")],
                [7, 1, b"", -1],
                [7, 1, b"", 1 << 63],
            ],
        ),
    ],
)
def test_other_bytes_are_no_request(message: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        decode_request(message)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_message_or_refused(message: bytes) -> None:
    for decode in (decode_request, decode_answer):
        try:
            decode(message)
        except MalformedMessageError:
            continue
