"""Three brokers in one process that replicate partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.metadata.administration.topics import create_topic, delete_topic, grow_topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.broker.replicating import Cluster, three_brokers
from tests.wire import Wire


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with three_brokers(tmp_path) as made:
        yield made


async def test_what_is_acknowledged_by_all_is_on_every_broker(cluster: Cluster) -> None:
    await cluster.create()

    for number in range(20):
        assert await cluster.produce(1, b"%d" % number) is ErrorCode.NONE

    ends = [cluster.partition(node).log.log_end_offset for node in (1, 2, 3)]  # type: ignore[union-attr]
    assert ends == [20, 20, 20]
    assert cluster.log_bytes(2) == cluster.log_bytes(3) == cluster.log_bytes(1)
    assert await cluster.produce(2, b"x") is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_leader_that_stops_loses_nothing_and_returns_as_a_follower(cluster: Cluster) -> None:
    await cluster.create()
    assert await cluster.produce(1, b"one", b"two") is ErrorCode.NONE

    await cluster.stop(1)
    leader = await cluster.led_by_another(1)
    assert await cluster.values(leader) == [b"one", b"two"]
    assert await cluster.produce(leader, b"three") is ErrorCode.NONE
    await cluster.start(1)
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))

    assert await cluster.produce(leader, b"four") is ErrorCode.NONE
    assert cluster.log_bytes(1) == cluster.log_bytes(2) == cluster.log_bytes(3)


async def test_a_leader_that_loses_its_session_cannot_acknowledge_alone(cluster: Cluster) -> None:
    await cluster.create()
    assert await cluster.produce(1, b"one") is ErrorCode.NONE
    ((kv, *_), _) = await cluster.store.range(cluster.brokers[1].services.metadata.keys.broker_id(1))

    await cluster.store.revoke(kv.lease)

    leader = await cluster.led_by_another(1)
    assert await cluster.produce(leader, b"two") is ErrorCode.NONE
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))
    assert cluster.log_bytes(1) == cluster.log_bytes(2) == cluster.log_bytes(3)


async def test_too_few_in_sync_replicas_refuse_writes_to_all(cluster: Cluster) -> None:
    await cluster.create(min_insync_replicas="2")
    await cluster.stop(2)
    await cluster.stop(3)
    await cluster.until(lambda: cluster.in_sync(1))

    assert await cluster.produce(1, b"no") is ErrorCode.NOT_ENOUGH_REPLICAS
    assert await cluster.produce(1, b"yes", acks=1) is ErrorCode.NONE
    assert await cluster.values(1) == [], "it is not committed"

    await cluster.start(2)
    await cluster.until(lambda: cluster.in_sync(1, 2))
    assert await cluster.produce(1, b"more") is ErrorCode.NONE
    assert await cluster.values(1) == [b"yes", b"more"]


async def test_a_topic_that_is_deleted_and_created_again_is_another_one_everywhere(cluster: Cluster) -> None:
    await cluster.create()
    assert await cluster.produce(1, b"old") is ErrorCode.NONE
    await cluster.stop(3)
    await delete_topic(cluster.brokers[1].services.metadata, name="t")
    await cluster.until(lambda: all(cluster.partition(node) is None for node in (1, 2)))
    await create_topic(cluster.brokers[1].services.metadata, "t", assignments={0: [1, 2, 3]})
    await cluster.until(lambda: cluster.partition(1) is not None and cluster.partition(2) is not None)
    await cluster.until(lambda: cluster.leader() == 1)
    assert await cluster.produce(1, b"new") is ErrorCode.NONE

    await cluster.start(3)
    await cluster.until(lambda: cluster.in_sync(1, 2, 3))

    assert cluster.log_bytes(3) == cluster.log_bytes(1)
    assert await cluster.values(1) == [b"new"]


async def test_a_topic_grows_while_a_replica_is_down(cluster: Cluster) -> None:
    await cluster.create()
    await cluster.stop(3)
    metadata = cluster.brokers[1].services.metadata

    await grow_topic(metadata, "t", 3)

    assert [len(each.replicas) for each in metadata.image.topics["t"].partitions] == [3, 3, 3]
    assert all(3 not in each.isr for each in metadata.image.topics["t"].partitions)
    await cluster.start(3)
    await cluster.until(
        lambda: all(len(each.isr) == 3 for each in cluster.brokers[1].services.metadata.image.topics["t"].partitions)
    )


async def test_deleted_records_are_deleted_on_all_brokers_when_the_answer_comes(cluster: Cluster) -> None:
    await cluster.create()
    assert await cluster.produce(1, b"one", b"two") is ErrorCode.NONE
    assert await cluster.produce(1, b"three") is ErrorCode.NONE

    request = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 2)])], 30_000)
    async with Wire("127.0.0.1", cluster.brokers[1].port) as wire:
        [topic] = (await wire.ask(request, 2)).topics

    assert (topic.partitions[0].error_code, topic.partitions[0].low_watermark) == (ErrorCode.NONE, 2)
    starts = [cluster.partition(node).log.log_start_offset for node in (1, 2, 3)]  # type: ignore[union-attr]
    assert starts == [2, 2, 2]
