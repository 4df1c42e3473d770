"""Admin clients add partitions, delete records and change properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import aiokafka.admin
import kafka
import kafka.admin
import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)

from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent

TIMEOUT = 30
TEN_RECORDS = [Outgoing(None, b"v")] * 10
MakeTopic = Callable[..., str]


def becomes(expected: object, look: Callable[[], object]) -> bool:
    """Whether a change becomes visible; Apache Kafka's broker applies it some milliseconds after the response."""
    return any(look() == expected for _ in range(200))


def partitions_of(admin: AdminClient, topic: str) -> int:
    return len(admin.list_topics(topic, timeout=TIMEOUT).topics[topic].partitions)


def own_configs(admin: AdminClient, topic: str) -> dict[str, str]:
    """The properties that are set for the topic."""
    [future] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in future.result(TIMEOUT).items() if entry.source == 1}


def code_of(failing: Any) -> int:
    with pytest.raises(KafkaException) as failed:
        failing.result(TIMEOUT)
    error: KafkaError = failed.value.args[0]
    assert error.str()
    return error.code()


def test_confluent_grows_topics(admin: AdminClient, topic: str) -> None:
    def grow(count: int, **options: bool) -> Any:
        return admin.create_partitions([NewPartitions(topic, count)], **options)[topic]

    grow(4, validate_only=True).result(TIMEOUT)
    assert partitions_of(admin, topic) == 1
    grow(3).result(TIMEOUT)
    assert becomes(3, lambda: partitions_of(admin, topic))
    assert code_of(grow(2)) == KafkaError.INVALID_PARTITIONS


def test_confluent_changes_single_properties(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(retention_ms=60_000)

    def change(*operations: tuple[str, str | None, AlterConfigOpType]) -> Any:
        entries = [ConfigEntry(name, value, incremental_operation=kind) for name, value, kind in operations]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        return admin.incremental_alter_configs([resource])[resource]

    change(
        ("retention.ms", None, AlterConfigOpType.DELETE),
        ("segment.bytes", "2000000", AlterConfigOpType.SET),
        ("cleanup.policy", "compact", AlterConfigOpType.APPEND),
    ).result(TIMEOUT)

    expected = {"segment.bytes": "2000000", "cleanup.policy": "delete,compact"}
    assert becomes(expected, lambda: own_configs(admin, topic))
    assert code_of(change(("segment.bytes", "soon", AlterConfigOpType.SET))) == KafkaError.INVALID_CONFIG


def test_confluent_replaces_properties(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(retention_ms=60_000)
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"flush.ms": "7000"})

    with pytest.deprecated_call():
        replacing = admin.alter_configs([resource])[resource]
    replacing.result(TIMEOUT)

    assert becomes({"flush.ms": "7000"}, lambda: own_configs(admin, topic))


def test_confluent_deletes_records(admin: AdminClient, bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, TEN_RECORDS)

    def delete(offset: int) -> Any:
        [future] = admin.delete_records([TopicPartition(topic, 0, offset)]).values()
        return future

    assert delete(4).result(TIMEOUT).low_watermark == 4
    assert Confluent().offsets(bootstrap, topic) == (4, 10)
    [earliest] = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()}).values()
    assert earliest.result(TIMEOUT).offset == 4
    assert code_of(delete(11)) == KafkaError.OFFSET_OUT_OF_RANGE
    assert delete(-1).result(TIMEOUT).low_watermark == 10  # the high watermark


def test_confluent_finds_nothing_to_elect(admin: AdminClient, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    results = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(TIMEOUT)
    assert results[partition].code() == KafkaError.ELECTION_NOT_NEEDED


@pytest.fixture
def kafka_python(bootstrap: str) -> Iterator[kafka.admin.KafkaAdminClient]:
    client = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def test_kafka_python_grows_and_shortens_topics(
    kafka_python: kafka.admin.KafkaAdminClient, admin: AdminClient, bootstrap: str, topic: str
) -> None:
    kafka_python.create_partitions({topic: 3})
    assert becomes(3, lambda: partitions_of(admin, topic))
    with pytest.raises(kafka.errors.InvalidPartitionsError):
        kafka_python.create_partitions({topic: 2})

    Confluent().produce(bootstrap, topic, TEN_RECORDS)
    first = kafka.TopicPartition(topic, 0)
    assert "'low_watermark': 6" in str(kafka_python.delete_records({first: 6}))
    assert Confluent().offsets(bootstrap, topic) == (6, 10)


def test_kafka_python_changes_properties(
    kafka_python: kafka.admin.KafkaAdminClient, admin: AdminClient, topic: str
) -> None:
    configs = {"retention.ms": "5000", "cleanup.policy": ("APPEND", "compact")}
    kafka_python.alter_configs(
        [kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic, configs=configs)]
    )

    expected = {"retention.ms": "5000", "cleanup.policy": "delete,compact"}
    assert becomes(expected, lambda: own_configs(admin, topic))
    assert topic in str(kafka_python.list_config_resources(["TOPIC"]))


def test_kafka_python_looks_into_topics_and_directories(
    kafka_python: kafka.admin.KafkaAdminClient, bootstrap: str, topic: str
) -> None:
    Confluent().produce(bootstrap, topic, TEN_RECORDS, idempotent=True)

    [state] = kafka_python.describe_producers([kafka.TopicPartition(topic, 0)]).values()
    described = kafka_python.describe_topic_partitions([topic])

    assert [producer.last_sequence for producer in state.active_producers] == [9]
    assert topic in str(described)
    assert topic in str(kafka_python.describe_log_dirs({topic: [0]}))
    assert kafka_python.list_partition_reassignments() == {}


async def test_aiokafka_grows_shortens_and_configures_topics(admin: AdminClient, bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, TEN_RECORDS)
    client = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        grown = await client.create_partitions({topic: aiokafka.admin.NewPartitions(3)})
        assert grown.topic_errors == [(topic, 0, None)]
        first = aiokafka.TopicPartition(topic, 0)
        assert await client.delete_records({first: aiokafka.admin.RecordsToDelete(8)}) == {first: 8}
        [altered] = await client.alter_configs(
            [
                aiokafka.admin.config_resource.ConfigResource(
                    aiokafka.admin.config_resource.ConfigResourceType.TOPIC, topic, {"flush.ms": "7000"}
                )
            ]
        )
        assert [row[0] for row in altered.resources] == [0]
    finally:
        await client.close()
    assert Confluent().offsets(bootstrap, topic) == (8, 10)
    assert becomes((3, {"flush.ms": "7000"}), lambda: (partitions_of(admin, topic), own_configs(admin, topic)))
