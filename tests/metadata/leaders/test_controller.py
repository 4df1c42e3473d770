"""Several brokers on one store: the controller, and leaders when brokers join and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from odradek.broker.metadata.administration.alter_configs import Change, alter_broker_configs, alter_topic_configs
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.image import ImageChange, MetadataImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leaders.controller import Controller
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Cmp, Op, Put, StoreError, TxnResult
from odradek.broker.metadata.values import ControllerRecord, PartitionState, encode
from odradek.broker.storage.log_config import LogConfig
from tests.metadata.conftest import Start, until


async def _kill(store: InMemoryStore, *brokers: Metadata) -> None:
    """End processes at once, and then their leases."""
    for metadata in brokers:
        await metadata.stop(clean=False)
    for metadata in brokers:
        ((kv, *_), _) = await store.range(metadata.keys.broker_id(metadata.config.node_id))
        await store.revoke(kv.lease)


def _leaders(image: MetadataImage, topic: str = "t") -> list[int]:
    return [partition.leader for partition in image.topics[topic].partitions]


async def test_the_first_broker_is_the_controller(shared: InMemoryStore, start: Start) -> None:
    brokers = [await start(shared, node_id) for node_id in (3, 1, 2)]

    image = await until(brokers[0], lambda image: len(image.brokers) == 3)

    assert image.controller_id == 3
    assert list(image.brokers) == [1, 2, 3]


async def test_every_broker_sees_a_topic_that_one_created(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)

    created = await create_topic(first, "t", 3, 2)

    assert [partition.replicas for partition in created.partitions] == [[1, 2], [2, 1], [1, 2]]
    image = await until(second, lambda image: "t" in image.topics)
    assert image.topics["t"] == created


async def test_a_dead_brokers_partitions_are_led_by_others(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    await create_topic(first, "t", 4, 2)
    await create_topic(first, "lonely", assignments={0: [2]})

    await _kill(shared, second)

    image = await until(first, lambda image: _leaders(image) == [1] * 4 and _leaders(image, "lonely") == [-1])
    assert [partition.leader_epoch for partition in image.topics["t"].partitions] == [0, 1, 0, 1]
    assert [list(partition.isr) for partition in image.topics["t"].partitions] == [[1]] * 4
    assert list(image.topics["lonely"].partitions[0].isr) == [2]


async def test_a_partition_with_one_replica_has_a_leader_again_when_its_broker_returns(
    shared: InMemoryStore, start: Start
) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    await create_topic(first, "t", assignments={0: [2]})
    await second.stop()
    await until(first, lambda image: _leaders(image) == [-1])

    again = await start(shared, 2)

    image = await until(again, lambda image: _leaders(image) == [2])
    assert image.topics["t"].partitions[0].leader_epoch == 2


async def test_after_a_power_failure_of_all_brokers_a_partition_is_led_when_all_in_sync_replicas_are_back(
    shared: InMemoryStore, start: Start
) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    await create_topic(first, "t", assignments={0: [1, 2]})
    await _kill(shared, first, second)

    again = await start(shared, 1, boot_id="boot 2")
    image = await until(again, lambda image: _leaders(image) == [-1])
    assert list(image.topics["t"].partitions[0].isr) == [2], "broker 2 may have lost nothing"
    last = await start(shared, 2, boot_id="boot 2")

    image = await until(again, lambda image: _leaders(image) == [2])
    assert image.topics["t"].partitions[0].isr == {2: last.broker_epoch}


async def test_many_partitions_change_leaders_at_once(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    await create_topic(first, "t", 700, 2)

    await second.stop()

    await until(first, lambda image: _leaders(image) == [1] * 700)


async def test_another_broker_takes_over_from_a_dead_controller(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(second, lambda image: len(image.brokers) == 2)
    await create_topic(second, "t", 2, 2)

    await _kill(shared, first)

    image = await until(second, lambda image: _leaders(image) == [2, 2])
    assert image.controller_id == 2


class _RepeatingStore(InMemoryStore):
    """A store that gets each controller's key twice, and of which only the second answer arrives."""

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        if any(isinstance(op, Put) and op.key == Keys().controller for op in then):
            await super().txn(when, then)
        return await super().txn(when, then)


