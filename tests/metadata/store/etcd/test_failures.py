"""Members that die, stall and are cut off, one of one and one of three: nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.etcd.store import EtcdStore
from odradek.broker.metadata.store.etcd.wire import number_field
from odradek.broker.metadata.store.store import (
    KV,
    CompactedError,
    Put,
    StoreFailedError,
    StoreUnreachableError,
    UnknownOutcomeError,
    absent,
    still,
)
from tests.metadata.store.etcd.conftest import Open, leader_first
from tests.metadata.store.etcd.proxy import Proxy
from tests.metadata.store.etcd.workload import Workload
from tests.peers import etcd
from tests.peers.server import free_port

pytestmark = etcd.MARKS

Proxies = Callable[[etcd.Cluster], Awaitable[list[Proxy]]]


async def _ready(member: etcd.Member) -> None:
    await asyncio.to_thread(member.wait_until_ready)


@pytest.mark.parametrize("of_leader", [True, False], ids=["the leader", "a follower"])
async def test_the_member_in_use_is_killed(three: etcd.Cluster, open_store: Open, of_leader: bool) -> None:
    victim, *others = leader_first(three) if of_leader else leader_first(three)[::-1]
    store = open_store(victim.bootstrap, *(member.bootstrap for member in others))
    async with Workload(store) as workload:
        victim.kill()

        await workload.goes_on()

        assert not workload.session.lost.is_set()


async def test_the_only_member_is_killed_and_starts_again(one: etcd.Cluster, open_store: Open) -> None:
    async with Workload(open_store(*one.endpoints)) as workload:
        one.members[0].kill()
        one.members[0].start(wait=False)

        await workload.goes_on()

        assert not workload.session.lost.is_set()


async def test_the_member_in_use_stalls(three: etcd.Cluster, open_store: Open) -> None:
    """Its connections stay open."""
    victim, *others = leader_first(three)
    store = open_store(victim.bootstrap, *(member.bootstrap for member in others))
    async with Workload(store) as workload:
        victim.pause()

        await workload.goes_on()

        assert not workload.session.lost.is_set()
        victim.resume()
        await workload.goes_on()


async def test_the_only_member_stalls_for_a_while(one: etcd.Cluster, open_store: Open) -> None:
    store = open_store(*one.endpoints)
    async with Workload(store) as workload:
        one.members[0].pause()
        with pytest.raises(StoreUnreachableError):
            await store.range(b"x")
        one.members[0].resume()

        await workload.goes_on()

        assert not workload.session.lost.is_set()


async def test_the_member_in_use_is_cut_off(cluster: etcd.Cluster, open_store: Open, proxies: Proxies) -> None:
    victim, *others = await proxies(cluster)
    store = open_store(victim.endpoint, *(proxy.endpoint for proxy in others))
    async with Workload(store) as workload:
        victim.cut()
        await victim.lost_requests.wait()
        if others:
            await workload.goes_on()
        else:
            with pytest.raises(StoreUnreachableError):
                await store.range(b"x")
        victim.heal()

        await workload.goes_on()

        assert not workload.session.lost.is_set()


async def test_connections_break_again_and_again(cluster: etcd.Cluster, open_store: Open, proxies: Proxies) -> None:
    """At any moment: before a stream has been written to, in the middle of a transaction."""
    ways = await proxies(cluster)
    async with Workload(open_store(*(proxy.endpoint for proxy in ways))) as workload:
        for i in range(20):
            for proxy in ways:
                proxy.heal()
            await workload.goes_on(1 + i % 3)

        assert not workload.session.lost.is_set()


async def test_the_members_lose_their_majority_for_a_while(three: etcd.Cluster, open_store: Open) -> None:
    first, second, third = leader_first(three)
    store = open_store(third.bootstrap, second.bootstrap, first.bootstrap)
    async with Workload(store) as workload:
        first.kill()
        second.kill()
        with pytest.raises(StoreUnreachableError):
            await store.range(b"x")
        first.start(wait=False)
        second.start(wait=False)

        await workload.goes_on()

        assert not workload.session.lost.is_set()


async def test_a_store_that_is_not_there_yet_is_waited_for(one: etcd.Cluster, open_store: Open) -> None:
    member = one.members[0]
    member.kill()
    store = open_store(member.bootstrap)
    with pytest.raises(StoreUnreachableError, match=f"{member.bootstrap}.*refused"):
        await store.check_server(b"early/")
    watch = store.watch(b"early/", 0)
    committing = asyncio.ensure_future(commit(store, (), (Put(b"early/%b" % uuid4().bytes, b""),)))

    member.start(wait=False)

    assert (await asyncio.wait_for(committing, 60)).ok
    assert (await asyncio.wait_for(anext(watch), 60)).changes


async def test_a_transaction_without_a_connection_was_certainly_not_applied(open_store: Open) -> None:
    store = open_store(f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}")

    with pytest.raises(StoreUnreachableError):
        await store.txn((), (Put(b"a", b""),))
    assert (store.counts.attempts, store.counts.unconnected, store.counts.unknown_outcomes) == (0, 2, 0)


async def test_a_transaction_whose_answer_is_lost_has_an_unknown_outcome(
    cluster: etcd.Cluster, open_store: Open, proxies: Proxies
) -> None:
    first, *_ = await proxies(cluster)
    store, other = open_store(first.endpoint), open_store(*cluster.endpoints)
    key = b"unknown/%b" % uuid4().bytes
    await store.range(key)
    first.lose_answers()

    with pytest.raises(UnknownOutcomeError):
        await store.txn((absent(key),), (Put(key, b"mine"),))

    assert [kv.value for kv in (await other.range(key))[0]] == [b"mine"]
    counts = store.counts
    assert (counts.attempts, counts.answered.count, counts.unanswered, counts.unknown_outcomes) == (2, 1, 1, 1)
    assert counts.answered.sum > 0


@pytest.mark.parametrize("lost", ["request", "answer"])
async def test_the_identical_transaction_finds_out_what_became_of_the_first(
    cluster: etcd.Cluster, open_store: Open, proxies: Proxies, lost: str
) -> None:
    """Only the proxy of the member in use loses something; with one member, until the other way to it is used."""
    first, *others = await proxies(cluster)
    way_around = [proxy.endpoint for proxy in others] or cluster.endpoints
    store = open_store(first.endpoint, *way_around)
    key = b"identical/%b" % uuid4().bytes
    await store.range(key)
    first.lose_requests() if lost == "request" else first.lose_answers()

    result = await commit(store, (absent(key),), (Put(key, b"mine"),))

    found, _ = await store.range(key)
    assert result.ok
    assert found == [KV(key, b"mine", result.revision, result.revision)]
    assert store.counts.unknown_outcomes == 1


async def test_a_transaction_that_was_overtaken_is_reported_as_failed(
    cluster: etcd.Cluster, open_store: Open, proxies: Proxies
) -> None:
    first, *others = await proxies(cluster)
    store = open_store(first.endpoint, *([proxy.endpoint for proxy in others] or cluster.endpoints))
    other = open_store(*cluster.endpoints)
    key = b"overtaken/%b" % uuid4().bytes
    before = (await other.txn((), (Put(key, b"old"),))).revision
    await store.range(key)
    first.lose_requests()
    committing = asyncio.ensure_future(commit(store, (still(key, before),), (Put(key, b"mine"),)))
    await first.lost_requests.wait()

    assert (await other.txn((still(key, before),), (Put(key, b"theirs"),))).ok

    assert not (await committing).ok
    assert [kv.value for kv in (await store.range(key))[0]] == [b"theirs"]


async def test_a_watch_whose_changes_were_compacted_while_it_was_cut_off_raises_compacted_error(
    cluster: etcd.Cluster, open_store: Open, proxies: Proxies
) -> None:
    ways = await proxies(cluster)
    store, other = open_store(*(proxy.endpoint for proxy in ways)), open_store(*cluster.endpoints)
    key = b"compacted/%b" % uuid4().bytes
    _, revision = await store.range(key)
    watch = store.watch(key, revision)
    watch.request_progress(revision)
    await asyncio.wait_for(anext(watch), 30)
    for proxy in ways:
        proxy.cut()
    last = 0
    for i in range(3):
        last = (await other.txn((), (Put(key, b"%d" % i),))).revision
    await _compact(other, last)
    for proxy in ways:
        proxy.heal()

    with pytest.raises(CompactedError):
        await asyncio.wait_for(_only_progress(watch), 60)
    with pytest.raises(CompactedError):
        await anext(watch)

    kvs, loaded = await store.range(key)
    resumed = store.watch(key, loaded)
    later = (await other.txn((), (Put(key, b"later"),))).revision
    assert [kv.value for kv in kvs] == [b"2"]
    while not (batch := await asyncio.wait_for(anext(resumed), 30)).changes:
        pass
    assert batch.revision == later
    assert store.counts.compactions == 1


async def _only_progress(watch: object) -> None:
    async for batch in watch:
        assert not batch.changes


async def test_a_range_is_read_anew_if_its_revision_is_compacted_between_two_pages(
    one: etcd.Cluster, open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.broker.metadata.store.etcd.store.PAGE", 10)
    store, other = open_store(*one.endpoints), open_store(*one.endpoints)
    prefix = b"paged/%b/" % uuid4().hex.encode()
    keys = [prefix + b"%02d" % i for i in range(50)]
    await store.txn((), [Put(key, b"0") for key in keys])

    async def change_and_compact() -> None:
        for i in range(1, 100):
            await _compact(other, (await other.txn((), [Put(key, b"%d" % i) for key in keys])).revision)

    compacting = asyncio.ensure_future(change_and_compact())
    reads = 0
    while not compacting.done():
        kvs, _ = await store.range(prefix)
        reads += 1
        assert [kv.key for kv in kvs] == keys
        assert len({kv.value for kv in kvs}) == 1
    await compacting
    assert reads


async def test_a_watch_on_a_member_that_lags_behind_reports_the_progress_that_was_requested(
    three: etcd.Cluster, open_store: Open
) -> None:
    """A transaction is answered by one member, the watch is on another one, and the changed key is foreign."""
    leader, follower, _ = leader_first(three)
    writing, watching = open_store(leader.bootstrap), open_store(follower.bootstrap)
    watch = watching.watch(b"lagging/", (await watching.range(b"lagging/"))[1])
    for i in range(20):
        revision = (await writing.txn((), (Put(b"foreign/lagging", b"%d" % i),))).revision

        watch.request_progress(revision)

        while (await asyncio.wait_for(anext(watch), 30)).revision < revision:
            pass


async def test_closing_waits_for_a_transaction_and_ends_the_rest(one: etcd.Cluster, open_store: Open) -> None:
    store, other = open_store(*one.endpoints), open_store(*one.endpoints)
    session = await store.session(30)
    watch = store.watch(b"closing/", 0)
    key = b"closing/%b" % uuid4().bytes
    committing = asyncio.ensure_future(store.txn((), (Put(key, b"", session.lease),)))
    await asyncio.sleep(0)

    await store.close()

    assert (await committing).ok
    assert len((await other.range(key))[0]) == 1
    with pytest.raises(StopAsyncIteration):
        await anext(watch)
    with pytest.raises(StoreFailedError):
        await store.session(30)
    await other.revoke(session.lease)


async def _compact(store: EtcdStore, revision: int) -> None:
    await store.client.read("/etcdserverpb.KV/Compact", number_field(1, revision))
