"""The log of topics: who created, altered or deleted which, by which API, and never too many lines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.image import PartitionImage, TopicImage
from odradek.broker.request.audit import MOST_CHANGES
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.request.topic_log import LOGGER, TopicLog
from odradek.broker.security.principal import Principal
from odradek.broker.structured_logging import LogEvent
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from odradek.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.uuids import uuid_to_text
from tests.wire import Wire

TOPIC = TopicImage("t" * 249, bytes(16), [PartitionImage(1, 0, [1], {1: 0}, 0)])

Events = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def events(caplog: pytest.LogCaptureFixture) -> Events:
    """The events since the last call."""
    caplog.set_level(logging.INFO, LOGGER)

    def events() -> list[dict[str, Any]]:
        found = [
            {"event": record.msg.name, **record.msg.fields}
            for record in caplog.records
            if record.name == LOGGER and isinstance(record.msg, LogEvent)
        ]
        caplog.clear()
        return found

    return events


def create(*names: str, validate_only: bool = False, timeout_ms: int = 60_000) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(name, 2, 1) for name in names], timeout_ms, validate_only=validate_only)


async def test_a_created_and_a_deleted_topic_are_lines_with_who_and_how(events: Events) -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port, "tool") as wire:
        await wire.ask(create("orders", validate_only=True), 7)
        answer = await wire.ask(create("orders", "wrong name"), 7)
        await wire.ask(create("orders"), 7)
        [created] = events()
        await wire.ask(DeleteTopicsRequest([DeleteTopicState("orders"), DeleteTopicState("missing")]), 6)
        [deleted] = events()

    of_topic = {"topic": "orders", "id": uuid_to_text(answer.topics[0].topic_id), "partitions": 2, "replicas": 1}
    who = {"principal": "User:ANONYMOUS", "mechanism": "", "listener": "PLAINTEXT", "client_id": "tool"}
    assert (created.pop("peer")[0], deleted.pop("peer")[0]) == ("127.0.0.1", "127.0.0.1")
    assert created == {"event": "topic created", **of_topic, **who, "api": "CreateTopics"}
    assert deleted == {"event": "topic deleted", **of_topic, **who, "api": "DeleteTopics"}


async def test_altered_topics_are_lines_with_what_was_altered(events: Events) -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port, "tool") as wire:
        answer = await wire.ask(create("orders"), 7)
        assert [event["event"] for event in events()] == ["topic created"]
        set_ = [AlterableConfig("retention.ms", 0, "123456789"), AlterableConfig("segment.ms", 0, "100000")]
        resources = [AlterConfigsResource(2, name, set_) for name in ("orders", "missing")]
        resources.append(AlterConfigsResource(4, "", [AlterableConfig("log.retention.ms", 0, "100000")]))
        await wire.ask(IncrementalAlterConfigsRequest(resources, validate_only=True), 1)
        await wire.ask(IncrementalAlterConfigsRequest(resources), 1)
        replaced = ReplacedResource(2, "orders", [ReplacedConfig("segment.ms", "1000000")])
        await wire.ask(AlterConfigsRequest([replaced]), 2)
        more = [CreatePartitionsTopic("orders", 5, None), CreatePartitionsTopic("missing", 5, None)]
        await wire.ask(CreatePartitionsRequest(more, validate_only=True), 3)
        await wire.ask(CreatePartitionsRequest(more), 3)
        node_id = broker.services.config.node_id
        moved = [ReassignablePartition(index, [node_id if index < 2 else 77]) for index in range(3)]
        topics = [ReassignableTopic("orders", moved), ReassignableTopic("missing", moved)]
        await wire.ask(AlterPartitionReassignmentsRequest(topics=topics), 0)
        altered = events()

    assert {(event["event"], event["topic"], event["client_id"]) for event in altered} == {
        ("topic altered", "orders", "tool")
    }
    topic_id = uuid_to_text(answer.topics[0].topic_id)
    assert [event.get("id", topic_id) for event in altered] == [topic_id] * 4
    shown = ("properties", "partitions", "reassigned")
    assert [(event["api"], *(event.get(name) for name in shown)) for event in altered] == [
        ("IncrementalAlterConfigs", "retention.ms, segment.ms", None, None),
        ("AlterConfigs", "segment.ms", None, None),
        ("CreatePartitions", None, 5, None),
        ("AlterPartitionReassignments", None, None, 2),
    ]
    assert "123456789" not in str(altered)


async def test_topics_that_no_client_asked_to_create_are_lines_with_the_client(events: Events) -> None:
    async with Broker({"num.partitions": "3"}) as broker, Wire("127.0.0.1", broker.port, "app") as wire:
        for _ in range(2):
            await wire.ask(MetadataRequest([MetadataRequestTopic(name="oders")]), 9)
            await wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
            await wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["transaction"]), 4)
        created = events()
    assert {(event["event"], event["client_id"]) for event in created} == {("topic created", "app")}
    assert [(event["topic"], event["partitions"], event["api"]) for event in created] == [
        ("oders", 3, "Metadata"),
        ("__consumer_offsets", 1, "FindCoordinator"),
        ("__transaction_state", 1, "FindCoordinator"),
    ]


async def test_the_topic_of_groups_that_a_client_names_is_a_line(events: Events) -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port, "app") as wire:
        await wire.ask(MetadataRequest([MetadataRequestTopic(name="__consumer_offsets")]), 9)
    assert [(event["topic"], event["api"]) for event in events()] == [("__consumer_offsets", "Metadata")]


async def test_every_topic_that_exists_has_a_line_if_the_client_has_gone(events: Events) -> None:
    async with Broker() as broker:
        metadata = broker.services.metadata
        async with Wire("127.0.0.1", broker.port) as leaving:
            await leaving.send(create(*(f"t{number}" for number in range(2_000))), 7)
            while len(metadata.image.topics) < 3:  # noqa: ASYNC110 - it is the broker's own state
                await asyncio.sleep(0)
        async with asyncio.timeout(20):
            while broker.metrics.requests_in_flight:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)
        assert 3 <= len(metadata.image.topics) < 2_000
        assert {event["topic"] for event in events()} == metadata.image.topics.keys()


async def test_a_topic_that_is_not_usable_in_time_has_a_line(events: Events) -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await wire.ask(create("orders"), 7)
        late = await wire.ask(CreatePartitionsRequest([CreatePartitionsTopic("orders", 50, None)], timeout_ms=0), 3)
    assert late.results[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert [event["partitions"] for event in events()] == [2, 50]


def request_of(name: str, api_key: int = 19) -> RequestContext:
    connection = ConnectionContext("L", ("127.0.0.1", 1), ("127.0.0.1", 2))
    connection.principal = Principal("User", name)
    return RequestContext(api_key, 0, 0, "c" * 1000, 0.0, connection)


def test_a_change_whose_outcome_is_unknown_says_so(events: Events) -> None:
    log = TopicLog(ManualClock())
    for report in (log.creations(request_of("alice")), log.alterations(request_of("alice", 44), ["retention.ms"])):
        report(TOPIC, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    assert [(event["event"], event["outcome"]) for event in events()] == [
        ("topic created", "unknown"),
        ("topic altered", "unknown"),
    ]


def test_lines_of_one_client_are_limited_and_the_others_counted(events: Events) -> None:
    clock = ManualClock()
    log = TopicLog(clock)
    for _ in range(10_000):
        log.creations(request_of("mallory"))(TOPIC, None)
    log.creations(request_of("alice"))(TOPIC, None)
    log.deletions(request_of("mallory", 20))(TOPIC, None)
    written = events()
    assert [event["event"] for event in written] == ["topic created"] * (MOST_CHANGES[0] + 1) + ["topic deleted"]
    assert max(len(str(LogEvent("", event))) for event in written) < 1_000

    clock.advance(10_000)
    log.tick()

    dropped = {"event": "dropped", "dropped": "topic created", "client": "User:mallory", "seconds": 10}
    assert events() == [{**dropped, "count": 10_000 - MOST_CHANGES[0]}]


async def test_a_request_with_many_topics_is_a_bounded_number_of_lines(events: Events) -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        changes = [AlterableConfig("retention.ms", 0, "100000")]
        names = [f"t{number}" for number in range(MOST_CHANGES[0] + 10)]
        await wire.ask(create(*names), 7)
        await wire.ask(IncrementalAlterConfigsRequest([AlterConfigsResource(2, name, changes) for name in names]), 1)
        written = [event["event"] for event in events()]
    assert [written.count(event) for event in ("topic created", "topic altered")] == [MOST_CHANGES[0]] * 2
