"""The watches of every metadata store; see `test_store`."""

from __future__ import annotations

import asyncio

import pytest

from odradek.broker.metadata.store.store import (
    KV,
    Batch,
    Change,
    Delete,
    MetadataStore,
    Put,
)
from tests.metadata.store.reading import next_change, put


async def test_a_watch_has_every_change_since_its_revision(store: MetadataStore, own: bytes) -> None:
    one, two = own + b"a/1", own + b"a/2"
    first = await put(store, one, b"x")
    second = await put(store, one, b"y")
    third = (await store.txn((), (Put(two, b""), Delete(one)))).revision
    watch = store.watch(own + b"a/", first)

    changed, deleted = await next_change(watch), await next_change(watch)

    assert changed == Batch(second, (Change(one, KV(one, b"y", first, second)),))
    assert deleted == Batch(third, (Change(one, None), Change(two, KV(two, b"", third, third))))


async def test_a_watch_waits_for_later_changes(store: MetadataStore, own: bytes) -> None:
    watch = store.watch(own, (await store.range(own))[1])
    waiting = asyncio.ensure_future(next_change(watch))
    await asyncio.sleep(0)
    assert not waiting.done()

    revision = await put(store, own + b"a", b"1")

    assert (await waiting).revision == revision


async def test_a_watch_from_the_beginning_has_everything(store: MetadataStore, own: bytes) -> None:
    revision = await put(store, own + b"a", b"1")

    assert (await next_change(store.watch(own, 0))).revision == revision


async def test_a_watch_reports_progress_past_foreign_keys_when_it_is_requested(
    store: MetadataStore, own: bytes
) -> None:
    watch = store.watch(own + b"a/", (await store.range(own))[1])
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    revision = await put(store, b"foreign/a", b"")

    watch.request_progress(revision)

    batch = await asyncio.wait_for(waiting, 30)
    while batch.revision < revision:  # an earlier report
        batch = await asyncio.wait_for(anext(watch), 30)
    assert batch.changes == ()


async def test_a_watch_reports_progress_if_nothing_changes(store: MetadataStore) -> None:
    """It starts at the store's last revision."""
    revision = await put(store, b"foreign/a", b"")
    watch = store.watch(b"nothing/", revision)

    for _ in range(3):
        watch.request_progress(revision)
        batch = await asyncio.wait_for(anext(watch), 30)
        assert batch.changes == ()
        assert batch.revision >= revision


async def test_progress_never_overtakes_changes(store: MetadataStore, own: bytes) -> None:
    watch = store.watch(own, (await store.range(own))[1])
    revisions = []
    for i in range(30):
        revisions.append(await put(store, own + b"%d" % i, b""))
        watch.request_progress(revisions[-1])

    seen: list[int] = []
    reached = 0
    while reached < revisions[-1] or len(seen) < len(revisions):
        batch = await asyncio.wait_for(anext(watch), 30)
        assert batch.revision > reached if batch.changes else batch.revision >= reached
        reached = batch.revision
        if batch.changes:
            seen.append(batch.revision)
        assert seen == [revision for revision in revisions if revision <= reached]


async def test_a_watch_can_be_resumed_at_any_kept_revision(store: MetadataStore, own: bytes) -> None:
    revisions = [await put(store, own + b"a", b"%d" % i) for i in range(10)]
    watch = store.watch(own + b"a", revisions[3])

    assert [(await next_change(watch)).revision for _ in range(6)] == revisions[4:]


async def test_a_watch_that_starts_at_the_revision_loaded_has_nothing_that_is_known(
    store: MetadataStore, own: bytes
) -> None:
    await put(store, own + b"a", b"known")
    _, loaded = await store.range(own)
    watch = store.watch(own, loaded)

    later = await put(store, own + b"b", b"")

    assert await next_change(watch) == Batch(later, (Change(own + b"b", KV(own + b"b", b"", later, later)),))


async def test_a_watch_that_is_far_behind_has_every_revision_by_itself(store: MetadataStore, own: bytes) -> None:
    """Over etcd a response then has many revisions, of 6 MB together."""
    _, loaded = await store.range(own)
    revisions = [await put(store, own + b"%d" % (i % 3), b"x" * 60_000) for i in range(100)]
    watch = store.watch(own, loaded)

    batches = [await next_change(watch) for _ in revisions]

    assert [batch.revision for batch in batches] == revisions
    assert {len(batch.changes) for batch in batches} == {1}


async def test_watches_are_independent_and_end_when_closed(store: MetadataStore, own: bytes) -> None:
    _, loaded = await store.range(own)
    slow, closed = store.watch(own, loaded), store.watch(own, loaded)
    waiting = asyncio.ensure_future(next_change(closed))
    await asyncio.sleep(0)
    closed.close()
    with pytest.raises(StopAsyncIteration):
        await waiting
    revision = await put(store, own + b"a", b"1")

    assert (await next_change(slow)).revision == revision
    with pytest.raises(StopAsyncIteration):
        await anext(closed)


async def test_a_watch_ends_with_its_store(store: MetadataStore) -> None:
    revision = await put(store, b"a", b"1")
    watch = store.watch(b"a", revision - 1)
    assert (await next_change(watch)).revision == revision
    waiting = asyncio.ensure_future(next_change(watch))
    await asyncio.sleep(0)

    await store.close()

    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_cancelled_watch_resumes_where_it_was(store: MetadataStore, own: bytes) -> None:
    watch = store.watch(own, (await store.range(own))[1])
    waiting = asyncio.ensure_future(next_change(watch))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    revision = await put(store, own + b"a", b"1")

    assert (await next_change(watch)).revision == revision
