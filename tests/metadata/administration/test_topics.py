from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from odradek.broker.metadata.administration.alter_configs import (
    Change,
    Operation,
    alter_broker_configs,
    alter_topic_configs,
)
from odradek.broker.metadata.administration.topics import create_topic, delete_topic, find_topic, grow_topic
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.producer_id_blocks import BLOCK_SIZE, ProducerIdBlocks
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import MetadataStore, Put
from odradek.broker.metadata.values import DeletedTopic, ProducerIds, decode_topic, encode
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.uuids import uuid_to_text
from tests.metadata.conftest import Start, until
from tests.metadata.uncertain import ANSWER, LOSE_ANSWER, LOSE_REQUEST, UncertainStore


@pytest.fixture
async def metadata(store: MetadataStore, start: Start) -> Metadata:
    return await start(store)


async def _refused(metadata: Metadata, name: str = "t", **arguments: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await create_topic(metadata, name, **arguments)  # type: ignore[arg-type]
    assert caught.value.detail
    return caught.value.code


async def test_a_topic_exists_when_its_creation_returns(metadata: Metadata) -> None:
    topic = await create_topic(metadata, "t", 3, configs={"retention.ms": "5"})

    assert metadata.image.topics["t"] is topic
    assert metadata.image.topics_by_id[topic.topic_id] is topic
    assert topic.configs == {"retention.ms": "5"}
    for partition in topic.partitions:
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 0)
        assert (partition.replicas, partition.isr) == ([1], {1: metadata.broker_epoch})


async def test_omitted_numbers_are_the_brokers_defaults(store: MetadataStore, start: Start) -> None:
    metadata = await start(store, num_partitions="4")

    assert len((await create_topic(metadata, "t")).partitions) == 4
    assert await _refused(await start(InMemoryStore(), default_replication_factor="2")) is (
        ErrorCode.INVALID_REPLICATION_FACTOR
    )


@pytest.mark.parametrize("partitions", [60, 61, 120, 500, 10_000])
async def test_a_topic_of_any_size_appears_at_once(shared: InMemoryStore, start: Start, partitions: int) -> None:
    metadata = await start(shared)
    sizes: set[int] = set()
    metadata.on_change(lambda change: sizes.update(len(topic.partitions) for topic in change.after.topics.values()))

    topic = await create_topic(metadata, "t", partitions)

    assert sizes == {partitions}
    assert metadata.image.uncovered == {}
    ((kv,), _) = await shared.range(metadata.keys.topic_name("t"))
    record = decode_topic(kv.value)
    assert (record.id, record.partitions, record.rf) == (uuid_to_text(topic.topic_id), partitions, 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"name": "a b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"partitions": 10_001}, ErrorCode.POLICY_VIOLATION),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"assignments": {0: [9]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": {0: [1]}, "partitions": 1}, ErrorCode.INVALID_REQUEST),
        ({"assignments": {0: [1]}, "replication_factor": 1}, ErrorCode.INVALID_REQUEST),
        ({"configs": {"nope": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG),
    ],
)
async def test_an_invalid_creation_changes_nothing(
    metadata: Metadata, arguments: Mapping[str, object], code: ErrorCode
) -> None:
    before = metadata.image

    assert await _refused(metadata, **arguments) is code  # type: ignore[arg-type]
    assert metadata.image is before


async def test_a_topic_cannot_be_created_twice(metadata: Metadata) -> None:
    await create_topic(metadata, "a.b")

    assert await _refused(metadata, "a.b") is ErrorCode.TOPIC_ALREADY_EXISTS
    assert await _refused(metadata, "a_b") is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("partitions", [1, 100])
async def test_of_many_creations_of_one_name_one_succeeds(metadata: Metadata, partitions: int) -> None:
    results = await asyncio.gather(*(create_topic(metadata, "t", partitions) for _ in range(8)), return_exceptions=True)

    lost = [result for result in results if isinstance(result, KafkaError)]
    assert [error.code for error in lost] == [ErrorCode.TOPIC_ALREADY_EXISTS] * 7
    assert metadata.image.uncovered == {}
    kvs, _ = await metadata.store.range(metadata.keys.topics)
    assert len(kvs) == 1 + 2 * partitions


