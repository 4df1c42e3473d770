from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.wire import Wire


async def ask(wire: Wire, *topics: CreatableTopic, version: int = 7, **fields: Any) -> list[CreatableTopicResult]:
    response = await wire.ask(CreateTopicsRequest(list(topics), **{"timeout_ms": 10_000} | fields), version)
    results: list[CreatableTopicResult] = response.topics
    return sorted(results, key=lambda result: result.name)


async def refusal(wire: Wire, topic: CreatableTopic) -> ErrorCode:
    [result] = await ask(wire, topic)
    assert result.error_message
    return ErrorCode(result.error_code)


def assigned(name: str, *replicas: list[int], partitions: int = -1, factor: int = -1) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(index, brokers) for index, brokers in enumerate(replicas)]
    return CreatableTopic(name, partitions, factor, assignments)


def configured(name: str, **configs: str | None) -> CreatableTopic:
    pairs = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    return CreatableTopic(name, 1, 1, configs=pairs)


@pytest.mark.parametrize("version", range(2, 8))
async def test_a_topic_is_created(wire: Wire, version: int) -> None:
    [result] = await ask(wire, CreatableTopic("t", 3, 1), version=version)

    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    assert (result.topic_id != bytes(16)) == (version >= 7)
    [topic] = (await wire.ask(MetadataRequest(None), 12)).topics
    assert (topic.name, len(topic.partitions)) == ("t", 3)


@pytest.mark.usefixtures("only_here")  # on Apache Kafka perhaps not yet
async def test_a_topic_is_usable_when_the_response_is_sent(wire: Wire) -> None:
    await ask(wire, CreatableTopic("t", 200, 1))

    for index in (0, 199):
        assert (await produce(wire, "t", batch(b"a"), index)).error_code == ErrorCode.NONE


async def test_minus_one_means_the_brokers_default() -> None:
    async with Broker({"num.partitions": "4"}) as broker, Wire("127.0.0.1", broker.port) as wire:
        [result] = await ask(wire, CreatableTopic("t", -1, -1))

        assert (result.num_partitions, result.replication_factor) == (4, 1)


async def test_replicas_may_be_assigned_by_hand(wire: Wire) -> None:
    [result] = await ask(wire, assigned("t", [1], [1]))

    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 1)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatableTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("..", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("__cluster_metadata", 1, 1), ErrorCode.INVALID_REQUEST),
        (assigned("t", [1], partitions=1), ErrorCode.INVALID_REQUEST),
        (assigned("t", [1], factor=1), ErrorCode.INVALID_REQUEST),
        (assigned("t", [9]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", [1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [1]), CreatableReplicaAssignment(0, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (configured("t", no_such_config="1"), ErrorCode.INVALID_CONFIG),
        (configured("t", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (configured("t", cleanup_policy="burn"), ErrorCode.INVALID_CONFIG),
        (configured("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
    ],
)
async def test_invalid_requests_are_refused(wire: Wire, topic: CreatableTopic, code: ErrorCode) -> None:
    assert await refusal(wire, topic) is code
    assert (await wire.ask(MetadataRequest(None), 12)).topics == []


async def test_an_existing_name_is_refused(wire: Wire) -> None:
    await create(wire, "a.b")

    assert await refusal(wire, CreatableTopic("a.b", 1, 1)) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert await refusal(wire, CreatableTopic("a_b", 1, 1)) is ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_the_message_of_an_existing_name_equals_kafkas(wire: Wire) -> None:
    await create(wire, "t")

    [row] = (await wire.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)], 5000), 5)).topics

    assert row.error_message == "Topic 't' already exists."


async def test_each_topic_succeeds_or_fails_independently(wire: Wire) -> None:
    twice = CreatableTopic("twice", 1, 1)

    results = await ask(wire, CreatableTopic("a", 1, 1), twice, CreatableTopic("b", 0, 1), twice)

    assert [(result.name, result.error_code) for result in results] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.INVALID_PARTITIONS),
        ("twice", ErrorCode.INVALID_REQUEST),
    ]


async def test_validation_creates_nothing(wire: Wire) -> None:
    [good] = await ask(wire, CreatableTopic("t", 2, 1), validate_only=True)
    [bad] = await ask(wire, CreatableTopic("t", 2, 9), validate_only=True)

    assert (good.error_code, good.num_partitions) == (ErrorCode.NONE, 2)
    assert bad.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert (await wire.ask(MetadataRequest(None), 12)).topics == []


