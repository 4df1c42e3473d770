from __future__ import annotations

import asyncio

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire

NOT_REQUESTED = -0x80000000


def by_name(*names: str, create: bool = False) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=create)


async def names(wire: Wire, request: MetadataRequest, version: int) -> list[str]:
    return [topic.name for topic in (await wire.ask(request, version)).topics]


@pytest.mark.parametrize("version", range(14))
async def test_a_topic_is_returned_with_the_leaders_of_its_partitions(wire: Wire, version: int) -> None:
    topic_id = await create(wire, "t", 2)
    request = by_name("t") if version >= 4 else by_name("t", create=True)

    response: MetadataResponse = await wire.ask(request, version)

    [broker] = response.brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (1, "127.0.0.1", wire.port, None)
    assert response.controller_id == (1 if version >= 1 else -1)
    [topic] = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, "t", False)
    assert topic.topic_id == (topic_id if version >= 10 else bytes(16))
    for index, partition in enumerate(topic.partitions):
        assert (partition.error_code, partition.partition_index, partition.leader_id) == (0, index, 1)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])


async def test_the_cluster_has_an_id(wire: Wire) -> None:
    response = await wire.ask(MetadataRequest([]), 2)

    assert len(response.cluster_id) == 22


async def test_null_requests_all_topics(wire: Wire) -> None:
    for name in ("b", "a", "c"):
        await create(wire, name)

    assert sorted(await names(wire, MetadataRequest(None), 1)) == ["a", "b", "c"]
    assert sorted(await names(wire, MetadataRequest(None), 13)) == ["a", "b", "c"]


async def test_empty_requests_no_topics_but_all_in_version_0(wire: Wire) -> None:
    await create(wire, "t")

    assert await names(wire, MetadataRequest([]), 1) == []
    assert await names(wire, MetadataRequest([]), 12) == []
    assert await names(wire, MetadataRequest([]), 0) == ["t"]


async def test_a_topic_that_does_not_exist_is_unknown(wire: Wire) -> None:
    [topic] = (await wire.ask(by_name("missing"), 12)).topics

    assert (topic.error_code, topic.name, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "missing", [])
    assert await names(wire, MetadataRequest(None), 12) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 250, "\u00e4"])
@pytest.mark.parametrize("may_create", [True, False])
async def test_an_invalid_name_is_an_error(wire: Wire, name: str, may_create: bool) -> None:
    [topic] = (await wire.ask(by_name(name, create=may_create), 8)).topics

    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", [0, 3, 4, 13])
@pytest.mark.usefixtures("only_here")  # Apache Kafka answers UNKNOWN_TOPIC_OR_PARTITION the first time
async def test_a_requested_topic_is_created_and_usable_at_once(wire: Wire, version: int) -> None:
    [topic] = (await wire.ask(by_name("new", create=True), version)).topics

    assert (topic.error_code, topic.name, len(topic.partitions)) == (ErrorCode.NONE, "new", 1)
    assert (await produce(wire, "new", batch(b"a"))).error_code == ErrorCode.NONE


async def test_created_topics_follow_the_brokers_defaults() -> None:
    async with Broker({"num.partitions": "3"}) as broker, Wire("127.0.0.1", broker.port) as wire:
        [topic] = (await wire.ask(by_name("new", create=True), 12)).topics

        assert len(topic.partitions) == 3


async def test_auto_creation_can_be_disabled() -> None:
    async with Broker({"auto.create.topics.enable": "false"}) as broker, Wire("127.0.0.1", broker.port) as wire:
        [topic] = (await wire.ask(by_name("new", create=True), 12)).topics

        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_failed_creation_is_an_error() -> None:
    async with Broker({"default.replication.factor": "3"}) as broker, Wire("127.0.0.1", broker.port) as wire:
        [topic] = (await wire.ask(by_name("new", create=True), 12)).topics

        assert topic.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.usefixtures("only_here")  # on Apache Kafka they are
async def test_unused_internal_topics_are_not_created(wire: Wire) -> None:
    [topic] = (await wire.ask(by_name("__transaction_state", create=True), 12)).topics

    assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)


