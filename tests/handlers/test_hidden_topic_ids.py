"""A client without rights gets the same bytes for a topic id that exists and for one that does not, in every API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import get_args, get_type_hints

import pytest

from odradek.broker.apis.table import ROWS
from odradek.broker.broker import Broker
from odradek.protocol.access_rules import Operation
from odradek.protocol.api import by_key
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.schema import Message, Structure, spec
from odradek.protocol.uuids import uuid_to_text
from tests.handlers.requests import batch, create
from tests.handlers.secured import GROUP, TOPIC, TRANSACTIONAL_ID, allow, coordinate
from tests.wire import Wire

MISSING = bytes(range(16))


@pytest.fixture
async def admin(secured: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", secured.port, "admin") as connected:
        await coordinate(connected)
        yield connected


def _produce(wanted: bytes, records: bytes, index: int = 0, transactional_id: str | None = None) -> ProduceRequest:
    data = TopicProduceData("", wanted, [PartitionProduceData(index, records)])
    return ProduceRequest(transactional_id, 1, 1000, [data])


def _fetch(wanted: bytes, index: int = 0, session_epoch: int = -1) -> FetchRequest:
    partitions = [FetchPartition(index, partition_max_bytes=1000)]
    return FetchRequest(max_wait_ms=0, session_epoch=session_epoch, topics=[FetchTopic("", wanted, partitions)])


def _offset_fetch(wanted: bytes, index: int = 0) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics("", wanted, [index])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics)])


def _commit(wanted: bytes, index: int = 0) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(index, 5)]
    return OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("", wanted, partitions)])


def _heartbeat(wanted: bytes) -> ConsumerGroupHeartbeatRequest:
    owned = [TopicPartitions(wanted, [0])]
    return ConsumerGroupHeartbeatRequest(
        f"cg-{uuid_to_text(wanted)}",
        "m",
        0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=[],
        topic_partitions=owned,
    )


def _transactional(wanted: bytes) -> ProduceRequest:
    records = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    return _produce(wanted, records, transactional_id="x")


CASES: dict[str, tuple[int, Callable[[bytes], Message]]] = {
    "Produce": (13, lambda wanted: _produce(wanted, batch(b"v"))),
    "Produce, another partition": (13, lambda wanted: _produce(wanted, batch(b"v"), 9)),
    "Produce, no records": (13, lambda wanted: _produce(wanted, b"")),
    "Produce, a transaction": (13, _transactional),
    "Fetch": (13, _fetch),
    "Fetch, another partition": (18, lambda wanted: _fetch(wanted, 9)),
    "Fetch, nothing": (
        13,
        lambda wanted: FetchRequest(
            max_wait_ms=0, session_epoch=-1, forgotten_topics_data=[ForgottenTopic("", wanted, [0])]
        ),
    ),
    "Metadata": (12, lambda wanted: MetadataRequest([MetadataRequestTopic(wanted, None)])),
    "Metadata, operations": (
        13,
        lambda wanted: MetadataRequest([MetadataRequestTopic(wanted, None)] * 2, True, False, True),
    ),
    "DeleteTopics": (6, lambda wanted: DeleteTopicsRequest([DeleteTopicState(None, wanted)], timeout_ms=1000)),
    "DeleteTopics, twice": (
        6,
        lambda wanted: DeleteTopicsRequest([DeleteTopicState(None, wanted)] * 2, timeout_ms=1000),
    ),
    "DeleteTopics, with its name": (
        6,
        lambda wanted: DeleteTopicsRequest([DeleteTopicState(None, wanted), DeleteTopicState("t")], timeout_ms=1000),
    ),
    "OffsetFetch": (10, _offset_fetch),
    "OffsetFetch, another partition": (10, lambda wanted: _offset_fetch(wanted, 9)),
    "OffsetCommit": (10, _commit),
    "OffsetCommit, another partition": (10, lambda wanted: _commit(wanted, 9)),
    "ConsumerGroupHeartbeat": (1, _heartbeat),
}


async def _answer(wire: Wire, request: Message, version: int) -> bytes:
    """The bytes of a response, without its correlation id."""
    await wire.send(request, version)
    (size,) = SIZE_PREFIX.unpack(await wire.reader.readexactly(SIZE_PREFIX.size))
    return (await wire.reader.readexactly(size))[4:]


@pytest.mark.parametrize("case", CASES)
async def test_a_refusal_does_not_tell_whether_a_topic_id_exists(admin: Wire, alice: Wire, case: str) -> None:
    version, request = CASES[case]
    there = await create(admin, "t")
    groups = ["g", *(f"cg-{uuid_to_text(each)}" for each in (there, MISSING))]
    await allow(admin, "alice", *((Operation.READ, GROUP, group) for group in groups))
    await allow(admin, "alice", (Operation.WRITE, TRANSACTIONAL_ID, "x"), (Operation.DESCRIBE, TOPIC, "another"))

    of_missing = await _answer(alice, request(MISSING), version)
    of_existing = await _answer(alice, request(there), version)

    as_missing = of_existing.replace(there, MISSING)
    assert as_missing.replace(uuid_to_text(there).encode(), uuid_to_text(MISSING).encode()) == of_missing


async def test_an_unknown_id_is_refused_in_kafkas_words(admin: Wire, alice: Wire) -> None:
    for wanted in (await create(admin, "t"), MISSING):
        [produced] = (await alice.ask(_produce(wanted, batch(b"v")), 13)).responses
        delete = DeleteTopicsRequest([DeleteTopicState(None, wanted)], timeout_ms=1000)
        [deleted] = (await alice.ask(delete, 6)).responses
        for row in (produced.partition_responses[0], deleted):
            assert row.error_code == ErrorCode.UNKNOWN_TOPIC_ID
            assert row.error_message == f"This server does not host this topic ID. ({uuid_to_text(wanted)})"


async def test_an_id_that_is_given_twice_is_invalid_before_rights_are_asked(admin: Wire, alice: Wire) -> None:
    for wanted in (await create(admin, "t"), MISSING):
        request = DeleteTopicsRequest([DeleteTopicState(None, wanted)] * 2, timeout_ms=1000)
        [row] = (await alice.ask(request, 6)).responses
        assert (row.topic_id, row.error_code) == (wanted, ErrorCode.INVALID_REQUEST)


def test_every_api_with_topic_ids_in_its_request_has_a_case() -> None:
    with_ids = {api_key for api_key in ROWS if "topic_id" in _fields(by_key(api_key).request)}
    assert with_ids == {spec(type(request(MISSING))).key for _, request in CASES.values()}


def _fields(kind: type[Structure]) -> set[str]:
    """The names of the fields of a message and of its parts."""
    found = set()
    for name, annotation in get_type_hints(kind).items():
        found.add(name)
        for part in _structures(annotation):
            found |= _fields(part)
    return found


def _structures(annotation: object) -> list[type[Structure]]:
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, Structure) else []
    return [part for each in get_args(annotation) for part in _structures(each)]