async def test_replicas_go_where_they_are_assigned(shared: InMemoryStore, start: Start) -> None:
    await start(shared, 2)
    metadata = await start(shared, 1)

    topic = await create_topic(metadata, "t", assignments={0: [2, 1], 1: [1, 2]})

    assert [(partition.leader, partition.replicas) for partition in topic.partitions] == [(2, [2, 1]), (1, [1, 2])]
    assert topic.partitions[0].isr == {node_id: broker.epoch for node_id, broker in metadata.image.brokers.items()}


async def test_a_configuration_that_an_earlier_topic_left_is_replaced(metadata: Metadata) -> None:
    for name in ("t", "u"):
        await metadata.commit((), (Put(metadata.keys.topic_config(name), b'{"flush.ms":"1"}'),))

    assert (await create_topic(metadata, "t")).configs == {}
    assert (await create_topic(metadata, "u", configs={"flush.ms": "2"})).configs == {"flush.ms": "2"}


async def test_validating_only_changes_nothing(metadata: Metadata) -> None:
    before = metadata.image

    topic = await create_topic(metadata, "t", 2, validate_only=True)

    assert len(topic.partitions) == 2
    assert metadata.image is before


@pytest.mark.parametrize("by", ["name", "id"])
async def test_deleting_a_topic_deletes_all_its_keys(metadata: Metadata, by: str) -> None:
    topic = await create_topic(metadata, "t", 200, configs={"retention.ms": "5"})
    keys = metadata.keys

    deleted = await (
        delete_topic(metadata, name="t") if by == "name" else delete_topic(metadata, topic_id=topic.topic_id)
    )

    assert deleted is topic
    assert (metadata.image.topics, metadata.image.topics_by_id, metadata.image.uncovered) == ({}, {}, {})
    assert [kv.key for kv in (await metadata.store.range(keys.topics))[0]] == [keys.topic_deleted(topic.topic_id)]
    assert metadata.image.deleted == {topic.topic_id: DeletedTopic("t", metadata.clock.time_ms())}
    assert (await metadata.store.range(keys.topic_configs))[0] == []
    assert (await create_topic(metadata, "t")).topic_id != topic.topic_id