async def test_a_controller_whose_key_was_put_by_an_attempt_without_an_answer_acts(start: Start) -> None:
    store = _RepeatingStore()
    first, second = await start(store, 1), await start(store, 2)
    assert (await until(first, lambda image: len(image.brokers) == 2)).controller_id == 1
    await create_topic(first, "t", 2, 2)

    await _kill(store, second)

    async with asyncio.timeout(10):
        await until(first, lambda image: _leaders(image) == [1, 1])
    await first.stop()
    await store.close()


async def test_a_deposed_controller_cannot_change_anything(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    topic = await create_topic(first, "t", 1, 2)
    keys = first.keys
    stale = msgspec.structs.replace(first.image, brokers={2: first.image.brokers[2]})
    record = ControllerRecord(1, "zombie")
    # Only if it has changed something does it wait for an image of a later revision, which never comes here.
    changed = StoreError("it has changed something")
    zombie = Controller(shared, keys, record, lambda _: LogConfig(), lambda _: zombie.fail(changed))
    zombie.epoch = stale.controller_epoch
    await _kill(shared, first)
    # Undo the changes of the new controller, except its key: only the key keeps the deposed one from changing anything.
    image = await until(second, lambda image: _leaders(image) == [2])
    state_key = keys.partition_state(topic.topic_id, 0)
    kept = topic.partitions[0]
    result = await shared.txn((), (Put(state_key, kept.state_value),))
    await until(second, lambda image: image.revision > result.revision and _leaders(image) == [2])
    (before,), revision = await shared.range(state_key)
    partition = msgspec.structs.replace(kept, state_revision=before.mod_revision)
    believed = msgspec.structs.replace(topic, partitions=[partition])
    by_id = {topic.topic_id: believed}
    stale = msgspec.structs.replace(stale, topics={"t": believed}, topics_by_id=by_id, revision=revision)

    zombie.image_changed(ImageChange(MetadataImage(), stale, stale.topics_by_id))
    task = asyncio.ensure_future(zombie.run())
    await asyncio.wait_for(zombie.settled(), 10)

    assert (await shared.range(state_key)) == ([before], revision)
    assert image.controller_id == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_session_that_is_not_renewed_ends(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2, session_seconds=0.01)
    await until(first, lambda image: len(image.brokers) == 2)
    await second.stop(clean=False)

    shared.sessions[-1].abandon()

    await until(first, lambda image: list(image.brokers) == [1])


async def test_a_topic_may_prefer_a_leader_that_lacks_records_to_none(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(second, lambda image: len(image.brokers) == 2)
    topic = await create_topic(second, "t", assignments={0: [1, 2]})
    key = second.keys.partition_state(topic.topic_id, 0)
    alone = PartitionState(1, 0, {1: first.broker_epoch}, 1)
    assert (await second.commit((), (Put(key, encode(alone)),))).ok
    await _kill(shared, first)
    await until(second, lambda image: _leaders(image) == [-1])

    await alter_topic_configs(second, "t", [Change("unclean.leader.election.enable", "true")])

    image = await until(second, lambda image: _leaders(image) == [2])
    assert image.topics["t"].partitions[0].isr == {2: second.broker_epoch}


async def test_the_brokers_default_may_allow_unclean_elections_of_all_topics(
    shared: InMemoryStore, start: Start
) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(second, lambda image: len(image.brokers) == 2)
    topic = await create_topic(second, "t", assignments={0: [1, 2]})
    alone = PartitionState(1, 0, {1: first.broker_epoch}, 1)
    await second.commit((), (Put(second.keys.partition_state(topic.topic_id, 0), encode(alone)),))
    await _kill(shared, first)
    await until(second, lambda image: _leaders(image) == [-1])

    await alter_broker_configs(second, None, [Change("unclean.leader.election.enable", "true")])

    await until(second, lambda image: _leaders(image) == [2])
