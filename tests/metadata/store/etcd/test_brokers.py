"""The metadata of brokers over etcd: the parts above the store, with foreign keys and a member that dies."""

from __future__ import annotations

import asyncio

from odradek.broker.clock import SystemClock
from odradek.broker.metadata.store.etcd.options import EtcdOptions
from odradek.broker.metadata.store.etcd.session import EtcdSession
from odradek.broker.metadata.store.etcd.store import EtcdStore
from odradek.broker.metadata.store.store import Put, absent
from odradek.broker.metadata.topics import create_topic
from tests.metadata.conftest import Start, until
from tests.metadata.store.etcd.conftest import leader_first
from tests.peers import etcd

pytestmark = etcd.MARKS


class _PatientStore(EtcdStore):
    """Sessions that survive the stalls of a machine that runs other tests."""

    async def session(self, ttl: float) -> EtcdSession:
        return await super().session(max(ttl, 60))


async def test_brokers_agree_although_foreign_keys_change_and_a_member_dies(three: etcd.Cluster, start: Start) -> None:
    leader, *others = leader_first(three)
    endpoints = [leader.bootstrap, *(member.bootstrap for member in others)]
    stores = [_PatientStore(EtcdOptions(tuple(order)), SystemClock()) for order in (endpoints, endpoints[::-1])]
    first, second = await start(stores[0], 1), await start(stores[1], 2)
    await create_topic(first, "before", 3)
    await until(second, lambda image: "before" in image.topics)

    for metadata in (first, second):
        foreign = await stores[0].txn((), (Put(b"/of another program", b""),))
        result = await asyncio.wait_for(
            metadata.commit((absent(metadata.keys.cluster),), (Put(metadata.keys.cluster, b""),)), 30
        )
        assert not result.ok
        assert metadata.image.revision >= result.revision >= foreign.revision
    leader.kill()
    created = await asyncio.wait_for(create_topic(second, "after", 3), 60)

    await until(first, lambda image: "after" in image.topics)
    assert first.image.topics["after"].topic_id == created.topic_id
    assert first.image.brokers.keys() == second.image.brokers.keys() == {1, 2}
    assert {partition.leader for partition in first.image.topics["after"].partitions} == {1, 2}
    await second.stop()
    await until(first, lambda image: image.brokers.keys() == {1})
    await first.stop()
    for store in stores:
        await store.close()
