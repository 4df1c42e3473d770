"""`Admin` over a scripted network: the brokers of its requests, retries, and the errors of items."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.client import (
    Admin,
    BrokerError,
    NewTopic,
    OffsetSpec,
    TimeLimitError,
    TopicPartition,
    UnsupportedVersionError,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from tests.client.scripted_broker import Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import drop_unread, now
from tests.client.virtual_time import simulated

CREATE_TOPICS = 19


def refuse(code: ErrorCode) -> Any:
    async def answer(broker: Broker, request: Any) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreatableTopicResult(one.name, error_code=code) for one in request.topics])

    return answer


async def create(broker: Broker, request: Any) -> CreateTopicsResponse:
    for topic in request.topics:
        broker.network.create(topic.name, topic.num_partitions)
    return CreateTopicsResponse(topics=[CreatableTopicResult(one.name) for one in request.topics])


def serve_creation(network: ScriptedNetwork) -> None:
    for broker in network.brokers.values():
        broker.versions[CREATE_TOPICS] = (2, 7)


@simulated
async def test_the_error_for_a_broker_without_the_api_names_both() -> None:
    network = ScriptedNetwork()
    async with Admin(network.bootstrap, network=network) as admin:
        with pytest.raises(UnsupportedVersionError) as raised:
            (await admin.create_partitions({"t": 3})).value("t")
    assert str(raised.value) == (
        "send CreatePartitions at broker1:9092 (broker 1): this call needs 0 to 3, the broker does not serve it. "
        "Upgrade the older side"
    )


@simulated
async def test_a_version_without_a_requested_feature_is_an_error() -> None:
    network = ScriptedNetwork()
    network.create("t")
    network.brokers[1].limit("ListOffsets", 6)
    partition = TopicPartition("t", 0)
    async with Admin(network.bootstrap, network=network) as admin:
        with pytest.raises(UnsupportedVersionError, match="this call needs 7 to 11, the broker serves 1 to 6"):
            (await admin.list_offsets({partition: OffsetSpec.MAX_TIMESTAMP})).value(partition)
        assert (await admin.list_offsets({partition: OffsetSpec.LATEST})).value(partition).offset == 0


@simulated
async def test_retriable_errors_are_retried_and_final_ones_are_not() -> None:
    network = ScriptedNetwork(brokers=2)
    serve_creation(network)
    network.brokers[1].script("CreateTopics", drop_unread, refuse(ErrorCode.NOT_CONTROLLER), create)
    async with Admin(network.bootstrap, network=network) as admin:
        (await admin.create_topics([NewTopic("t", 2)])).value("t")
        assert len(network.partitions("t")) == 2
        network.brokers[1].script("CreateTopics", refuse(ErrorCode.POLICY_VIOLATION))
        outcome = (await admin.create_topics([NewTopic("u", 2)]))["u"]
        assert isinstance(outcome, BrokerError)
        assert outcome.code is ErrorCode.POLICY_VIOLATION


@simulated
async def test_an_item_has_the_last_error_after_the_timeout() -> None:
    network = ScriptedNetwork()
    serve_creation(network)
    network.brokers[1].script("CreateTopics", *[refuse(ErrorCode.NOT_CONTROLLER)] * 100)
    async with Admin(network.bootstrap, network=network) as admin:
        start = now()
        outcome = (await admin.create_topics([NewTopic("t", 1)], timeout_ms=5000))["t"]
        assert isinstance(outcome, BrokerError)
        assert outcome.code is ErrorCode.NOT_CONTROLLER
        assert now() - start == pytest.approx(5)


@simulated
async def test_a_silent_broker_is_a_time_limit_error() -> None:
    network = ScriptedNetwork()
    serve_creation(network)
    network.brokers[1].script("CreateTopics", say_nothing)
    async with Admin(network.bootstrap, network=network) as admin:
        with pytest.raises(TimeLimitError, match=r"create a topic: no response within 300 ms\. The request may"):
            (await admin.create_topics([NewTopic("t", 1)], timeout_ms=300)).value("t")


async def say_nothing(broker: Broker, request: Any) -> None:
    return None


@simulated
async def test_a_silent_broker_costs_only_its_own_items_their_results() -> None:
    network = ScriptedNetwork(brokers=2)
    network.create("t", 2)
    network.brokers[2].script("ListOffsets", say_nothing)
    answered, silent = TopicPartition("t", 0), TopicPartition("t", 1)
    async with Admin(network.bootstrap, network=network) as admin:
        results = await admin.list_offsets(dict.fromkeys([answered, silent], OffsetSpec.LATEST), timeout_ms=300)
    assert list(results) == [answered, silent]
    assert results.value(answered).offset == 0
    assert isinstance(results[silent], TimeLimitError)


@simulated
async def test_the_error_of_a_broker_is_kept_while_another_one_is_silent() -> None:
    network = ScriptedNetwork(brokers=2)
    network.create("t", 2)

    async def misname(broker: Broker, request: Any) -> Any:
        answer = await broker.serve(request)
        answer.topics[0].partitions[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return answer

    network.brokers[1].script("ListOffsets", misname)
    network.brokers[2].script("ListOffsets", say_nothing)
    refused, silent = TopicPartition("t", 0), TopicPartition("t", 1)
    async with Admin(network.bootstrap, network=network) as admin:
        results = await admin.list_offsets(dict.fromkeys([refused, silent], OffsetSpec.LATEST), timeout_ms=300)
    outcome = results[refused]
    assert isinstance(outcome, BrokerError)
    assert outcome.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert isinstance(results[silent], TimeLimitError)


@simulated
async def test_a_broker_that_did_not_respond_is_not_the_next_one_to_get_a_request() -> None:
    network = ScriptedNetwork(brokers=2)
    network.create("t", 2)
    places = {TopicPartition("t", index): OffsetSpec.LATEST for index in range(2)}
    async with Admin(network.bootstrap, network=network) as admin:
        (await admin.list_offsets(places)).values_or_raise()  # connects to both
        for broker in network.brokers.values():
            broker.script("Metadata", say_nothing)
        for _ in network.brokers:
            with pytest.raises(TimeLimitError):
                await admin.list_topics(timeout_ms=300)
        await admin.list_topics(timeout_ms=300)


@simulated
async def test_an_item_that_is_missing_in_the_response_has_an_error() -> None:
    network = ScriptedNetwork()
    serve_creation(network)

    async def answer(broker: Broker, request: Any) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreatableTopicResult("other")])

    network.brokers[1].script("CreateTopics", answer)
    async with Admin(network.bootstrap, network=network) as admin:
        results = await admin.create_topics([NewTopic("t", 1)])
    assert list(results) == ["t"]
    assert str(results["t"]) == "create a topic: the broker's response does not contain it"


@simulated
async def test_every_leader_gets_one_request_for_all_its_partitions() -> None:
    network = ScriptedNetwork(brokers=3)
    network.create("t", 9)
    places = {TopicPartition("t", index): OffsetSpec.LATEST for index in range(9)}
    async with Admin(network.bootstrap, network=network) as admin:
        results = await admin.list_offsets(places)
    assert list(results) == list(places)
    assert [results.value(partition).offset for partition in places] == [0] * 9
    for broker in network.brokers.values():
        [request] = broker.received(ListOffsetsRequest)
        assert [len(topic.partitions) for topic in request.topics] == [3]


@simulated
async def test_a_moved_leader_is_followed_and_a_missing_one_is_an_error() -> None:
    network = ScriptedNetwork(brokers=2)
    first, second = network.create("t", 2)
    network.move(second, to=1)
    second.leader = -1

    async def move_and_serve(broker: Broker, request: Any) -> Any:
        network.move(first, to=2)
        return await broker.serve(request)

    network.brokers[1].script("ListOffsets", move_and_serve)
    async with Admin(network.bootstrap, network=network) as admin:
        places = {TopicPartition("t", index): OffsetSpec.LATEST for index in range(2)}
        results = await admin.list_offsets(places, timeout_ms=3000)
    assert results.value(TopicPartition("t", 0)).offset == 0
    assert str(results[TopicPartition("t", 1)]).startswith("look up an offset on t-1 at broker")
    assert "LEADER_NOT_AVAILABLE. The partition has no leader" in str(results[TopicPartition("t", 1)])
