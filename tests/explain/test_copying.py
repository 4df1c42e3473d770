from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from odradek.broker.explain import Trace
from odradek.broker.explain.copying import MOST_ELEMENTS, MessageCopy
from odradek.broker.explain.events import Fields, RequestAnswered
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.schema import Message
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolSubscription, write_consumer_protocol
from tests.handlers.requests import batch, create
from tests.wire import Wire


def copied(message: Message, version: int, topics: Mapping[bytes, str] = MappingProxyType({})) -> Fields:
    return MessageCopy(message, version, topics.get).fields


def test_the_fields_of_the_version_are_copied() -> None:
    request = FetchRequest(max_wait_ms=500, topics=[FetchTopic("t", partitions=[FetchPartition(3, fetch_offset=7)])])

    fields = copied(request, 12)

    assert fields["max_wait_ms"] == 500
    assert "replica_state" not in fields
    assert fields["topics"][0]["topic"] == "t"
    assert fields["topics"][0]["partitions"][0]["fetch_offset"] == 7


def test_long_strings_are_cut_at_64_bytes() -> None:
    fields = copied(CreateTopicsRequest([CreatableTopic("ä" * 100), CreatableTopic("a" * 64)]), 5)

    assert [each["name"] for each in fields["topics"]] == ["ä" * 32 + "… (200 bytes)", "a" * 64]


def test_long_arrays_are_cut_with_a_count() -> None:
    rows = copied(CreateTopicsRequest([CreatableTopic(str(index)) for index in range(MOST_ELEMENTS + 5)]), 5)["topics"]

    assert len(rows) == MOST_ELEMENTS + 1
    assert rows[-1] == "… 5 more"


def test_nested_arrays_have_a_limit_of_their_own() -> None:
    partitions = [MetadataResponsePartition(partition_index=index, replica_nodes=[1] * 10) for index in range(10)]
    response = MetadataResponse(
        topics=[MetadataResponseTopic(name=str(index), partitions=partitions) for index in range(10)]
    )

    copy = MessageCopy(response, 12, {}.get)

    assert copy.size < 200_000
    assert copy.fields["topics"][-1] in {f"… {count} more" for count in range(1, 10)}


def test_error_codes_have_their_names() -> None:
    assert copied(MetadataResponse(topics=[MetadataResponseTopic(3, "t")]), 12)["topics"][0]["error_code"] == (
        "UNKNOWN_TOPIC_OR_PARTITION"
    )


async def test_encoded_parts_are_decoded(wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    await wire.ask(MetadataRequest(None), 12)
    trace.install()

    response = await wire.ask(MetadataRequest(None), 12)

    [answer] = [each for each in trace.events if isinstance(each, RequestAnswered)]
    assert answer.fields == copied(response, 12, {response.topics[0].topic_id: "orders"})


def test_topic_ids_have_the_names_of_their_topics() -> None:
    request = ProduceRequest(topic_data=[TopicProduceData(topic_id=b"i" * 16)])

    assert copied(request, 13, {b"i" * 16: "orders"})["topic_data"][0]["topic_id"] == "aWlpaWlpaWlpaWlpaWlpaQ (orders)"


def subscription(protocol_type: str) -> Any:
    metadata = write_consumer_protocol(ConsumerProtocolSubscription(["orders"]), 1)
    request = JoinGroupRequest(
        "g", protocol_type=protocol_type, protocols=[JoinGroupRequestProtocol("range", metadata)]
    )
    return copied(request, 5)["protocols"][0]["metadata"]


def test_subscriptions_are_decoded() -> None:
    assert subscription("consumer")["topics"] == ["orders"]


def test_metadata_of_other_protocols_are_bytes() -> None:
    assert subscription("connect").startswith("0x0001")


def test_a_copy_does_not_refer_to_the_buffer() -> None:
    buffer = bytearray(batch(b"before"))
    request = ProduceRequest(
        topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, memoryview(buffer))])]
    )

    fields = copied(request, 9)
    buffer[:] = bytes(len(buffer))
    del request

    [shown] = fields["topic_data"][0]["partition_data"][0]["records"]
    assert shown["records"][0]["value"] == '"before"'
    buffer.clear()  # a view would refuse it
