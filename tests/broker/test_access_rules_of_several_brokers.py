"""Access rules in a cluster: brokers need ClusterAction to follow and to send markers, and all have the same rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topics import create_topic
from odradek.protocol.access_rules import CLUSTER_NAME, Operation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.replicating import Cluster, three_brokers
from tests.handlers.requests import batch, produce
from tests.handlers.secured import CLUSTER, TOPIC, allow, coordinate, revoke, secure
from tests.handlers.transactional_batches import ProducingProducer
from tests.wire import Wire

MAY_FOLLOW = Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME


class Secured(Cluster):
    """Brokers with an authorizer."""

    def prepare(self, broker: Broker) -> None:
        secure(broker)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Secured]:
    async with three_brokers(tmp_path, Secured, transaction_state_log_num_partitions="1") as made:
        yield made


@pytest.fixture
async def admin(cluster: Secured) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", cluster.brokers[1].port, "admin") as connected:
        yield connected


async def test_a_broker_follows_as_soon_as_it_may(cluster: Secured, admin: Wire) -> None:
    await cluster.create()
    assert (await produce(admin, "t", batch(b"one"))).error_code == ErrorCode.NONE
    await cluster.until(lambda: cluster.in_sync(1))  # the others are refused, and leave the in-sync set

    await allow(admin, "broker", MAY_FOLLOW)
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))
    assert (await produce(admin, "t", batch(b"two"), acks=-1)).error_code == ErrorCode.NONE
    assert cluster.log_bytes(1) == cluster.log_bytes(2) == cluster.log_bytes(3)

    await revoke(admin, "broker")
    assert (await produce(admin, "t", batch(b"three"))).error_code == ErrorCode.NONE
    await cluster.until(lambda: cluster.in_sync(1))


async def test_a_rule_holds_on_every_broker(cluster: Secured, admin: Wire) -> None:
    await cluster.create()
    wanted = MetadataRequest([MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    async with (
        Wire("127.0.0.1", cluster.brokers[2].port, "alice") as second,
        Wire("127.0.0.1", cluster.brokers[3].port, "alice") as third,
    ):
        for wire in (second, third):
            assert (await wire.ask(wanted, 9)).topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await allow(admin, "alice", (Operation.DESCRIBE, TOPIC, "t"))
        for wire in (second, third):
            while (await wire.ask(wanted, 9)).topics[0].error_code != ErrorCode.NONE:
                pass
        await revoke(admin, "alice")
        for wire in (second, third):
            while (await wire.ask(wanted, 9)).topics[0].error_code == ErrorCode.NONE:
                pass


async def test_transactions_reach_the_partitions_of_other_brokers(cluster: Secured, admin: Wire) -> None:
    await allow(admin, "broker", MAY_FOLLOW)
    metadata = cluster.brokers[1].services.metadata
    await create_topic(metadata, "__transaction_state", assignments={0: [1]})
    await create_topic(metadata, "t", assignments={0: [2]})
    await cluster.until(lambda: (found := cluster.partition(2)) is not None and found.is_leader)
    await coordinate(admin)
    producer = ProducingProducer(admin)
    await producer.start()
    coordinator = producer.wire
    async with Wire("127.0.0.1", cluster.brokers[2].port, "admin") as leader:
        producer.wire = leader
        assert (await producer.produce("t", b"v")).error_code == ErrorCode.NONE
    producer.wire = coordinator
    await producer.finish(commit=True)
    while (await producer.describe()).transaction_state != "CompleteCommit":
        pass
