"""The behaviour of every metadata store; each test runs with each implementation, and most beside foreign keys.

So no test expects a certain revision: foreign keys, and for etcd also other tests, change the store's at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.metadata.store.history import KEPT
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import (
    KV,
    MAX_OPERATIONS,
    Batch,
    Change,
    Cmp,
    CompactedError,
    Delete,
    DeletePrefix,
    LeaseLostError,
    MetadataStore,
    Op,
    Put,
    StoreFailedError,
    absent,
    created_at,
    prefix_end,
    still,
    unchanged,
)
from odradek.broker.testing.clock import ManualClock
from tests.metadata.store.reading import keys, next_change, put


async def test_an_empty_prefix_has_nothing(store: MetadataStore, own: bytes) -> None:
    kvs, revision = await store.range(own)

    assert kvs == []
    assert revision >= 0


async def test_a_key_has_the_revisions_of_its_creation_and_last_change(store: MetadataStore, own: bytes) -> None:
    first = await put(store, own + b"a", b"1")
    await put(store, own + b"b", b"x")
    last = await put(store, own + b"a", b"2")

    kvs, revision = await store.range(own + b"a")

    assert kvs == [KV(own + b"a", b"2", first, last)]
    assert first < last <= revision


async def test_a_deleted_key_that_is_put_again_has_a_new_create_revision(store: MetadataStore, own: bytes) -> None:
    await put(store, own + b"a", b"1")
    await store.txn((), (Delete(own + b"a"),))
    again = await put(store, own + b"a", b"2")

    assert (await store.range(own + b"a"))[0] == [KV(own + b"a", b"2", again, again)]


async def test_a_range_is_a_prefix_in_key_order(store: MetadataStore, own: bytes) -> None:
    for key in (b"b/2", b"a", b"b/1", b"b", b"c", b"b/10", b"b\xff", b"\xff\xff"):
        await put(store, own + key, b"")

    assert await keys(store, own + b"b") == [b"", b"/1", b"/10", b"/2", b"\xff"]
    assert await keys(store, own + b"\xff") == [b"\xff"]
    assert await keys(store, own) == [b"a", b"b", b"b/1", b"b/10", b"b/2", b"b\xff", b"c", b"\xff\xff"]


async def test_the_empty_prefix_is_the_whole_store(store: MetadataStore, own: bytes) -> None:
    await put(store, own + b"a", b"")

    kvs, _ = await store.range(b"")

    keys = [kv.key for kv in kvs]
    assert own + b"a" in keys
    assert any(key.startswith(b"foreign/") for key in keys)
    assert keys == sorted(keys)


async def test_a_long_range_is_read_at_one_revision(store: MetadataStore, own: bytes) -> None:
    """While every transaction changes the first and the last key alike."""
    ends = (own + b"0000", own + b"9999")
    for begin in range(1, 2400, 100):
        await store.txn((), tuple(Put(own + b"%04d" % i, b"x" * 100) for i in range(begin, begin + 100)))

    async def change_both_ends() -> None:
        for i in count():
            await store.txn((), tuple(Put(key, b"%d" % i) for key in ends))

    changing = asyncio.ensure_future(change_both_ends())
    for _ in range(5):
        kvs, revision = await store.range(own)
        values = {kv.key: kv.value for kv in kvs}
        assert len(kvs) in (2400, 2402)
        assert values.get(ends[0]) == values.get(ends[1])
        assert max(kv.mod_revision for kv in kvs) <= revision
    changing.cancel()
    await asyncio.gather(changing, return_exceptions=True)


async def test_a_transaction_is_one_revision(store: MetadataStore, own: bytes) -> None:
    before = await put(store, own + b"a", b"1")

    ok, revision = await store.txn((), (Put(own + b"b", b"2"), Delete(own + b"a"), Put(own + b"c", b"3")))

    assert ok
    assert revision > before
    found = [(kv.key, kv.mod_revision) for kv in (await store.range(own))[0]]
    assert found == [(own + b"b", revision), (own + b"c", revision)]


async def test_nothing_changes_unless_every_comparison_holds(store: MetadataStore, own: bytes) -> None:
    revision = await put(store, own + b"a", b"1")

    result = await store.txn(
        (absent(own + b"b"), still(own + b"a", revision + 1)), (Put(own + b"b", b""), Put(own + b"a", b"2"))
    )

    assert not result.ok
    assert result.revision >= revision
    assert (await store.range(own))[0] == [KV(own + b"a", b"1", revision, revision)]


@pytest.mark.parametrize(
    ("comparison", "holds"),
    [
        (lambda key, created, changed: absent(key), False),
        (lambda key, created, changed: absent(key + b"z"), True),
        (lambda key, created, changed: created_at(key, created), True),
        (lambda key, created, changed: created_at(key, changed), False),
        (lambda key, created, changed: still(key, changed), True),
        (lambda key, created, changed: still(key, created), False),
        (lambda key, created, changed: still(key + b"z", 0), True),
        (lambda key, created, changed: unchanged(KV(key, b"2", created, changed)), True),
        (lambda key, created, changed: Cmp(key, create_revision=created, mod_revision=changed), True),
        (lambda key, created, changed: Cmp(key, create_revision=created, mod_revision=created), False),
        (lambda key, created, changed: Cmp(key), True),
    ],
)
async def test_comparisons(
    store: MetadataStore, own: bytes, comparison: Callable[[bytes, int, int], Cmp], holds: bool
) -> None:
    created = await put(store, own + b"a", b"1")
    changed = await put(store, own + b"a", b"2")

    when = (comparison(own + b"a", created, changed),)

    assert (await store.txn(when, (Put(own + b"b", b""),))).ok is holds


async def test_deleting_a_missing_key_changes_nothing(store: MetadataStore, own: bytes) -> None:
    revision = await put(store, own + b"a", b"1")

    result = await store.txn((), (Delete(own + b"b"), DeletePrefix(own + b"c")))

    assert result.ok
    assert result.revision >= revision
    assert (await store.range(own))[0] == [KV(own + b"a", b"1", revision, revision)]


async def test_all_keys_under_a_prefix_are_deleted(store: MetadataStore, own: bytes) -> None:
    await store.txn((), tuple(Put(own + b"p/%d" % i, b"") for i in range(100)))
    await put(store, own + b"p", b"")
    await put(store, own + b"q", b"")

    await store.txn((), (DeletePrefix(own + b"p/"), Put(own + b"r", b"")))

    assert await keys(store, own) == [b"p", b"q", b"r"]


@pytest.mark.parametrize("count_", [MAX_OPERATIONS - 1, MAX_OPERATIONS])
async def test_a_transaction_may_have_as_many_operations_as_etcd_allows(
    store: MetadataStore, own: bytes, count_: int
) -> None:
    keys = [own + b"%03d" % i for i in range(count_)]
    watch = store.watch(own, (await store.range(own))[1])

    result = await store.txn([absent(key) for key in keys], [Put(key, b"") for key in keys])

    assert result.ok
    assert await next_change(watch) == Batch(
        result.revision, tuple(Change(key, KV(key, b"", result.revision, result.revision)) for key in keys)
    )


@pytest.mark.parametrize(
    "then",
    [
        (Put(b"a", b""), Put(b"a", b"")),
        (Put(b"a", b""), Delete(b"a")),
        (DeletePrefix(b"a"), Put(b"ab", b"")),
    ],
)
async def test_a_transaction_that_etcd_would_refuse_is_refused(store: MetadataStore, then: Sequence[Op]) -> None:
    before, _ = await store.range(b"a")

    with pytest.raises(ValueError, match="a transaction"):
        await store.txn((), then)

    assert (await store.range(b"a"))[0] == before


async def test_a_transaction_with_too_many_operations_is_refused(store: MetadataStore, own: bytes) -> None:
    most = [Put(own + b"%d" % i, b"") for i in range(store.max_operations)]

    assert (await store.txn((), most)).ok
    with pytest.raises(ValueError, match="a transaction"):
        await store.txn((), [*most, Put(own + b"one more", b"")])


async def test_both_revisions_of_a_key_are_two_comparisons(store: MetadataStore, own: bytes) -> None:
    most = [Cmp(own + b"%d" % i, create_revision=0, mod_revision=0) for i in range(store.max_operations // 2)]

    assert (await store.txn(most, (Put(own + b"a", b""),))).ok
    with pytest.raises(ValueError, match="a transaction"):
        await store.txn([*most, Cmp(own, create_revision=0, mod_revision=0)], (Put(own + b"b", b""),))


async def test_of_many_concurrent_transactions_one_succeeds(store: MetadataStore, own: bytes) -> None:
    key = own + b"a"
    results = await asyncio.gather(*(store.txn((absent(key),), (Put(key, b"%d" % i),)) for i in range(50)))

    winners = [i for i, result in enumerate(results) if result.ok]
    assert len(winners) == 1
    assert (await store.range(key))[0][0].value == b"%d" % winners[0]


async def test_a_cancelled_transaction_is_applied_completely_or_not_at_all(store: MetadataStore, own: bytes) -> None:
    tasks = [
        asyncio.ensure_future(store.txn((), (Put(own + b"%d/a" % i, b""), Put(own + b"%d/b" % i, b""))))
        for i in range(20)
    ]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await put(store, own + b"last", b"")

    for i in range(20):
        assert len((await store.range(own + b"%d/" % i))[0]) in ({0, 2} if i % 2 == 0 else {2})


async def test_keys_of_a_session_are_deleted_when_it_is_revoked(store: MetadataStore, own: bytes) -> None:
    session = await store.session(60)
    one, two = own + b"leased/1", own + b"leased/2"
    put = await store.txn((), (Put(one, b"", session.lease), Put(two, b"", session.lease), Put(own + b"kept", b"")))
    watch = store.watch(own, put.revision)

    await session.revoke()

    assert await keys(store, own) == [b"kept"]
    assert (await next_change(watch)).changes == (Change(one, None), Change(two, None))
    assert session.lost.is_set()


async def test_no_key_can_be_put_under_an_ended_lease(store: MetadataStore, own: bytes) -> None:
    session = await store.session(60)
    await session.revoke()
    await session.revoke()

    with pytest.raises(LeaseLostError):
        await store.txn((), (Put(own + b"a", b"", session.lease),))
    assert await keys(store, own) == []


async def test_a_key_leaves_its_lease_when_it_is_put_without(store: MetadataStore, own: bytes) -> None:
    session = await store.session(60)
    await store.txn((), (Put(own + b"a", b"1", session.lease),))
    assert (await store.range(own + b"a"))[0][0].lease == session.lease
    await put(store, own + b"a", b"2")

    await session.revoke()

    assert (await store.range(own + b"a"))[0][0].lease == 0


async def test_a_lease_can_be_revoked_by_its_number(store: MetadataStore, own: bytes) -> None:
    session = await store.session(60)
    await store.txn((), (Put(own + b"a", b"", session.lease),))

    await store.revoke(session.lease)
    await store.revoke(session.lease)

    assert await keys(store, own) == []
    await asyncio.wait_for(session.lost.wait(), 30)


async def test_sessions_have_different_leases(store: MetadataStore) -> None:
    sessions = [await store.session(60) for _ in range(5)]

    assert len({session.lease for session in sessions}) == 5


async def test_a_session_that_is_not_renewed_is_lost() -> None:
    clock = ManualClock(monotonic=1000)
    shared = InMemoryStore(clock)
    session = await shared.session(0.01)
    await shared.txn((), (Put(b"a", b"", session.lease),))
    clock.advance(1000)
    assert session.deadline() == pytest.approx(1001.01)

    session.abandon()

    clock.advance(1000)
    assert session.deadline() == pytest.approx(1001.01)
    await asyncio.wait_for(session.lost.wait(), 10)
    assert (await shared.range(b""))[0] == []
    await shared.close()


async def test_a_watch_from_a_dropped_revision_raises_compacted_error(shared: InMemoryStore) -> None:
    early = shared.watch(b"", 0)
    for _ in range(2 * KEPT):
        await shared.txn((), (Put(b"a", b""),))

    for watch in (early, shared.watch(b"", KEPT - 1)):
        with pytest.raises(CompactedError):
            await anext(watch)
    assert (await anext(shared.watch(b"", KEPT))).revision == KEPT + 1


async def test_a_watch_that_falls_behind_raises_compacted_error(shared: InMemoryStore) -> None:
    watch = shared.watch(b"", 0)
    await shared.txn((), (Put(b"a", b""),))
    assert (await anext(watch)).revision == 1
    for _ in range(2 * KEPT):
        await shared.txn((), (Put(b"a", b""),))

    with pytest.raises(CompactedError):
        await anext(watch)


async def test_every_operation_of_a_closed_store_fails(store: MetadataStore) -> None:
    await store.close()

    for call in (store.range(b""), store.txn((), (Put(b"a", b""),)), store.session(2)):
        with pytest.raises(StoreFailedError):
            await call


@pytest.mark.parametrize(
    ("prefix", "end"),
    [(b"a", b"b"), (b"a\xff", b"b"), (b"a\xff\xff", b"b"), (b"\xff", None), (b"", None), (b"a/", b"a0")],
)
def test_the_end_of_a_prefix(prefix: bytes, end: bytes | None) -> None:
    assert prefix_end(prefix) == end


_KEYS = st.sampled_from([b"a", b"a/1", b"a/2", b"b", b"b/1", b"\xff"])
_OPS = st.one_of(
    st.builds(Put, _KEYS, st.binary(max_size=3), st.just(0)), st.builds(Delete, _KEYS), st.builds(DeletePrefix, _KEYS)
)
_CMPS = st.builds(Cmp, _KEYS, st.none(), st.integers(0, 6))
_TXNS = st.tuples(st.lists(_CMPS, max_size=1), st.lists(_OPS, max_size=3))


@given(st.lists(_TXNS, max_size=12))
def test_replaying_a_watch_gives_the_keys_of_the_store(txns: list[tuple[list[Cmp], list[Op]]]) -> None:
    """Applying all changes of a watch from the beginning gives the same keys as reading them."""

    async def scenario() -> None:
        store = InMemoryStore()
        for when, then in txns:
            try:
                await store.txn(when, then)
            except ValueError:
                continue
        kvs, revision = await store.range(b"")
        watch = store.watch(b"", 0)
        replayed: dict[bytes, KV] = {}
        for expected in range(1, revision + 1):
            batch = await anext(watch)
            assert batch.revision == expected
            assert batch.changes
            for key, kv in batch.changes:
                if kv is None:
                    del replayed[key]
                else:
                    replayed[key] = kv
        assert replayed == {kv.key: kv for kv in kvs}
        await store.close()

    asyncio.run(scenario())