async def test_the_response_has_the_resulting_configs(wire: Wire) -> None:
    [result] = await ask(wire, configured("t", retention_ms="1000", cleanup_policy="compact"))

    assert result.configs
    returned = {config.name: (config.value, config.config_source) for config in result.configs}
    assert returned["retention.ms"] == ("1000", 1)
    assert returned["cleanup.policy"] == ("compact", 1)
    assert returned["segment.bytes"] == ("1073741824", 5)
    assert [config.name for config in result.configs] == sorted(returned)


async def test_configs_have_effect(wire: Wire) -> None:
    await create(wire, "t", max_message_bytes="200")

    assert (await produce(wire, "t", batch(b"x" * 500))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (await produce(wire, "t", batch(b"x"))).error_code == ErrorCode.NONE


@pytest.mark.usefixtures("only_here")  # Apache Kafka gives up before it creates
async def test_after_a_timeout_the_topic_exists_nevertheless(wire: Wire) -> None:
    await ask(wire, CreatableTopic("t", 1, 1), timeout_ms=0)

    assert [topic.name for topic in (await wire.ask(MetadataRequest(None), 12)).topics] == ["t"]


async def test_a_topic_created_again_starts_empty(wire: Wire) -> None:
    first = await create(wire, "t")
    await produce(wire, "t", batch(b"old"))
    await wire.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 5)
    second = await create(wire, "t")
    await produce(wire, "t", batch(b"new"))

    assert first != second
    assert values_in(await fetch(wire, "t")) == [b"new"]


TOO_MANY = "Excessively large number of partitions per request."


@pytest.mark.parametrize(
    "topics",
    [
        [CreatableTopic("a", 10_001, 1)],
        [CreatableTopic("a", 6_000, 1), CreatableTopic("b", 6_000, 1)],
        [CreatableTopic("a", 10_000, 1), CreatableTopic("b", -1, 1)],
        [CreatableTopic("not a name", 9_999, 1), CreatableTopic("b", 9_999, 1)],
        [CreatableTopic("a", 9_999, 7), CreatableTopic("b", 9_999, 1)],
        [CreatableTopic(f"t{index}", 1, 1) for index in range(10_002)],
    ],
    ids=["one topic", "two topics", "a default", "a bad name", "a bad factor", "many topics"],
)
async def test_more_than_10000_partitions_in_a_request_are_refused(wire: Wire, topics: list[CreatableTopic]) -> None:
    results = await ask(wire, *topics, validate_only=True)

    assert len(results) == len(topics)
    assert {(result.error_code, result.error_message) for result in results} == {(ErrorCode.POLICY_VIOLATION, TOO_MANY)}


async def test_topics_that_are_named_twice_do_not_count_for_the_limit(wire: Wire) -> None:
    twice = [CreatableTopic("b", 5_000, 1)] * 2

    results = await ask(wire, CreatableTopic("a", 9_000, 1), *twice, validate_only=True)

    assert [(result.name, result.error_code) for result in results] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.INVALID_REQUEST),
    ]


async def test_no_more_topics_are_created_after_the_client_disconnects(broker: Broker) -> None:
    topics = [CreatableTopic(f"t{index}", 1, 1) for index in range(2_000)]
    async with Wire("127.0.0.1", broker.port) as leaving:
        await leaving.send(CreateTopicsRequest(topics, 60_000), 7)
        while len(broker.services.metadata.image.topics) < 3:  # noqa: ASYNC110 - it is the broker's own state
            await asyncio.sleep(0)
    async with asyncio.timeout(20):
        while broker.metrics.requests_in_flight:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)

    assert 3 <= len(broker.services.metadata.image.topics) < len(topics)


@pytest.mark.usefixtures("only_here")
async def test_a_request_is_one_image(broker: Broker) -> None:
    images: list[int] = []
    broker.services.metadata.on_change(lambda change: images.append(len(change.topic_ids)))
    async with Wire("127.0.0.1", broker.port) as wire:
        names = [f"t{number}" for number in range(50)]
        results = await ask(wire, CreatableTopic("t/", 1, 1), *(CreatableTopic(name, 1, 1) for name in names))

        assert images == [50]
        assert [result.name for result in results if result.error_code == ErrorCode.NONE] == sorted(names)
        for name in names:
            assert (await produce(wire, name, batch(b"a"))).error_code == ErrorCode.NONE
