"""`Admin` against a real broker, ours or Apache Kafka: every call, and the errors of its items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from odradek.client import (
    Admin,
    BrokerError,
    ClosedError,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ConfigType,
    ConfigurationError,
    Consumer,
    NewPartitions,
    NewTopic,
    OffsetOutOfRangeError,
    OffsetSpec,
    Producer,
    ResourceType,
    TopicExistsError,
    TopicPartition,
    UnknownTopicError,
)
from odradek.protocol.errors import ErrorCode
from tests.client.conftest import MakeTopic

pytestmark = pytest.mark.servers("odradek", "apache")


@pytest.fixture
async def admin(bootstrap: str) -> AsyncIterator[Admin]:
    async with Admin(bootstrap) as admin:
        yield admin


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Repeat a check until it holds: the controller responds before the brokers have applied a change."""
    while not await holds():
        pass


async def is_gone(admin: Admin, topic: str) -> bool:
    return topic not in await admin.list_topics()


def code_of(error: Exception) -> ErrorCode:
    assert isinstance(error, BrokerError)
    return error.code


async def test_a_topic_is_created_described_listed_and_deleted(admin: Admin, topic: str) -> None:
    new = NewTopic(topic, partitions=3, replication_factor=1, configs={"retention.ms": "86400000"})
    created = (await admin.create_topics([new])).value(topic)
    assert (created.name, created.partitions, created.replication_factor) == (topic, 3, 1)
    assert created.configs is not None
    assert created.configs["retention.ms"].value == "86400000"
    assert created.configs["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    described = (await admin.describe_topics([topic])).value(topic)
    assert (described.name, described.topic_id, described.is_internal) == (topic, created.topic_id, False)
    assert [one.partition for one in described.partitions] == [0, 1, 2]
    for one in described.partitions:
        assert (one.leader, one.replicas, one.isr, one.offline_replicas) == (1, (1,), (1,), ())
    assert (await admin.describe_topics_by_id([created.topic_id])).value(created.topic_id) == described
    assert (await admin.list_topics())[topic].partitions == 3
    (await admin.delete_topics([topic])).values_or_raise()
    await until(lambda: is_gone(admin, topic))
    with pytest.raises(UnknownTopicError, match=f"describe a topic on {topic} at .*UNKNOWN_TOPIC_OR_PARTITION"):
        (await admin.describe_topics([topic])).value(topic)


async def test_each_item_has_its_own_outcome(admin: Admin, topic: str) -> None:
    wanted = [NewTopic(topic, 1), NewTopic("a/b", 1), NewTopic(f"{topic}-r", 1, 7), NewTopic(f"{topic}-p", 0)]
    results = await admin.create_topics(wanted)
    assert list(results) == [new.name for new in wanted]
    assert list(results.succeeded) == [topic]
    assert {name: code_of(error) for name, error in results.failed.items()} == {
        "a/b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"{topic}-r": ErrorCode.INVALID_REPLICATION_FACTOR,
        f"{topic}-p": ErrorCode.INVALID_PARTITIONS,
    }
    with pytest.raises(BrokerError, match=r"create a topic on a/b at .*INVALID_TOPIC_EXCEPTION .*Topic names have"):
        results.values_or_raise()
    again = (await admin.create_topics([NewTopic(topic)]))[topic]
    assert isinstance(again, TopicExistsError)
    deleted = await admin.delete_topics([topic, "never-was"])
    assert deleted[topic] is None
    assert isinstance(deleted["never-was"], UnknownTopicError)


async def test_an_invalid_config_refuses_its_topic(admin: Admin, topic: str) -> None:
    results = await admin.create_topics([NewTopic(topic, configs={"retention.ms": "soon"})])
    with pytest.raises(BrokerError, match=r"INVALID_CONFIG .*retention\.ms"):
        results.value(topic)


async def test_validation_alone_creates_nothing(admin: Admin, topic: str) -> None:
    checked = (await admin.create_topics([NewTopic(topic, 4)], validate_only=True)).value(topic)
    assert checked.partitions == 4
    assert topic not in await admin.list_topics()


async def test_replicas_can_be_placed_by_hand(admin: Admin, topic: str) -> None:
    wrong = (await admin.create_topics([NewTopic(topic, assignments={0: [77]})]))[topic]
    assert isinstance(wrong, BrokerError)
    assert wrong.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    (await admin.create_topics([NewTopic(topic, assignments={0: [1], 1: [1]})])).value(topic)
    described = (await admin.describe_topics([topic])).value(topic)
    assert [one.replicas for one in described.partitions] == [(1,), (1,)]


async def test_a_topic_named_twice_in_a_call_raises(admin: Admin, topic: str) -> None:
    with pytest.raises(ConfigurationError, match=f"create a topic on {topic}: it is named twice"):
        await admin.create_topics([NewTopic(topic, 1), NewTopic(topic, 2)])


async def test_deletion_by_id_keeps_another_topic_of_the_same_name(admin: Admin, topic: str) -> None:
    first = (await admin.create_topics([NewTopic(topic, 1)])).value(topic)
    assert (await admin.delete_topics_by_id([first.topic_id])).value(first.topic_id) is None
    (await admin.create_topics([NewTopic(topic, 1)])).value(topic)
    again = (await admin.delete_topics_by_id([first.topic_id]))[first.topic_id]
    assert isinstance(again, UnknownTopicError)
    assert again.code is ErrorCode.UNKNOWN_TOPIC_ID
    assert topic in await admin.list_topics()


async def test_an_invalid_topic_id_raises(admin: Admin) -> None:
    with pytest.raises(ConfigurationError, match="22 characters"):
        await admin.describe_topics_by_id(["orders"])


async def test_configs_are_described_with_sources_synonyms_and_documentation(admin: Admin, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 1, configs={"segment.bytes": "1048576"})])
    resource, lost, broker = ConfigResource.topic(topic), ConfigResource.topic("never-was"), ConfigResource.broker(1)
    described = await admin.describe_configs(
        [resource, lost, broker], include_synonyms=True, include_documentation=True
    )
    assert isinstance(described[lost], UnknownTopicError)
    of_topic = described.value(resource)
    entry = of_topic["segment.bytes"]
    assert (entry.value, entry.source, entry.type) == (
        "1048576",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        ConfigType.INT,
    )
    assert not entry.is_default
    assert entry.synonyms[0].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert entry.synonyms[-1].source is ConfigSource.DEFAULT_CONFIG
    assert entry.documentation
    assert of_topic["retention.bytes"].is_default
    of_broker = described.value(broker)
    assert of_broker["num.partitions"].value == "3"
    assert of_broker["num.partitions"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert of_broker["num.partitions"].is_read_only
    few = await admin.describe_configs([resource], names=["segment.bytes", "cleanup.policy"])
    assert {name: entry.synonyms for name, entry in few.value(resource).items()} == {
        "segment.bytes": (),
        "cleanup.policy": (),
    }


async def test_configs_of_a_broker_that_does_not_exist(admin: Admin) -> None:
    resource = ConfigResource.broker(77)
    outcome = (await admin.describe_configs([resource]))[resource]
    assert str(outcome) == (
        "describe configs of broker 77: the cluster has no broker 77 (it has 1). Check its id, and that it runs"
    )
    logs = (await admin.describe_log_dirs([1, 77])).failed
    assert {node_id: "no broker 77" in str(error) for node_id, error in logs.items()} == {77: True}
    with pytest.raises(ConfigurationError, match="'one' is not a node id"):
        await admin.describe_configs([ConfigResource(ResourceType.BROKER, "one")])


async def test_partitions_are_added(admin: Admin, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 1)])
    grown = await admin.create_partitions({topic: 3, "never-was": 2})
    assert grown[topic] is None
    assert isinstance(grown["never-was"], UnknownTopicError)
    (await admin.create_partitions({topic: NewPartitions(4, [[1]])})).value(topic)

    async def has_four() -> bool:
        return (await admin.list_topics())[topic].partitions == 4

    await until(has_four)
    (await admin.create_partitions({topic: 9}, validate_only=True)).value(topic)
    with pytest.raises(BrokerError, match=f"add partitions on {topic} at .*INVALID_PARTITIONS"):
        (await admin.create_partitions({topic: 2})).value(topic)
    assert (await admin.describe_topics([topic])).value(topic).partitions[3].leader == 1


