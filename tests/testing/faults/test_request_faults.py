"""Rules for requests against a running broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.apis.table import ROWS
from odradek.broker.broker import Broker
from odradek.broker.testing.faults import Faults
from odradek.broker.testing.faults.error_rows import carries
from odradek.protocol.api import by_key
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.handlers.requests import batch, create, fetch_request, produce, produce_request
from tests.testing.faults.examples import filled
from tests.wire import Wire

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
NONE = ErrorCode.NONE
HOUR_MS = 3_600_000


def produce_to(named: dict[str, list[int]], acks: int = 1, **ids: bytes) -> ProduceRequest:
    topics = [
        TopicProduceData(
            topic, ids.get(topic, bytes(16)), [PartitionProduceData(index, batch(b"v")) for index in indexes]
        )
        for topic, indexes in named.items()
    ]
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=topics)


def codes(response: Any) -> dict[tuple[Any, int], ErrorCode]:
    return {
        (topic.name or topic.topic_id, row.index): ErrorCode(row.error_code)
        for topic in response.responses
        for row in topic.partition_responses
    }


async def end_offset(wire: Wire, topic: str, partition: int = 0) -> int:
    wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, timestamp=-1)])
    [found] = (await wire.ask(ListOffsetsRequest(-1, topics=[wanted]), 4)).topics
    offset: int = found.partitions[0].offset
    return offset


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, which it soon does."""
    while not condition():  # noqa: ASYNC110 - a turn of the loop, not a pause
        await asyncio.sleep(0)


async def closes(wire: Wire, request: Any, version: int) -> bool:
    await wire.send(request, version)
    return await wire.is_closed_by_peer()


# ------------------------------------------------------------------------------------------------------------- failures


async def test_only_the_named_partition_fails_and_the_others_are_executed(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=2)
    await create(wire, "u")
    rule = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=0, times=2)

    for _ in range(2):
        found = codes(await wire.ask(produce_to({"t": [0, 1], "u": [0]}), 9))
        assert found == {("t", 0): NOT_LEADER, ("t", 1): NONE, ("u", 0): NONE}
    assert rule.hits == 2
    assert [await end_offset(wire, *each) for each in (("t", 0), ("t", 1), ("u", 0))] == [0, 2, 2]

    assert set(codes(await wire.ask(produce_to({"t": [0, 1], "u": [0]}), 9)).values()) == {NONE}
    assert rule.hits == 2


async def test_a_request_without_the_partition_is_no_hit(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=2)
    rule = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=0)
    assert codes(await wire.ask(produce_to({"t": [1]}), 9)) == {("t", 1): NONE}
    assert rule.hits == 0


async def test_a_partition_without_a_topic_is_that_of_every_topic(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=2)
    await create(wire, "u", partitions=2)
    faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", partition=1)
    found = codes(await wire.ask(produce_to({"t": [0, 1], "u": [1]}), 9))
    assert found == {("t", 0): NONE, ("t", 1): NOT_LEADER, ("u", 1): NOT_LEADER}


async def test_topics_are_found_by_their_ids(wire: Wire, faults: Faults) -> None:
    t, u = await create(wire, "t"), await create(wire, "u")
    faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t")
    found = codes(await wire.ask(produce_to({"t": [0], "u": [0]}, t=t, u=u), 13))
    assert found == {(t, 0): NOT_LEADER, (u, 0): NONE}


async def test_rules_for_different_partitions_fail_one_request_together(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=3)
    first = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=0)
    second = faults.fail("Produce", "KAFKA_STORAGE_ERROR", topic="t", partition=1)
    too_late = faults.fail("Produce", "MESSAGE_TOO_LARGE", topic="t", partition=1)

    found = codes(await wire.ask(produce_to({"t": [0, 1, 2]}), 9))

    assert found == {("t", 0): NOT_LEADER, ("t", 1): ErrorCode.KAFKA_STORAGE_ERROR, ("t", 2): NONE}
    assert (first.hits, second.hits, too_late.hits) == (1, 1, 0)


async def test_a_produce_without_answer_closes_the_connection_after_the_other_appends(
    wire: Wire, other: Wire, faults: Faults
) -> None:
    await create(wire, "t", partitions=2)
    faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=0)
    assert await closes(wire, produce_to({"t": [0, 1]}, acks=0), 9)
    assert [await end_offset(other, "t", partition) for partition in (0, 1)] == [0, 1]


async def test_a_produce_without_answer_may_fail_completely(wire: Wire, other: Wire, faults: Faults) -> None:
    await create(wire, "t")
    rule = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    assert await closes(wire, produce_to({"t": [0]}, acks=0), 9)
    assert await end_offset(other, "t") == 0
    assert rule.hits == 1


async def test_without_topic_every_row_fails_and_nothing_is_executed(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=2)
    faults.fail("Produce", ErrorCode.KAFKA_STORAGE_ERROR)
    assert set(codes(await wire.ask(produce_to({"t": [0, 1]}), 9)).values()) == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert await end_offset(wire, "t") == 0


