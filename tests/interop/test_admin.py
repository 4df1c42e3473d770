"""Topics and configurations through the administrative clients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AiokafkaTopic
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ConfigSource, NewTopic, PartitionMetadata
from confluent_kafka.admin import ResourceType as Resource
from kafka.admin import ConfigResource as KafkaPythonResource
from kafka.admin import ConfigResourceType, KafkaAdminClient
from kafka.admin import NewTopic as KafkaPythonTopic

TIMEOUT = 30


def create(admin: AdminClient, topic: NewTopic, **options: bool) -> None:
    admin.create_topics([topic], **options)[topic.topic].result(TIMEOUT)


def error_of(admin: AdminClient, topic: NewTopic, **options: bool) -> int:
    with pytest.raises(KafkaException) as failed:
        create(admin, topic, **options)
    error: KafkaError = failed.value.args[0]
    return error.code()


def described(admin: AdminClient, kind: Resource, name: str) -> dict[str, ConfigEntry]:
    [future] = admin.describe_configs([ConfigResource(kind, name)]).values()
    return future.result(TIMEOUT)


def partitions_of(admin: AdminClient, topic: str) -> list[PartitionMetadata]:
    """The partitions of a new topic; Apache Kafka responds some milliseconds before they are visible."""
    for _ in range(200):
        if partitions := admin.list_topics(topic, timeout=TIMEOUT).topics[topic].partitions:
            return list(partitions.values())
    raise AssertionError(f"{topic} has no partitions")


def topic_id(admin: AdminClient, topic: str) -> str:
    partitions_of(admin, topic)
    return str(admin.describe_topics(TopicCollection([topic]))[topic].result(TIMEOUT).topic_id)


def is_gone(topic: str, listed: Callable[[], Collection[str]]) -> bool:
    """Whether a deleted topic disappears from the list; Apache Kafka responds some milliseconds earlier."""
    return any(topic not in listed() for _ in range(200))


def test_a_created_topic_is_usable_at_once(admin: AdminClient, topic_name: str) -> None:
    create(admin, NewTopic(topic_name, 4, 1))
    listed = admin.list_topics(topic_name, timeout=TIMEOUT).topics[topic_name]
    assert listed.error is None
    assert {number: partition.leader for number, partition in listed.partitions.items()} == dict.fromkeys(range(4), 1)


def test_the_broker_sets_defaults_that_a_request_leaves_out(admin: AdminClient, topic_name: str) -> None:
    create(admin, NewTopic(topic_name))
    [partition] = partitions_of(admin, topic_name)
    assert (partition.leader, partition.replicas, partition.isrs) == (1, [1], [1])


def test_replicas_may_be_assigned_by_hand(admin: AdminClient, topic_name: str) -> None:
    create(admin, NewTopic(topic_name, 2, replica_assignment=[[1], [1]]))
    assert len(partitions_of(admin, topic_name)) == 2


def test_validating_creates_nothing(admin: AdminClient, topic_name: str) -> None:
    create(admin, NewTopic(topic_name, 1, 1), validate_only=True)
    assert topic_name not in admin.list_topics(timeout=TIMEOUT).topics


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "config", "code"),
    [
        ("name with spaces", 1, 1, {}, KafkaError.TOPIC_EXCEPTION),
        ("n" * 250, 1, 1, {}, KafkaError.TOPIC_EXCEPTION),
        ("refused", 1, 2, {}, KafkaError.INVALID_REPLICATION_FACTOR),
        ("refused", 1, 1, {"cleanup.policy": "shred"}, KafkaError.INVALID_CONFIG),
        ("refused", 1, 1, {"retention.ms": "soon"}, KafkaError.INVALID_CONFIG),
        ("refused", 1, 1, {"no.such.property": "1"}, KafkaError.INVALID_CONFIG),
        ("refused", 0, 1, {}, KafkaError.INVALID_PARTITIONS),
    ],
)
def test_an_invalid_topic_is_refused_with_kafkas_code(
    admin: AdminClient, name: str, partitions: int, replicas: int, config: dict[str, str], code: int
) -> None:
    assert error_of(admin, NewTopic(name, partitions, replicas, config=config), validate_only=True) == code
    assert name not in admin.list_topics(timeout=TIMEOUT).topics


def test_a_topic_name_is_unique(admin: AdminClient, topic: str) -> None:
    assert error_of(admin, NewTopic(topic, 1, 1)) == KafkaError.TOPIC_ALREADY_EXISTS


def test_names_that_differ_in_dot_and_underscore_collide(admin: AdminClient, topic_name: str) -> None:
    create(admin, NewTopic(f"{topic_name}.a", 1, 1))
    assert error_of(admin, NewTopic(f"{topic_name}_a", 1, 1)) == KafkaError.TOPIC_EXCEPTION


def test_a_deleted_topic_disappears_and_its_name_is_free(admin: AdminClient, topic: str) -> None:
    before = topic_id(admin, topic)
    admin.delete_topics([topic])[topic].result(TIMEOUT)
    assert is_gone(topic, lambda: admin.list_topics(timeout=TIMEOUT).topics)
    create(admin, NewTopic(topic, 1, 1))
    assert topic_id(admin, topic) != before


def test_deleting_a_missing_topic_is_an_error(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as failed:
        admin.delete_topics(["never-created"])["never-created"].result(TIMEOUT)
    assert failed.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_topic_configs_name_their_values_and_sources(admin: AdminClient, make_topic: Callable[..., str]) -> None:
    topic = make_topic(cleanup_policy="compact,delete", retention_ms=123_456)
    configs = described(admin, Resource.TOPIC, topic)
    sources = {name: (entry.value, entry.source, entry.is_default) for name, entry in configs.items()}
    own, default = ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DEFAULT_CONFIG.value
    assert sources["cleanup.policy"] == ("compact,delete", own, False)
    assert sources["retention.ms"] == ("123456", own, False)
    assert sources["segment.bytes"] == ("1073741824", default, True)
    assert sources["compression.type"] == ("producer", default, True)
    assert sources["message.timestamp.type"] == ("CreateTime", default, True)


def test_a_topics_default_may_come_from_the_brokers_file(admin: AdminClient, topic: str) -> None:
    """The servers of these tests run with log.retention.ms=-1."""
    retention = described(admin, Resource.TOPIC, topic)["retention.ms"]
    assert retention.value == "-1"
    assert retention.source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert "log.retention.ms" in retention.synonyms


def test_broker_configs_name_their_values_and_sources(admin: AdminClient) -> None:
    configs = described(admin, Resource.BROKER, "1")
    assert configs["log.retention.ms"].value == "-1"
    assert configs["log.retention.ms"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert configs["message.max.bytes"].value == "1048588"
    assert configs["message.max.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    assert configs["node.id"].is_read_only
    assert not configs["message.max.bytes"].is_read_only


def test_configs_of_an_unknown_topic_are_refused(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as failed:
        described(admin, Resource.TOPIC, "never-created")
    assert failed.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_the_cluster_describes_itself(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster().result(TIMEOUT)
    assert len(cluster.cluster_id) == 22
    assert cluster.controller.id == 1
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [bootstrap]


async def test_aiokafka_creates_describes_and_deletes(bootstrap: str, topic_name: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([AiokafkaTopic(topic_name, 3, 1, topic_configs={"retention.ms": "5"})])
        [found] = await admin.describe_topics([topic_name])
        assert sorted(row["partition"] for row in found["partitions"]) == [0, 1, 2]
        deleted = await admin.delete_topics([topic_name])
        assert deleted.topic_error_codes == [(topic_name, 0)]
    finally:
        await admin.close()


@pytest.fixture
def kafka_python_admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def test_kafka_python_creates_describes_and_deletes(kafka_python_admin: KafkaAdminClient, topic_name: str) -> None:
    kafka_python_admin.create_topics([KafkaPythonTopic(topic_name, 3, 1, topic_configs={"retention.ms": "5"})])
    [found] = kafka_python_admin.describe_topics([topic_name])
    assert len(found["partitions"]) == 3
    configs = kafka_python_admin.describe_configs([KafkaPythonResource(ConfigResourceType.TOPIC, topic_name)])
    assert "retention.ms" in str(configs)
    kafka_python_admin.delete_topics([topic_name])
    assert is_gone(topic_name, kafka_python_admin.list_topics)


def test_kafka_python_raises_kafkas_errors(kafka_python_admin: KafkaAdminClient, topic: str) -> None:
    with pytest.raises(kafka.errors.TopicAlreadyExistsError):
        kafka_python_admin.create_topics([KafkaPythonTopic(topic, 1, 1)])
