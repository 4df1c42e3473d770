from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.metadata.store.etcd.session import renewal_interval
from odradek.broker.metadata.store.store import Put, Watch
from odradek.broker.testing.clock import ManualClock
from tests.metadata.store.etcd.conftest import Open
from tests.metadata.store.etcd.proxy import Proxy
from tests.peers import etcd

pytestmark = etcd.MARKS

Proxies = Callable[[etcd.Cluster], Awaitable[list[Proxy]]]


async def _deletion(watch: Watch) -> bytes:
    while True:
        batch = await asyncio.wait_for(anext(watch), 60)
        for key, kv in batch.changes:
            if kv is None:
                return key


@pytest.mark.parametrize(("ttl", "margin"), [(2, 0.2), (60, 6.0)])
async def test_the_deadline_is_earlier_than_the_end_of_the_lease_by_a_margin(
    one: etcd.Cluster, open_store: Open, ttl: int, margin: float
) -> None:
    store = open_store(*one.endpoints, clock=ManualClock(monotonic=1000.0))

    session = await store.session(ttl + 0.9)

    assert session.ttl == ttl
    assert session.deadline() == pytest.approx(1000 + ttl - margin)


@pytest.mark.parametrize(
    ("heartbeat", "ttl", "interval"), [(2.0, 8, 1.6), (2.0, 60, 2.0), (0.5, 2, 0.4), (0.1, 2, 0.1)]
)
def test_a_lease_is_renewed_with_each_heartbeat_or_five_times(heartbeat: float, ttl: int, interval: float) -> None:
    assert renewal_interval(heartbeat, ttl) == interval


async def test_each_answer_moves_the_deadline(one: etcd.Cluster, open_store: Open) -> None:
    clock = ManualClock(monotonic=1000.0)
    store = open_store(*one.endpoints, clock=clock, heartbeat=0.01)
    session = await store.session(60)
    clock.advance(5_000)

    while session.deadline() < 1000 + 5 + 54:
        await asyncio.wait([asyncio.ensure_future(store.range(b"x"))])

    assert session.deadline() == pytest.approx(1059)


async def test_a_lease_shorter_than_etcd_allows_is_granted_longer(one: etcd.Cluster, open_store: Open) -> None:
    session = await open_store(*one.endpoints).session(0.1)

    assert session.ttl == 2


async def test_a_session_lives_as_long_as_its_owner_reaches_etcd(
    three: etcd.Cluster, open_store: Open, proxies: Proxies
) -> None:
    """The owner of the longer of two sessions is cut off, until its keys are gone."""
    ways = await proxies(three)
    alive, cut_off = open_store(*three.endpoints), open_store(*(proxy.endpoint for proxy in ways))
    prefix = b"sessions/%b/" % uuid4().hex.encode()
    kept, lost = await alive.session(5), await cut_off.session(6)
    put = await alive.txn((), (Put(prefix + b"kept", b"", kept.lease), Put(prefix + b"lost", b"", lost.lease)))
    watch = alive.watch(prefix, put.revision)

    for proxy in ways:
        proxy.cut()
    deleted = await _deletion(watch)

    assert SystemClock().boot_time() > lost.deadline()
    assert deleted == prefix + b"lost"
    assert [kv.key for kv in (await alive.range(prefix))[0]] == [prefix + b"kept"]
    assert not kept.lost.is_set()
    for proxy in ways:
        proxy.heal()
    await asyncio.wait_for(lost.lost.wait(), 60)
    assert cut_off.counts.sessions_lost == 1
    assert cut_off.counts.renewals_failed
    assert (await cut_off.session(2)).lease != lost.lease


async def test_a_session_that_is_revoked_by_another_broker_is_lost(one: etcd.Cluster, open_store: Open) -> None:
    session = await open_store(*one.endpoints).session(2)

    await open_store(*one.endpoints).revoke(session.lease)

    await asyncio.wait_for(session.lost.wait(), 60)


async def test_a_closed_store_leaves_the_lease_to_expire(one: etcd.Cluster, open_store: Open) -> None:
    store, other = open_store(*one.endpoints), open_store(*one.endpoints)
    key = b"left/%b" % uuid4().bytes
    session = await store.session(4)
    revision = (await store.txn((), (Put(key, b"", session.lease),))).revision

    await store.close()

    assert len((await other.range(key))[0]) == 1
    assert await _deletion(other.watch(key, revision)) == key
