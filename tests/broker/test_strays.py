"""The logs of a broker that returns, after its topics were deleted, moved or lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topics import create_topic, delete_topic
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.store.store import Delete, DeletePrefix, Put
from odradek.broker.metadata.values import Assignment, encode
from odradek.protocol.errors import ErrorCode
from tests.broker.replicating import Cluster, three_brokers


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Three brokers with topic `t`; broker 3 has a replica with a record, and is down."""
    async with three_brokers(tmp_path) as made:
        await made.create()
        assert await made.produce(1, b"old") is ErrorCode.NONE
        await made.stop(3)
        yield made


def directories(broker: Broker) -> list[str]:
    """The directories of partition t-0, without the random part of their names."""
    names = sorted(each.name for each in broker.log_dir.path.glob("t-0*"))
    return [f"t-0{name[name.rindex('-') :]}" if "." in name else name for name in names]


def topic(cluster: Cluster) -> TopicImage:
    return cluster.brokers[1].services.metadata.image.topics["t"]


async def returned(cluster: Cluster) -> Broker:
    broker = await cluster.start(3)
    await broker.services.partitions.settled()
    return broker


async def test_the_log_of_a_topic_that_was_deleted_is_deleted(cluster: Cluster) -> None:
    await delete_topic(cluster.brokers[1].services.metadata, name="t")

    broker = await returned(cluster)

    assert directories(broker) == ["t-0-delete"]


async def test_the_log_of_a_topic_that_was_created_again_elsewhere_is_deleted(cluster: Cluster) -> None:
    metadata = cluster.brokers[1].services.metadata
    await delete_topic(metadata, name="t")
    await create_topic(metadata, "t", assignments={0: [1, 2]})

    broker = await returned(cluster)

    assert directories(broker) == ["t-0-delete"]


async def test_the_log_of_a_topic_that_was_created_again_here_makes_room_for_another(cluster: Cluster) -> None:
    metadata = cluster.brokers[1].services.metadata
    await delete_topic(metadata, name="t")
    await create_topic(metadata, "t", assignments={0: [1, 3]})

    broker = await returned(cluster)

    assert directories(broker) == ["t-0", "t-0-delete"]
    assert broker.services.partitions.get("t", 0).log.log_end_offset == 0


async def test_the_log_of_a_topic_that_is_gone_but_was_not_deleted_is_set_aside(cluster: Cluster) -> None:
    keys, gone = cluster.brokers[1].services.metadata.keys, topic(cluster)
    await cluster.store.txn((), (Delete(keys.topic_name("t")), DeletePrefix(keys.topic(gone.topic_id))))

    broker = await returned(cluster)

    assert directories(broker) == ["t-0-stray"]
    assert "t" not in broker.services.metadata.image.topics


async def test_the_log_of_a_replica_that_was_moved_is_set_aside(cluster: Cluster) -> None:
    metadata, moved = cluster.brokers[1].services.metadata, topic(cluster)
    await metadata.commit((), (Put(metadata.keys.assignment(moved.topic_id, 0), encode(Assignment([1, 2]))),))

    broker = await returned(cluster)

    assert directories(broker) == ["t-0-stray"]
    assert await cluster.values(cluster.leader()) == [b"old"]
