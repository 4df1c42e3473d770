from __future__ import annotations

import pytest

from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.administration.unregistration import forget_broker
from odradek.broker.metadata.image import MetadataImage, PartitionImage
from odradek.broker.metadata.leaders.elections import PREFERRED, UNCLEAN, Election, balance_leaders, elect
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Put
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


async def outcome(metadata: Metadata, election: Election) -> ErrorCode:
    """Run an election for the partition, and return its error code."""
    [error] = await elect(metadata, [("t", 0)], election)
    return ErrorCode.NONE if error is None else error.code


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
    assert await outcome(second, PREFERRED) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE  # it is out of sync

    before = partition(second)
    in_sync = {1: back.broker_epoch, 2: second.broker_epoch}
    await set_isr(second, in_sync)
    assert await outcome(second, PREFERRED) is ErrorCode.NONE

    after = partition(second)
    assert (after.leader, after.leader_epoch, after.isr) == (1, before.leader_epoch + 1, in_sync)


async def test_an_election_that_changes_nothing_is_not_needed(shared: InMemoryStore, start: Start) -> None:
    first, _ = await two_brokers(shared, start)

    for election in (PREFERRED, UNCLEAN):
        assert await outcome(first, election) is ErrorCode.ELECTION_NOT_NEEDED


async def test_an_unclean_election_elects_any_live_replica(shared: InMemoryStore, start: Start) -> None:
    first, second = await two_brokers(shared, start)
    await set_isr(first, {1: first.broker_epoch})
    await first.stop(clean=True)
    await until(second, lambda image: image.topics["t"].partitions[0].leader == -1)

    assert await outcome(second, UNCLEAN) is ErrorCode.NONE

    assert (partition(second).leader, partition(second).isr) == (2, {2: second.broker_epoch})


async def led_by_the_second(first: Metadata, second: Metadata, partitions: int) -> list[PartitionState]:
    """Create a topic of which the second of two brokers leads all partitions, although the first is preferred."""
    await create_topic(first, "many", assignments={index: [1, 2] for index in range(partitions)})
    topic = first.image.topics["many"]
    states = [PartitionState(2, 1, each.isr, each.partition_epoch + 1) for each in topic.partitions]
    for index, state in enumerate(states):
        await first.commit((), (Put(first.keys.partition_state(topic.topic_id, index), encode(state)),))
    await until(second, lambda image: leaders(image) == [2] * partitions)
    return states


def leaders(image: MetadataImage) -> list[int]:
    topic = image.topics.get("many")
    return [] if topic is None else [partition.leader for partition in topic.partitions]


async def test_many_partitions_need_one_transaction(shared: InMemoryStore, start: Start) -> None:
    first, second = await two_brokers(shared, start)
    await led_by_the_second(first, second, 100)
    before = first.image.revision

    outcomes = await elect(first, [("many", index) for index in range(100)], PREFERRED)

    assert outcomes == [None] * 100
    assert leaders(first.image) == [1] * 100
    assert first.image.revision == before + 1


async def test_an_election_decided_on_an_old_image_is_decided_again(shared: InMemoryStore, start: Start) -> None:
    first, second = await two_brokers(shared, start)
    [state] = await led_by_the_second(first, second, 1)
    topic_id = first.image.topics["many"].topic_id
    later = PartitionState(2, 1, {2: second.broker_epoch}, state.partition_epoch + 1)
    await shared.txn((), (Put(first.keys.partition_state(topic_id, 0), encode(later)),))

    [error] = await elect(first, [("many", 0)], PREFERRED)

    assert error is not None
    assert error.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert leaders(first.image) == [2]


async def test_only_the_controller_returns_leadership_to_the_preferred_replicas(
    shared: InMemoryStore, start: Start
) -> None:
    first, second = await two_brokers(shared, start)
    await led_by_the_second(first, second, 130)

    await balance_leaders(second)
    assert leaders(second.image) == [2] * 130
    await balance_leaders(first)

    assert leaders(first.image) == [1] * 130
    assert {each.leader_epoch for each in first.image.topics["many"].partitions} == {2}


async def test_a_preferred_replica_out_of_sync_is_not_elected_by_itself(shared: InMemoryStore, start: Start) -> None:
    first, second = await two_brokers(shared, start)
    await led_by_the_second(first, second, 1)
    await set_leader_alone(first, second)
    before = first.image.revision

    await balance_leaders(first)

    assert (leaders(first.image), first.image.revision) == ([2], before)


async def set_leader_alone(metadata: Metadata, leader: Metadata) -> None:
    topic = metadata.image.topics["many"]
    state = PartitionState(2, 1, {2: leader.broker_epoch}, topic.partitions[0].partition_epoch + 1)
    await metadata.commit((), (Put(metadata.keys.partition_state(topic.topic_id, 0), encode(state)),))


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