async def test_a_failed_topic_is_not_created_and_the_other_is(wire: Wire, faults: Faults) -> None:
    faults.fail("CreateTopics", "POLICY_VIOLATION", topic="t")
    request = CreateTopicsRequest([CreatableTopic("t", 1, 1), CreatableTopic("u", 1, 1)], 5000)
    found = {row.name: row.error_code for row in (await wire.ask(request, 7)).topics}
    assert found == {"t": ErrorCode.POLICY_VIOLATION, "u": NONE}

    faults.fail("DeleteTopics", "TOPIC_DELETION_DISABLED", topic="u")
    deleted = await wire.ask(DeleteTopicsRequest(topic_names=["u"], timeout_ms=5000), 5)
    assert [(row.name, row.error_code) for row in deleted.responses] == [("u", ErrorCode.TOPIC_DELETION_DISABLED)]
    metadata = await wire.ask(MetadataRequest(None), 12)
    assert [topic.name for topic in metadata.topics] == ["u"]


async def test_metadata_has_errors_of_topics_and_of_partitions_that_it_was_not_asked_for(
    wire: Wire, faults: Faults
) -> None:
    await create(wire, "t", partitions=2)
    await create(wire, "u")
    faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic="t", partition=1)
    faults.fail("Metadata", "TOPIC_AUTHORIZATION_FAILED", topic="u")

    faults.fail("Metadata", "REPLICA_NOT_AVAILABLE", topic="t", partition=0, client_id="other", optional=True)

    for asked in (None, [MetadataRequestTopic(name=name) for name in ("t", "u")]):
        answer = await wire.ask(MetadataRequest(asked), 12)
        assert answer.brokers
        t, u = sorted(answer.topics, key=lambda topic: topic.name)
        assert (t.error_code, u.error_code) == (NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert [(row.partition_index, row.error_code) for row in t.partitions] == [
            (0, NONE),
            (1, ErrorCode.LEADER_NOT_AVAILABLE),
        ]
        assert (t.partitions[1].leader_id, t.partitions[1].replica_nodes) == (-1, t.partitions[0].replica_nodes)


async def test_an_empty_request_may_mean_all_topics(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=2)
    rule = faults.fail("Metadata", "TOPIC_AUTHORIZATION_FAILED", topic="t")
    [topic] = (await wire.ask(MetadataRequest([]), 0)).topics
    assert topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (await wire.ask(MetadataRequest([]), 1)).topics == []
    assert rule.hits == 1

    faults.fail("DescribeTopicPartitions", "LEADER_NOT_AVAILABLE", topic="t", partition=1)
    [described] = (await wire.ask(DescribeTopicPartitionsRequest([], 100), 0)).topics
    assert [row.error_code for row in described.partitions] == [NONE, ErrorCode.LEADER_NOT_AVAILABLE]


async def test_a_request_that_is_decoded_in_steps_fails_alike(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=2)
    faults.fail("Produce", "MESSAGE_TOO_LARGE", topic="t", partition=0)
    large = batch(b"v" * 100_000)
    assert (await produce(wire, "t", large, 0)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (await produce(wire, "t", large, 1)).error_code == NONE


async def test_a_row_that_the_answer_does_not_have_is_no_hit(wire: Wire, faults: Faults) -> None:
    await create(wire, "t")
    rule = faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic="gone", times=1)
    assert [topic.error_code for topic in (await wire.ask(MetadataRequest(None), 12)).topics] == [NONE]
    assert rule.hits == 0


async def test_an_answer_to_all_topics_fails_in_every_row(wire: Wire, faults: Faults) -> None:
    await create(wire, "t")
    rule = faults.fail("Metadata", "LEADER_NOT_AVAILABLE")
    [topic] = (await wire.ask(MetadataRequest(None), 12)).topics
    assert topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert [row.error_code for row in topic.partitions] == [ErrorCode.LEADER_NOT_AVAILABLE]
    assert rule.hits == 1


async def test_an_answer_without_rows_cannot_fail_and_is_no_hit(wire: Wire, faults: Faults) -> None:
    rule = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    assert codes(await wire.ask(produce_to({}), 9)) == {}
    assert rule.hits == 0


@pytest.mark.parametrize("key", ROWS)
async def test_every_api_fails_in_every_version_with_any_error(wire: Wire, faults: Faults, key: int) -> None:
    api, row = by_key(key), ROWS[key]
    errors = [code for code in ErrorCode if code is not NONE]
    for version in range(row.min_version, row.max_version + 1):
        request = filled(api.request, version)
        if api.name == "Produce":
            request.acks = 1
        tried = errors if version == row.max_version else errors[version::10]
        for code in tried:
            rule = faults.fail(api.name, code)
            assert carries(await wire.ask(request, version), version, code), (version, code)
            assert rule.hits == 1
            rule.remove()


async def test_an_error_that_the_broker_itself_never_sends_is_sent(wire: Wire, faults: Faults) -> None:
    faults.fail("Heartbeat", "COORDINATOR_LOAD_IN_PROGRESS")
    answer = await wire.ask(HeartbeatRequest("g", 1, "m"), 4)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


# ----------------------------------------------------------------------------------------------- drops, delays, pauses


async def test_a_request_that_is_dropped_before_is_not_executed(wire: Wire, other: Wire, faults: Faults) -> None:
    await create(wire, "t")
    rule = faults.drop("Produce")
    assert await closes(wire, produce_request("t", batch(b"v")), 9)
    assert await end_offset(other, "t") == 0
    assert rule.hits == 1


async def test_of_a_request_that_is_dropped_after_only_the_answer_is_lost(
    wire: Wire, other: Wire, faults: Faults
) -> None:
    await create(wire, "t")
    faults.drop("Produce", "after", topic="t")
    assert await closes(wire, produce_request("t", batch(b"v")), 9)
    assert await end_offset(other, "t") == 1


async def test_a_paused_request_goes_on_at_the_end_of_the_block(wire: Wire, other: Wire, faults: Faults) -> None:
    await create(wire, "t")
    with faults.pause("Produce") as rule:
        await wire.send(produce_request("t", batch(b"v")), 9)
        while not rule.hits:
            assert await end_offset(other, "t") == 0  # served meanwhile
        assert await end_offset(other, "t") == 0
    [topic] = (await wire.receive(produce_request("t", None), 9)).responses
    assert topic.partition_responses[0].error_code == NONE
    assert await end_offset(other, "t") == 1
    assert faults.rules == ()


async def test_all_requests_may_be_paused(wire: Wire, other: Wire, faults: Faults) -> None:
    async with faults.pause(optional=True) as rule:
        for each in (wire, other):
            await each.send(ApiVersionsRequest(), 0)
        await until(lambda: rule.hits == 2)
    for each in (wire, other):
        assert (await each.receive(ApiVersionsRequest(), 0)).error_code == NONE


async def test_a_paused_request_whose_client_has_gone_leaves_nothing_behind(
    broker: Broker, wire: Wire, faults: Faults
) -> None:
    await create(wire, "t")
    before = asyncio.all_tasks()
    with faults.pause("ListOffsets") as paused, faults.pause("Fetch") as fetches:
        async with Wire("127.0.0.1", broker.port) as leaving, Wire("127.0.0.1", broker.port) as reading:
            await leaving.send(ListOffsetsRequest(-1, topics=[]), 4)
            await reading.send(fetch_request("t"), 12)
            await until(lambda: paused.hits and fetches.hits)
        await until(lambda: broker.metrics.requests_in_flight == 1)  # the fetch is cancelled at once
    await until(lambda: not broker.metrics.requests_in_flight)
    assert asyncio.all_tasks() == before


async def test_a_delayed_request_is_executed_later(wire: Wire, faults: Faults) -> None:
    await create(wire, "t")
    rule = faults.delay("Produce", 0.001, topic="t")
    assert (await produce(wire, "t", batch(b"v"))).error_code == NONE
    assert rule.hits == 1


async def test_the_removal_of_a_delay_ends_it(wire: Wire, other: Wire, faults: Faults) -> None:
    await create(wire, "t")
    rule = faults.delay("Produce", 3600)
    await wire.send(produce_request("t", batch(b"v")), 9)
    while not rule.hits:
        assert await end_offset(other, "t") == 0
    rule.remove()
    rule.remove()
    await wire.receive(produce_request("t", None), 9)
    assert await end_offset(other, "t") == 1


async def test_a_broker_stops_while_requests_are_held_back() -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        faults = Faults(broker)
        rules = [faults.pause("Produce"), faults.delay("ListOffsets", 3600)]
        async with Wire("127.0.0.1", broker.port) as other:
            await wire.send(produce_request("t", batch(b"v")), 9)
            await other.send(ListOffsetsRequest(-1, topics=[]), 4)
            await until(lambda: all(rule.hits for rule in rules))
        await broker.stop()
        faults.clear()


# ------------------------------------------------------------------------------------------------------------ throttles


async def test_a_throttled_connection_is_muted_and_others_are_not(wire: Wire, other: Wire, faults: Faults) -> None:
    await create(wire, "t")
    rule = faults.throttle("Produce", HOUR_MS, client_id="wire")
    request = produce_request("t", batch(b"v"))
    assert (await wire.ask(request, 9)).throttle_time_ms == HOUR_MS
    assert (await other.ask(request, 9)).throttle_time_ms == 0

    asked = asyncio.ensure_future(wire.ask(ApiVersionsRequest(), 0))
    for _ in range(10):
        assert await end_offset(other, "t") == 2
    assert not asked.done()
    rule.remove()
    assert (await asked).error_code == NONE
    assert rule.hits == 1


async def test_a_muted_connection_is_served_again_after_its_time(wire: Wire, faults: Faults) -> None:
    faults.throttle("ApiVersions", 1)
    for _ in range(3):
        assert (await wire.ask(ApiVersionsRequest(), 1)).throttle_time_ms == 1


async def test_an_answer_without_a_throttle_time_stays_as_it_is(wire: Wire, faults: Faults) -> None:
    rule = faults.throttle("ApiVersions", 1)
    assert (await wire.ask(ApiVersionsRequest(), 0)).throttle_time_ms == 0
    assert rule.hits == 1
