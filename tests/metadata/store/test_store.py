"""The behaviour of every metadata store; each test runs with each implementation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

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


async def _put(store: MetadataStore, key: bytes, value: bytes) -> int:
    result = await store.txn((), (Put(key, value),))
    assert result.ok
    return result.revision


async def test_an_empty_store_has_nothing(store: MetadataStore) -> None:
    kvs, revision = await store.range(b"")

    assert (kvs, revision) == ([], 0)


async def test_a_key_has_the_revisions_of_its_creation_and_last_change(store: MetadataStore) -> None:
    first = await _put(store, b"a", b"1")
    await _put(store, b"b", b"x")
    last = await _put(store, b"a", b"2")

    kvs, revision = await store.range(b"a")

    assert kvs == [KV(b"a", b"2", first, last)]
    assert revision == last


async def test_a_deleted_key_that_is_put_again_has_a_new_create_revision(store: MetadataStore) -> None:
    await _put(store, b"a", b"1")
    await store.txn((), (Delete(b"a"),))
    again = await _put(store, b"a", b"2")

    assert (await store.range(b"a"))[0] == [KV(b"a", b"2", again, again)]


async def test_a_range_is_a_prefix_in_key_order(store: MetadataStore) -> None:
    for key in (b"b/2", b"a", b"b/1", b"b", b"c", b"b/10", b"b\xff", b"\xff\xff"):
        await _put(store, key, b"")

    assert [kv.key for kv in (await store.range(b"b"))[0]] == [b"b", b"b/1", b"b/10", b"b/2", b"b\xff"]
    assert [kv.key for kv in (await store.range(b"\xff"))[0]] == [b"\xff\xff"]
    assert len((await store.range(b""))[0]) == 8


async def test_a_transaction_is_one_revision(store: MetadataStore) -> None:
    before = await _put(store, b"a", b"1")

    result = await store.txn((), (Put(b"b", b"2"), Delete(b"a"), Put(b"c", b"3")))

    assert result == (True, before + 1)
    assert [(kv.key, kv.mod_revision) for kv in (await store.range(b""))[0]] == [(b"b", before + 1), (b"c", before + 1)]


async def test_nothing_changes_unless_every_comparison_holds(store: MetadataStore) -> None:
    revision = await _put(store, b"a", b"1")

    result = await store.txn((absent(b"b"), still(b"a", revision + 1)), (Put(b"b", b""), Put(b"a", b"2")))

    assert result == (False, revision)
    assert (await store.range(b""))[0] == [KV(b"a", b"1", revision, revision)]


@pytest.mark.parametrize(
    ("comparison", "holds"),
    [
        (absent(b"a"), False),
        (absent(b"z"), True),
        (created_at(b"a", 1), True),
        (created_at(b"a", 2), False),
        (still(b"a", 2), True),
        (still(b"a", 1), False),
        (still(b"z", 0), True),
        (unchanged(KV(b"a", b"2", 1, 2)), True),
        (Cmp(b"a", create_revision=1, mod_revision=2), True),
        (Cmp(b"a", create_revision=1, mod_revision=1), False),
    ],
)
async def test_comparisons(store: MetadataStore, comparison: Cmp, holds: bool) -> None:
    assert await _put(store, b"a", b"1") == 1
    assert await _put(store, b"a", b"2") == 2

    assert (await store.txn((comparison,), (Put(b"b", b""),))).ok is holds


async def test_deleting_a_missing_key_changes_nothing(store: MetadataStore) -> None:
    revision = await _put(store, b"a", b"1")

    assert await store.txn((), (Delete(b"b"), DeletePrefix(b"c"))) == (True, revision)


async def test_all_keys_under_a_prefix_are_deleted(store: MetadataStore) -> None:
    await store.txn((), tuple(Put(b"p/%d" % i, b"") for i in range(100)))
    await _put(store, b"p", b"")
    await _put(store, b"q", b"")

    await store.txn((), (DeletePrefix(b"p/"), Put(b"r", b"")))

    assert [kv.key for kv in (await store.range(b""))[0]] == [b"p", b"q", b"r"]


@pytest.mark.parametrize(
    "then",
    [
        (Put(b"a", b""), Put(b"a", b"")),
        (Put(b"a", b""), Delete(b"a")),
        (DeletePrefix(b"a"), Put(b"ab", b"")),
        tuple(Put(b"%d" % i, b"") for i in range(MAX_OPERATIONS + 1)),
    ],
)
async def test_a_transaction_that_etcd_would_refuse_is_refused(store: MetadataStore, then: Sequence[Op]) -> None:
    with pytest.raises(ValueError, match="a transaction"):
        await store.txn((), then)
    assert (await store.range(b""))[1] == 0


async def test_of_many_concurrent_transactions_one_succeeds(store: MetadataStore) -> None:
    results = await asyncio.gather(*(store.txn((absent(b"a"),), (Put(b"a", b"%d" % i),)) for i in range(50)))

    winners = [i for i, result in enumerate(results) if result.ok]
    assert len(winners) == 1
    assert (await store.range(b"a"))[0][0].value == b"%d" % winners[0]


async def test_a_cancelled_transaction_is_applied_completely_or_not_at_all(store: MetadataStore) -> None:
    tasks = [asyncio.ensure_future(store.txn((), (Put(b"%d/a" % i, b""), Put(b"%d/b" % i, b"")))) for i in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await _put(store, b"last", b"")

    for i in range(20):
        assert len((await store.range(b"%d/" % i))[0]) in ({0, 2} if i % 2 == 0 else {2})


async def test_a_watch_has_every_change_since_its_revision(store: MetadataStore) -> None:
    first = await _put(store, b"a/1", b"x")
    await _put(store, b"a/1", b"y")
    await store.txn((), (Put(b"a/2", b""), Delete(b"a/1")))
    watch = store.watch(b"a/", first)

    changed, deleted = [await anext(watch), await anext(watch)]

    assert changed == Batch(first + 1, (Change(b"a/1", KV(b"a/1", b"y", first, first + 1)),))
    assert deleted == Batch(first + 2, (Change(b"a/1", None), Change(b"a/2", KV(b"a/2", b"", first + 2, first + 2))))


async def test_a_watch_waits_for_later_changes(store: MetadataStore) -> None:
    watch = store.watch(b"", 0)
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    assert not waiting.done()

    revision = await _put(store, b"a", b"1")

    assert (await waiting).revision == revision


async def test_a_watch_returns_revisions_without_changes_under_its_prefix(store: MetadataStore) -> None:
    watch = store.watch(b"a/", 0)
    revision = await _put(store, b"b", b"")

    assert await anext(watch) == Batch(revision, ())


async def test_a_watch_can_be_resumed_at_any_kept_revision(store: MetadataStore) -> None:
    for i in range(10):
        await _put(store, b"a", b"%d" % i)
    watch = store.watch(b"a", 4)

    assert [(await anext(watch)).revision for _ in range(6)] == [5, 6, 7, 8, 9, 10]


async def test_watches_are_independent_and_end_when_closed(store: MetadataStore) -> None:
    slow, closed = store.watch(b"", 0), store.watch(b"", 0)
    waiting = asyncio.ensure_future(anext(closed))
    await asyncio.sleep(0)
    closed.close()
    with pytest.raises(StopAsyncIteration):
        await waiting
    revision = await _put(store, b"a", b"1")

    assert (await anext(slow)).revision == revision
    with pytest.raises(StopAsyncIteration):
        await anext(closed)


async def test_a_watch_ends_with_its_store(store: MetadataStore) -> None:
    await _put(store, b"a", b"1")
    watch = store.watch(b"", 0)
    assert (await anext(watch)).revision == 1
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)

    await store.close()

    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_cancelled_watch_resumes_where_it_was(store: MetadataStore) -> None:
    watch = store.watch(b"", 0)
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    revision = await _put(store, b"a", b"1")

    assert (await anext(watch)).revision == revision


async def test_keys_of_a_session_are_deleted_when_it_is_revoked(store: MetadataStore) -> None:
    session = await store.session(60)
    await store.txn((), (Put(b"leased/1", b"", session.lease), Put(b"leased/2", b"", session.lease), Put(b"kept", b"")))
    watch = store.watch(b"", 1)

    await session.revoke()

    assert [kv.key for kv in (await store.range(b""))[0]] == [b"kept"]
    assert await anext(watch) == Batch(2, (Change(b"leased/1", None), Change(b"leased/2", None)))
    assert session.lost.is_set()


async def test_no_key_can_be_put_under_an_ended_lease(store: MetadataStore) -> None:
    session = await store.session(60)
    await session.revoke()
    await session.revoke()

    with pytest.raises(LeaseLostError):
        await store.txn((), (Put(b"a", b"", session.lease),))
    assert (await store.range(b""))[0] == []


async def test_a_key_leaves_its_lease_when_it_is_put_without(store: MetadataStore) -> None:
    session = await store.session(60)
    await store.txn((), (Put(b"a", b"1", session.lease),))
    assert (await store.range(b"a"))[0][0].lease == session.lease
    await _put(store, b"a", b"2")

    await session.revoke()

    assert (await store.range(b"a"))[0][0].lease == 0


async def test_a_lease_can_be_revoked_by_its_number(store: MetadataStore) -> None:
    session = await store.session(60)
    await store.txn((), (Put(b"a", b"", session.lease),))

    await store.revoke(session.lease)

    assert (await store.range(b""))[0] == []
    assert session.lost.is_set()


async def test_sessions_have_different_leases(store: MetadataStore) -> None:
    assert len({(await store.session(60)).lease for _ in range(5)}) == 5


async def test_a_session_that_is_not_renewed_is_lost(shared: InMemoryStore) -> None:
    session = await shared.session(0.01)
    await shared.txn((), (Put(b"a", b"", session.lease),))
    now = asyncio.get_running_loop().time()

    session.abandon()

    assert session.deadline() == pytest.approx(now + 0.01)
    await asyncio.wait_for(session.lost.wait(), 10)
    assert (await shared.range(b""))[0] == []


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

    for call in (store.range(b""), store.txn((), (Put(b"a", b""),)), store.session(1)):
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
