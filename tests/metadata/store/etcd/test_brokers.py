"""The metadata of brokers over etcd: the parts above the store, with foreign keys and a member that dies."""

from __future__ import annotations

import asyncio

from odradek.broker.clock import SystemClock
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.cluster_record import begin_cluster
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.etcd.options import EtcdOptions
from odradek.broker.metadata.store.etcd.session import EtcdSession
from odradek.broker.metadata.store.etcd.store import EtcdStore
from odradek.broker.metadata.store.store import DeletePrefix, Put, absent
from odradek.broker.metadata.values import ClusterRecord
from tests.metadata.conftest import CLUSTER_ID, Start, until
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


async def test_a_namespace_that_vanishes_freezes_the_metadata_until_it_is_there_again(
    one: etcd.Cluster, start: Start
) -> None:
    """As `etcdctl del --prefix` does it, while the sessions of the brokers live on."""
    keys = Keys("vanishing")
    stores = [_PatientStore(EtcdOptions(tuple(one.endpoints)), SystemClock()) for _ in range(3)]
    operator = stores.pop()
    await begin_cluster(operator, keys, ClusterRecord(CLUSTER_ID, 0), adopts=False)
    properties = {"metadata_etcd_namespace": "vanishing", "is_shared": True}
    brokers = [await start(store, node_id, **properties) for node_id, store in enumerate(stores, 1)]
    await until(brokers[0], lambda image: len(image.brokers) == 2)
    topic = await create_topic(brokers[0], "t", 3, 2)
    await until(brokers[1], lambda image: "t" in image.topics)
    epochs = [broker.broker_epoch for broker in brokers]
    lost, _ = await operator.range(keys.prefix)

    await operator.txn((), (DeletePrefix(keys.prefix),))
    async with asyncio.timeout(60):
        while None in [broker.why_frozen for broker in brokers]:
            await operator.range(keys.prefix)
    assert [broker.image.topics["t"].topic_id for broker in brokers] == [topic.topic_id] * 2

    await operator.txn((), [Put(kv.key, kv.value) for kv in lost if not kv.lease])

    for broker in brokers:
        image = await until(
            broker, lambda image: [each.epoch > max(epochs) for each in image.brokers.values()] == [True, True], 60
        )
        assert image.topics["t"].topic_id == topic.topic_id
    await create_topic(brokers[1], "another")
    for broker in reversed(brokers):
        await broker.stop(clean=False)
    for store in (*stores, operator):
        await store.close()