async def test_a_topic_that_does_not_exist_cannot_be_deleted(metadata: Metadata) -> None:
    for arguments, code in (
        ({"name": "t"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"name": "a b"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_id": b"x" * 16}, ErrorCode.UNKNOWN_TOPIC_ID),
    ):
        with pytest.raises(KafkaError) as caught:
            await delete_topic(metadata, **arguments)
        assert caught.value.code is code


async def test_of_many_deletions_one_succeeds(metadata: Metadata) -> None:
    await create_topic(metadata, "t")

    results = await asyncio.gather(*(delete_topic(metadata, name="t") for _ in range(5)), return_exceptions=True)

    codes = sorted(result.code.name for result in results if isinstance(result, KafkaError))
    assert codes == ["UNKNOWN_TOPIC_OR_PARTITION"] * 4


async def test_deletion_can_be_disabled(store: MetadataStore, start: Start) -> None:
    metadata = await start(store, delete_topic_enable="false")
    await create_topic(metadata, "t")

    with pytest.raises(KafkaError) as caught:
        await delete_topic(metadata, name="t")
    assert caught.value.code is ErrorCode.TOPIC_DELETION_DISABLED


@pytest.mark.parametrize("what", [LOSE_REQUEST, LOSE_ANSWER])
async def test_lost_answers_change_no_outcome(start: Start, what: str) -> None:
    store = UncertainStore(iter([ANSWER] * 4 + [what] * 6))
    metadata = await start(store)

    topic = await create_topic(metadata, "t", 100)

    assert find_topic(metadata.image, name="t") is topic
    await delete_topic(metadata, name="t")
    remaining, _ = await store.range(metadata.keys.topics)
    assert [kv.key for kv in remaining] == [metadata.keys.topic_deleted(topic.topic_id)]
    await store.close()


async def test_a_cancelled_creation_is_complete_or_absent(metadata: Metadata) -> None:
    for turns in range(12):
        name = f"t{turns}"
        creation = asyncio.ensure_future(create_topic(metadata, name, 70))
        for _ in range(turns):
            await asyncio.sleep(0)
        creation.cancel()
        await asyncio.gather(creation, return_exceptions=True)
    await create_topic(metadata, "last")

    assert all(len(topic.partitions) == 70 for name, topic in metadata.image.topics.items() if name != "last")


async def test_a_topics_properties_are_set_and_deleted(metadata: Metadata) -> None:
    await create_topic(metadata, "t", configs={"retention.ms": "5"})

    await alter_topic_configs(metadata, "t", [Change("segment.bytes", "1000")])
    assert metadata.image.topics["t"].configs == {"retention.ms": "5", "segment.bytes": "1000"}
    await alter_topic_configs(metadata, "t", [Change("retention.ms", None, Operation.DELETE)])
    assert metadata.image.topics["t"].configs == {"segment.bytes": "1000"}
    await alter_topic_configs(metadata, "t", [Change("flush.ms", "7")], replace=True)
    assert metadata.image.topics["t"].configs == {"flush.ms": "7"}
    await alter_topic_configs(metadata, "t", [], replace=True)
    assert metadata.image.topics["t"].configs == {}
    assert (await metadata.store.range(metadata.keys.topic_configs))[0] == []


async def test_invalid_properties_are_refused(metadata: Metadata) -> None:
    await create_topic(metadata, "t")
    before = metadata.image

    for name, changes, code in (
        ("t", {"retention.ms": "-5"}, ErrorCode.INVALID_CONFIG),
        ("t", {"nope": "1"}, ErrorCode.INVALID_CONFIG),
        ("u", {"retention.ms": "5"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        with pytest.raises(KafkaError) as caught:
            await alter_topic_configs(metadata, name, [Change(*change) for change in changes.items()])
        assert caught.value.code is code
    await alter_topic_configs(metadata, "t", [Change("retention.ms", "5")], validate_only=True)
    assert metadata.image is before


async def test_changes_of_properties_at_the_same_time_are_all_kept(metadata: Metadata) -> None:
    await create_topic(metadata, "t")
    names = ["retention.ms", "flush.ms", "segment.ms", "segment.bytes", "file.delete.delay.ms"]

    await asyncio.gather(*(alter_topic_configs(metadata, "t", [Change(name, "1000")]) for name in names))

    assert metadata.image.topics["t"].configs == dict.fromkeys(names, "1000")


async def test_brokers_properties_change_at_run_time(metadata: Metadata) -> None:
    await alter_broker_configs(metadata, None, [Change("log.retention.ms", "5"), Change("log.segment.bytes", "1000")])
    await alter_broker_configs(metadata, 1, [Change("log.segment.bytes", "2000")])
    assert metadata.image.dynamic_configs(1) == {"log.retention.ms": "5", "log.segment.bytes": "2000"}

    await alter_broker_configs(metadata, 1, [Change("log.segment.bytes", None, Operation.DELETE)])
    assert metadata.image.dynamic_configs(1) == {"log.retention.ms": "5", "log.segment.bytes": "1000"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "5"),
        ("nonsense", "5"),
        ("controller.quorum.fetch.timeout.ms", "9"),
        ("log.segment.bytes", "x"),
        ("log.retention.hours", "9"),
        ("log.retention.ms", "0"),
        ("max.connections.per.ip.overrides", "localhost"),
    ],
)
async def test_a_property_that_needs_a_restart_cannot_change_at_run_time(
    metadata: Metadata, name: str, value: str
) -> None:
    with pytest.raises(KafkaError) as caught:
        await alter_broker_configs(metadata, 1, [Change(name, value)])
    assert caught.value.code is ErrorCode.INVALID_REQUEST


async def test_producer_ids_are_unique_across_brokers_and_restarts(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    supplies = [ProducerIdBlocks(first), ProducerIdBlocks(second), ProducerIdBlocks(first)]

    ids = await asyncio.gather(*(supply.next() for supply in supplies for _ in range(BLOCK_SIZE + 5)))

    assert len(set(ids)) == 3 * (BLOCK_SIZE + 5)
    assert min(ids) == 0
    assert max(ids) < 6 * BLOCK_SIZE


async def test_producer_ids_of_one_block_come_in_order(metadata: Metadata) -> None:
    supply = ProducerIdBlocks(metadata)

    assert [await supply.next() for _ in range(3)] == [0, 1, 2]
    assert await ProducerIdBlocks(metadata).next() == BLOCK_SIZE


async def test_producer_ids_run_out_after_2_to_the_63(metadata: Metadata) -> None:
    await metadata.commit((), (Put(metadata.keys.next_producer_id, encode(ProducerIds(2**63 - 1001, 1, 1))),))
    supply = ProducerIdBlocks(metadata)
    assert await supply.next() == 2**63 - 1001

    with pytest.raises(KafkaError, match="used up"):
        await ProducerIdBlocks(metadata).next()


@pytest.mark.parametrize("count", [2, 61, 62, 150])
async def test_a_topic_grows_to_any_size_at_once(shared: InMemoryStore, start: Start, count: int) -> None:
    metadata = await start(shared)
    await create_topic(metadata, "t")
    before = metadata.image.topics["t"].partitions[0]
    sizes: set[int] = set()
    metadata.on_change(lambda change: sizes.update(len(topic.partitions) for topic in change.after.topics.values()))

    await grow_topic(metadata, "t", count)

    partitions = metadata.image.topics["t"].partitions
    assert sizes - {1} == {count}
    assert len(partitions) == count
    assert partitions[0] is before
    assert all((partition.replicas, partition.leader) == ([1], 1) for partition in partitions)
    assert metadata.image.uncovered == {}
    topic_id = metadata.image.topics["t"].topic_id
    assert len((await start(shared, 2)).image.topics_by_id[topic_id].partitions) == count


async def test_new_partitions_continue_the_placement_of_the_old_ones(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared, 1)
    await start(shared, 2)
    await until(metadata, lambda image: len(image.brokers) == 2)
    await create_topic(metadata, "t", 3, 2)

    await grow_topic(metadata, "t", 5)

    assert [each.replicas for each in metadata.image.topics["t"].partitions] == [[1, 2], [2, 1], [1, 2], [2, 1], [1, 2]]


@pytest.mark.parametrize("count", [3, 100])
async def test_one_of_two_growths_at_the_same_time_succeeds(shared: InMemoryStore, start: Start, count: int) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await create_topic(first, "t", 2)
    await until(second, lambda image: "t" in image.topics)

    results = await asyncio.gather(
        grow_topic(first, "t", count), grow_topic(second, "t", count), return_exceptions=True
    )

    refused = [result for result in results if isinstance(result, KafkaError)]
    assert [error.code for error in refused] == [ErrorCode.INVALID_PARTITIONS]
    assert len(first.image.topics["t"].partitions) == count


@pytest.mark.parametrize("what", [LOSE_REQUEST, LOSE_ANSWER])
async def test_lost_answers_change_no_growth(start: Start, what: str) -> None:
    store = UncertainStore(iter([ANSWER] * 5 + [what] * 6))
    metadata = await start(store)
    await create_topic(metadata, "t")

    await grow_topic(metadata, "t", 130)

    assert len(metadata.image.topics["t"].partitions) == 130
    await store.close()


async def test_a_topic_is_created_while_a_known_broker_is_down(shared: InMemoryStore, start: Start) -> None:
    first, second, third = [await start(shared, node_id) for node_id in (1, 2, 3)]
    await until(first, lambda image: len(image.brokers) == 3)
    await second.stop()
    await until(first, lambda image: sorted(image.brokers) == [1, 3])

    topic = await create_topic(first, "t", 2, 3)

    assert [each.replicas for each in topic.partitions] == [[1, 3, 2], [3, 1, 2]]
    assert [each.leader for each in topic.partitions] == [1, 3]
    in_sync = {1: first.broker_epoch, 3: third.broker_epoch}
    assert [each.isr for each in topic.partitions] == [in_sync] * 2