async def test_records_are_deleted_and_the_beginning_moves(admin: Admin, bootstrap: str, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 2)])
    async with Producer(bootstrap) as producer:
        for number in range(20):
            await producer.send(topic, b"%d" % number, partition=number % 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    deleted = await admin.delete_records({first: 4, second: -1, TopicPartition(topic, 2): 0})
    assert deleted.succeeded == {first: 4, second: 10}
    with pytest.raises(UnknownTopicError, match=f"delete records on {topic}-2 at .*the topic has 2 partitions"):
        deleted.value(TopicPartition(topic, 2))
    cause = f"delete records on {topic}-0 at .*OFFSET_OUT_OF_RANGE.* Choose an offset"
    with pytest.raises(OffsetOutOfRangeError, match=cause):
        (await admin.delete_records({first: 11})).value(first)
    async with Consumer(bootstrap) as consumer:
        assert await consumer.beginning_offsets([first, second]) == {first: 4, second: 10}


async def test_configs_are_set_deleted_appended_to_and_subtracted_from(admin: Admin, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 1, configs={"retention.ms": "5"})])
    resource = ConfigResource.topic(topic)

    async def own() -> dict[str, str | None]:
        entries = (await admin.describe_configs([resource])).value(resource).values()
        return {entry.name: entry.value for entry in entries if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG}

    async def change(expected: dict[str, str], *changes: ConfigChange) -> None:
        async def is_there() -> bool:
            return await own() == expected

        (await admin.alter_configs({resource: changes})).value(resource)
        await until(is_there)

    await change({"retention.ms": "5", "segment.bytes": "2097152"}, ConfigChange("segment.bytes", "2097152"))
    await change(
        {"segment.bytes": "2097152", "cleanup.policy": "delete,compact"},
        ConfigChange("retention.ms", operation=ConfigOperation.DELETE),
        ConfigChange("cleanup.policy", "compact", ConfigOperation.APPEND),
    )
    subtraction = ConfigChange("cleanup.policy", "delete", ConfigOperation.SUBTRACT)
    await change({"segment.bytes": "2097152", "cleanup.policy": "compact"}, subtraction)
    (await admin.alter_configs({resource: [ConfigChange("flush.ms", "7")]}, validate_only=True)).value(resource)
    assert "flush.ms" not in await own()
    outcome = (await admin.alter_configs({resource: [ConfigChange("no.such.config", "1")]}))[resource]
    assert isinstance(outcome, BrokerError)
    assert str(outcome).startswith(f"change configs on {topic} at ")
    assert "no.such.config" in str(outcome)


