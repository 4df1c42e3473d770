"""Requests that many tests send, with the fields that matter to them."""

from __future__ import annotations

import asyncio
from typing import Any

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import batch_headers
from odradek.protocol.records.record_iterator import Record, iter_records
from tests.wire import Wire

NOW = 1_700_000_000_000


def batch(*values: bytes, **fields: Any) -> bytes:
    """A batch with these values; `fields` are BatchBuilder's."""
    builder = BatchBuilder(**fields)
    for index, value in enumerate(values):
        builder.append(NOW + index, b"k", value)
    return bytes(builder.build())


def values_in(row: PartitionData) -> list[bytes | None]:
    return [record.value for record in records_in(row)]


def records_in(row: PartitionData) -> list[Record]:
    found: list[Record] = []
    for position, header in batch_headers(row.records or b""):
        found += iter_records(row.records, position, header)
    return found


async def create(wire: Wire, name: str, partitions: int = 1, **configs: str) -> bytes:
    """Create a topic, the dots of its configs written as underscores, and return its id when it can be used.

    Here that is at once; Apache Kafka answers while its partitions are still without a leader.
    """
    properties = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    request = CreateTopicsRequest([CreatableTopic(name, partitions, 1, configs=properties)], 60_000)
    [result] = (await wire.ask(request, 7)).topics
    assert result.error_code == ErrorCode.NONE, result
    wanted = [ListOffsetsTopic(name, [ListOffsetsPartition(index, timestamp=-1) for index in range(partitions)])]
    while True:
        [found] = (await wire.ask(ListOffsetsRequest(-1, topics=wanted), 4)).topics
        if not any(row.error_code for row in found.partitions):
            topic_id: bytes = result.topic_id
            return topic_id


async def new_producer_id(wire: Wire) -> int:
    """A producer id. Apache Kafka has none right after its start, and returns an error."""
    while True:
        given = await wire.ask(InitProducerIdRequest(None), 4)
        if given.error_code == ErrorCode.NONE:
            producer_id: int = given.producer_id
            return producer_id
        assert ErrorCode.of(given.error_code).retriable


def produce_request(
    topic: str, records: bytes | None, partition: int = 0, acks: int = 1, **fields: Any
) -> ProduceRequest:
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(partition, records)])
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[data], **fields)


async def produce(
    wire: Wire, topic: str, records: bytes | None, partition: int = 0, acks: int = 1, version: int = 9
) -> PartitionProduceResponse:
    """Produce to one partition and return its row."""
    response = await wire.ask(produce_request(topic, records, partition, acks), version)
    [[row]] = [topic.partition_responses for topic in response.responses]
    assert isinstance(row, PartitionProduceResponse)
    return row


def fetch_request(topic: str, offset: int = 0, partition: int = 0, **fields: Any) -> FetchRequest:
    """A request for one partition that does not wait; `fields` are those of the request and of the partition."""
    wanted = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic, partitions=[wanted])])
    for name, value in fields.items():
        setattr(wanted if name in FetchPartition.__struct_fields__ else request, name, value)
    return request


async def fetch(
    wire: Wire, topic: str, offset: int = 0, partition: int = 0, version: int = 12, **fields: Any
) -> PartitionData:
    """Fetch from one partition and return its row."""
    response = await wire.ask(fetch_request(topic, offset, partition, **fields), version)
    assert response.error_code == ErrorCode.NONE
    [[row]] = [topic.partitions for topic in response.responses]
    assert isinstance(row, PartitionData)
    return row


async def parked(broker: Broker, count: int = 1) -> None:
    """Wait until so many fetches are parked."""
    while len(broker.services.fetch_purgatory) != count:  # noqa: ASYNC110 - a turn of the loop, not a pause
        await asyncio.sleep(0)
