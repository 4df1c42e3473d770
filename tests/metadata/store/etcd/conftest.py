"""Members of etcd that a test may hurt, and stores in them. Only on uvloop, as brokers run: the tests of all stores run
on both loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
import uvloop

from odradek.broker.clock import Clock, SystemClock
from odradek.broker.metadata.store.etcd.options import EtcdOptions
from odradek.broker.metadata.store.etcd.store import EtcdStore
from tests.metadata.store.etcd.proxy import Proxy
from tests.peers import etcd

Open = Callable[..., EtcdStore]


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def _three() -> Iterator[etcd.Cluster]:
    with etcd.running(3) as cluster:
        yield cluster


@pytest.fixture
def three(_three: etcd.Cluster) -> Iterator[etcd.Cluster]:
    """Three members, all of which run again afterwards."""
    yield _three
    _repair(_three)


@pytest.fixture(scope="session")
def _one() -> Iterator[etcd.Cluster]:
    with etcd.running(1) as cluster:
        yield cluster


@pytest.fixture
def one(_one: etcd.Cluster) -> Iterator[etcd.Cluster]:
    """One member, which runs again afterwards."""
    yield _one
    _repair(_one)


@pytest.fixture(params=["one", "three"])
def cluster(request: pytest.FixtureRequest) -> etcd.Cluster:
    """One member, and three."""
    cluster: etcd.Cluster = request.getfixturevalue(request.param)
    return cluster


def _repair(cluster: etcd.Cluster) -> None:
    dead = [member for member in cluster.members if member.process.poll() is not None]
    for member in cluster.members:
        if member in dead:
            member.start(wait=False)
        else:
            member.resume()
    for member in cluster.members:
        member.wait_until_ready()


@pytest.fixture
async def open_store() -> AsyncIterator[Open]:
    """Opens stores, and closes them at the end."""
    opened: list[EtcdStore] = []

    def open_store(*endpoints: str, clock: Clock | None = None, **options: object) -> EtcdStore:
        opened.append(EtcdStore(EtcdOptions(endpoints, **options), clock or SystemClock()))
        return opened[-1]

    yield open_store
    for store in opened:
        await store.close()


@pytest.fixture
async def proxies() -> AsyncIterator[Callable[[etcd.Cluster], Awaitable[list[Proxy]]]]:
    """Puts a proxy before each member of a cluster, the leader's first."""
    async with AsyncExitStack() as stack:

        async def proxies(cluster: etcd.Cluster) -> list[Proxy]:
            members = leader_first(cluster)
            return [await stack.enter_async_context(Proxy(member.port)) for member in members]

        yield proxies


def leader_first(cluster: etcd.Cluster) -> list[etcd.Member]:
    leader = cluster.leader
    return [leader, *(member for member in cluster.members if member is not leader)]