async def test_offsets_by_place_and_time_of_many_partitions_at_once(admin: Admin, bootstrap: str, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, 2)])
    async with Producer(bootstrap) as producer:
        for number in range(10):
            await producer.send(topic, b"", partition=0, timestamp=1_000_000 + 10 * number)
    first, second, lost = (TopicPartition(topic, index) for index in range(3))
    ends = await admin.list_offsets({first: OffsetSpec.LATEST, second: OffsetSpec.LATEST, lost: OffsetSpec.LATEST})
    assert {partition: at.offset for partition, at in ends.succeeded.items()} == {first: 10, second: 0}
    assert isinstance(ends[lost], UnknownTopicError)
    assert (await admin.list_offsets({first: OffsetSpec.EARLIEST})).value(first).offset == 0
    at = (await admin.list_offsets({first: 1_000_045})).value(first)
    assert (at.offset, at.timestamp) == (5, 1_000_050)
    assert (await admin.list_offsets({first: 2_000_000})).value(first).offset == -1
    newest = (await admin.list_offsets({first: OffsetSpec.MAX_TIMESTAMP})).value(first)
    assert (newest.offset, newest.timestamp) == (9, 1_000_090)
    by_pair = await admin.list_offsets({(topic, 0): OffsetSpec.LATEST}, isolation_level="read_committed")
    assert by_pair.value(first).offset == 10


async def test_the_cluster_its_features_and_its_apis(admin: Admin, bootstrap: str) -> None:
    cluster = await admin.describe_cluster()
    assert len(cluster.cluster_id) == 22
    assert cluster.controller == 1
    [broker] = cluster.brokers
    assert (broker.node_id, f"{broker.host}:{broker.port}", broker.is_fenced) == (1, bootstrap, False)
    assert (await admin.describe_cluster(include_fenced=True)).brokers == cluster.brokers
    features = await admin.describe_features()
    for name, (_, level) in features.finalized.items():
        assert level <= features.supported[name][1]
    [ranges] = (await admin.api_versions()).values_or_raise().values()
    by_name = {one.name: one for one in ranges}
    assert by_name["Produce"].chosen == 13
    assert (by_name["Metadata"].theirs, by_name["Metadata"].ours) == ((0, 13), (0, 13))


async def test_calls_may_be_made_at_the_same_time(admin: Admin, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(5)]
    await asyncio.gather(*(admin.create_topics([NewTopic(name, 1)]) for name in names))
    assert set(names) <= (await admin.list_topics()).keys()


async def test_internal_topics_are_listed_on_demand(admin: Admin, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    shown, every = await admin.list_topics(), await admin.list_topics(include_internal=True)
    assert topic in shown
    assert shown.keys() <= every.keys()
    assert not any(listing.is_internal for listing in shown.values())


async def test_calls_before_start_and_after_close_raise(bootstrap: str) -> None:
    admin = Admin(bootstrap)
    with pytest.raises(ClosedError, match="administer: the Admin is not open"):
        await admin.list_topics()
    async with admin:
        await admin.list_topics()
    with pytest.raises(ClosedError):
        await admin.describe_cluster()
