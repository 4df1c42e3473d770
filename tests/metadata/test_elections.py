from __future__ import annotations

import pytest

from odradek.broker.metadata.elections import PREFERRED, UNCLEAN, elect
from odradek.broker.metadata.image import PartitionImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Put
from odradek.broker.metadata.topics import create_topic
from odradek.broker.metadata.unregistration import forget_broker
from odradek.broker.metadata.values import PartitionState, encode
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.metadata.conftest import Start, until


def partition(metadata: Metadata) -> PartitionImage:
    return metadata.image.topics["t"].partitions[0]


async def two_brokers(shared: InMemoryStore, start: Start) -> tuple[Metadata, Metadata]:
    """Return two brokers; the first leads the partition of a topic, the second follows."""
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    await create_topic(first, "t", assignments={0: [1, 2]})
    return first, second


async def set_isr(metadata: Metadata, isr: dict[int, int]) -> None:
    """Write an ISR, as the leader does when a follower has caught up or fallen behind."""
    before = partition(metadata)
    key = metadata.keys.partition_state(metadata.image.topics["t"].topic_id, 0)
    state = PartitionState(before.leader, before.leader_epoch, isr, before.partition_epoch + 1)
    await metadata.commit((), (Put(key, encode(state)),))


async def test_a_preferred_election_elects_the_first_replica_if_it_is_in_sync(
    shared: InMemoryStore, start: Start
) -> None:
    first, second = await two_brokers(shared, start)
    await first.stop(clean=True)
    await until(second, lambda image: image.topics["t"].partitions[0].leader == 2)
    back = await start(shared, 1)
    with pytest.raises(KafkaError) as caught:
        await elect(second, "t", 0, PREFERRED)
    assert caught.value.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE  # it is out of sync

    before = partition(second)
    in_sync = {1: back.broker_epoch, 2: second.broker_epoch}
    await set_isr(second, in_sync)
    await elect(second, "t", 0, PREFERRED)

    after = partition(second)
    assert (after.leader, after.leader_epoch, after.isr) == (1, before.leader_epoch + 1, in_sync)


async def test_an_election_that_changes_nothing_is_not_needed(shared: InMemoryStore, start: Start) -> None:
    first, _ = await two_brokers(shared, start)

    for election in (PREFERRED, UNCLEAN):
        with pytest.raises(KafkaError) as caught:
            await elect(first, "t", 0, election)
        assert caught.value.code is ErrorCode.ELECTION_NOT_NEEDED


async def test_an_unclean_election_elects_any_live_replica(shared: InMemoryStore, start: Start) -> None:
    first, second = await two_brokers(shared, start)
    await set_isr(first, {1: first.broker_epoch})
    await first.stop(clean=True)
    await until(second, lambda image: image.topics["t"].partitions[0].leader == -1)

    await elect(second, "t", 0, UNCLEAN)

    assert (partition(second).leader, partition(second).isr) == (2, {2: second.broker_epoch})


async def test_an_unregistered_broker_is_new_when_it_returns(shared: InMemoryStore, start: Start) -> None:
    first, second = await two_brokers(shared, start)
    with pytest.raises(KafkaError) as running:
        await forget_broker(first, 2)
    await second.stop(clean=True)
    await until(first, lambda image: 2 not in image.registered)

    await forget_broker(first, 2)

    with pytest.raises(KafkaError) as unknown:
        await forget_broker(first, 2)
    assert running.value.code is ErrorCode.INVALID_REQUEST
    assert unknown.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
