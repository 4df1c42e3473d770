from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire

# Apache Kafka's broker hears of a change some milliseconds after the answer; tests/interop compares the answers.
pytestmark = pytest.mark.usefixtures("only_here")


async def grow(
    wire: Wire,
    name: str,
    count: int,
    *replicas: list[int],
    version: int = 3,
    validate_only: bool = False,
    timeout_ms: int = 5000,
) -> CreatePartitionsTopicResult:
    assignments = [CreatePartitionsAssignment(each) for each in replicas] or None
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, assignments)], timeout_ms, validate_only)
    [result] = (await wire.ask(request, version)).results
    assert isinstance(result, CreatePartitionsTopicResult)
    return result


async def partitions(wire: Wire, name: str) -> int:
    request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    [topic] = (await wire.ask(request, 9)).topics
    return len(topic.partitions)


@pytest.mark.parametrize("version", range(4))
async def test_new_partitions_are_led_when_the_answer_comes(wire: Wire, version: int) -> None:
    await create(wire, "t", 2)
    await produce(wire, "t", batch(b"before"), 1)

    result = await grow(wire, "t", 5, version=version)

    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.NONE, None)
    assert await partitions(wire, "t") == 5
    assert [(await produce(wire, "t", batch(b"a"), index)).base_offset for index in range(5)] == [0, 1, 0, 0, 0]


async def test_replicas_may_be_assigned(wire: Wire) -> None:
    await create(wire, "t", 1)

    assert (await grow(wire, "t", 3, [1], [1])).error_code == ErrorCode.NONE
    assert await partitions(wire, "t") == 3


@pytest.mark.parametrize(
    ("name", "count", "replicas", "code"),
    [
        ("t", 2, [], ErrorCode.INVALID_PARTITIONS),
        ("t", 1, [], ErrorCode.INVALID_PARTITIONS),
        ("t", -1, [], ErrorCode.INVALID_PARTITIONS),
        ("t", 10_003, [], ErrorCode.POLICY_VIOLATION),
        ("t", 4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [[2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("missing", 3, [], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_invalid_requests_are_refused(
    wire: Wire, name: str, count: int, replicas: list[list[int]], code: ErrorCode
) -> None:
    await create(wire, "t", 2)

    result = await grow(wire, name, count, *replicas)

    assert result.error_code == code
    assert result.error_message
    assert await partitions(wire, "t") == 2


async def test_validating_creates_nothing(wire: Wire) -> None:
    await create(wire, "t", 2)

    assert (await grow(wire, "t", 3, validate_only=True)).error_code == ErrorCode.NONE
    assert (await grow(wire, "t", 2, validate_only=True)).error_code == ErrorCode.INVALID_PARTITIONS
    assert await partitions(wire, "t") == 2


async def test_each_topic_succeeds_independently_and_is_named_once(wire: Wire) -> None:
    for name in ("a", "b"):
        await create(wire, name)
    wanted = [CreatePartitionsTopic(name, 2, None) for name in ("a", "b", "b", "missing")]

    results = (await wire.ask(CreatePartitionsRequest(wanted, 5000), 3)).results

    assert sorted((result.name, result.error_code) for result in results) == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.INVALID_REQUEST),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert (await partitions(wire, "a"), await partitions(wire, "b")) == (2, 1)


async def test_after_a_timeout_the_partitions_exist_nevertheless(wire: Wire) -> None:
    await create(wire, "t", 1)

    result = await grow(wire, "t", 50, timeout_ms=0)

    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert await partitions(wire, "t") == 50


async def test_a_request_creates_10000_partitions_at_most(wire: Wire) -> None:
    await create(wire, "t", 1)
    await create(wire, "u", 1)
    topics = [CreatePartitionsTopic(name, 6_001, None) for name in ("t", "missing", "u")]

    results = (await wire.ask(CreatePartitionsRequest(topics, 5000, True), 3)).results

    assert [(result.name, result.error_code) for result in results] == [
        ("t", ErrorCode.NONE),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", ErrorCode.POLICY_VIOLATION),
    ]