@pytest.mark.usefixtures("only_here")  # Apache Kafka says so in a later answer
async def test_the_topic_of_groups_is_created_by_the_coordinator(wire: Wire) -> None:
    [topic] = (await wire.ask(by_name("__consumer_offsets", create=True), 12)).topics

    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.NONE, True, 3)


@pytest.mark.parametrize("version", [12, 13])
async def test_topics_are_found_by_id(wire: Wire, version: int) -> None:
    topic_id = await create(wire, "t")
    wanted = [MetadataRequestTopic(topic_id, None), MetadataRequestTopic(bytes(range(16)), None)]

    response = await wire.ask(MetadataRequest(wanted), version)

    found = {topic.topic_id: (topic.error_code, topic.name) for topic in response.topics}
    assert found == {topic_id: (0, "t"), bytes(range(16)): (ErrorCode.UNKNOWN_TOPIC_ID, None)}


@pytest.mark.parametrize("topic", [MetadataRequestTopic(bytes(range(16)), "t"), MetadataRequestTopic(bytes(16), None)])
@pytest.mark.parametrize("version", [10, 11])
async def test_requests_by_id_are_refused_before_version_12(
    wire: Wire, topic: MetadataRequestTopic, version: int
) -> None:
    response = await wire.ask(MetadataRequest([topic]), version)

    assert [row.error_code for row in response.topics] == [ErrorCode.INVALID_REQUEST]


async def test_authorized_operations_are_included_on_request(wire: Wire) -> None:
    await create(wire, "t")
    request = MetadataRequest(None, True, True, True)

    response = await wire.ask(request, 10)

    assert response.cluster_authorized_operations == 8096
    assert response.topics[0].topic_authorized_operations == 3576
    quiet = await wire.ask(MetadataRequest(None), 10)
    assert quiet.cluster_authorized_operations == NOT_REQUESTED
    assert quiet.topics[0].topic_authorized_operations == NOT_REQUESTED


async def test_a_client_gets_the_address_that_it_connected_to() -> None:
    async with Broker({"listeners": "PLAINTEXT://0.0.0.0:0"}) as broker, Wire("127.0.0.2", broker.port) as wire:
        [node] = (await wire.ask(MetadataRequest([]), 12)).brokers

        assert (node.host, node.port) == ("127.0.0.2", broker.port)


async def test_a_client_gets_the_advertised_address() -> None:
    properties = {"advertised.listeners": "PLAINTEXT://kafka.example:19092", "broker.rack": "north"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        [node] = (await wire.ask(MetadataRequest([]), 12)).brokers

        assert (node.host, node.port, node.rack) == ("kafka.example", 19092, "north")


async def test_each_listener_has_its_own_address() -> None:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://outside:1,INSIDE://inside:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    }
    async with Broker(properties) as broker:
        addresses = {}
        for name, port in broker.ports.items():
            async with Wire("127.0.0.1", port) as wire:
                [node] = (await wire.ask(MetadataRequest([]), 12)).brokers
                addresses[name] = (node.host, node.port)

        assert addresses == {"PLAINTEXT": ("outside", 1), "INSIDE": ("inside", 2)}


MANY = [f"t{index}" for index in range(1_000)]


async def test_no_topic_is_created_by_a_request_for_more_than_10000_partitions() -> None:
    properties = {"num.partitions": "101"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        response = await wire.ask(by_name(*MANY[:100], create=True), 9)

        assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert not broker.services.metadata.image.topics


async def test_no_more_topics_are_created_after_the_client_disconnects(broker: Broker) -> None:
    async with Wire("127.0.0.1", broker.port) as leaving:
        await leaving.send(by_name(*MANY, create=True), 9)
        while len(broker.services.metadata.image.topics) < 3:  # noqa: ASYNC110 - it is the broker's own state
            await asyncio.sleep(0)
    async with asyncio.timeout(20):
        while broker.metrics.requests_in_flight:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)

    assert 3 <= len(broker.services.metadata.image.topics) < len(MANY)


async def test_many_topics_are_answered_in_the_order_of_the_request(wire: Wire) -> None:
    named = [f"missing-{index}" for index in range(20_000)]

    assert await names(wire, by_name(*named), 9) == named
