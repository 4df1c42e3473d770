"""A leader whose session may have ended: its answers to clients and to followers."""

from __future__ import annotations

import asyncio
import math

import pytest

from odradek.broker.broker import Broker
from odradek.broker.clock import SystemClock
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES
from odradek.broker.replication.fencing import Fencing
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.schema import Message
from tests.handlers.busy_threads import busy_writer_threads
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.requests import batch, create, fetch, fetch_request, parked, produce, produce_request, values_in
from tests.handlers.test_replica_fetch import follow
from tests.wire import Wire

pytestmark = pytest.mark.usefixtures("only_here")

BOTH = {SELF: 1000, OTHER: 9}


class Leader:
    """The leader of topic `t`, whose lease a test ends; its follower does not fetch."""

    def __init__(self, broker: Broker, mode: str = "isr") -> None:
        self.broker = broker
        self.topic_id = b""
        self._is_sure = True
        broker.services.partitions.fencing = Fencing(
            SystemClock(), self._deadline, mode=mode, replica_fetch_wait_max_ms=30_000
        )

    def _deadline(self) -> float:
        return math.inf if self._is_sure else -math.inf

    def lapse(self) -> None:
        self._is_sure = False


@pytest.fixture
async def leader(broker: Broker, wire: Wire) -> Leader:
    made = Leader(broker)
    made.topic_id = await create(wire, "t")
    publish(broker, "t", isr=BOTH)
    await produce(wire, "t", batch(b"a"))
    return made


REQUESTS = [
    (ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=-1)])]), 7),
    (DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 0)])], 1), 2),
    (OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, -1, 0)])]), 4),
    (DescribeProducersRequest([TopicRequest("t", [0])]), 0),
]


@pytest.mark.parametrize(("request_", "version"), REQUESTS, ids=lambda each: type(each).__name__)
async def test_requests_for_the_leader_are_refused(wire: Wire, leader: Leader, request_: Message, version: int) -> None:
    [topic] = (await wire.ask(request_, version)).topics
    assert topic.partitions[0].error_code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)

    leader.lapse()

    [topic] = (await wire.ask(request_, version)).topics
    assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_consumers_are_refused_and_followers_served(wire: Wire, leader: Leader) -> None:
    leader.lapse()

    assert (await fetch(wire, "t")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert values_in(await follow(wire, leader.topic_id, 0)) == [b"a"]
    assert (await follow(wire, leader.topic_id, 1)).high_watermark == 1
    assert values_in(await fetch(wire, "t")) == [b"a"], "the follower vouches"


async def test_a_parked_consumer_is_refused_when_it_is_answered(broker: Broker, wire: Wire, leader: Leader) -> None:
    request = fetch_request("t", 1, max_wait_ms=500)
    await wire.send(request, 12)
    await parked(broker)

    leader.lapse()

    [topic] = (await wire.receive(request, 12)).responses
    assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_large_append_is_not_acknowledged_if_the_lease_ends_meanwhile(
    broker: Broker, wire: Wire, leader: Leader
) -> None:
    request = produce_request("t", batch(b"x" * LARGE_APPEND_BYTES), acks=1)
    partition = broker.services.partitions.get("t", 0)
    async with busy_writer_threads(broker):
        await wire.send(request, 9)
        while not partition.appender.is_busy:  # noqa: ASYNC110 - a turn of the loop, not a pause
            await asyncio.sleep(0)
        leader.lapse()

    [topic] = (await wire.receive(request, 9)).responses
    assert topic.partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("key_type", "request_"), [(0, ListGroupsRequest()), (1, ListTransactionsRequest())])
async def test_a_coordinator_lists_nothing_that_another_may_coordinate(
    broker: Broker, wire: Wire, key_type: int, request_: Message
) -> None:
    """Clients take a list without an error for complete."""
    leader = Leader(broker, "strict")
    await wire.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"]), 4)  # creates the topic
    assert (await wire.ask(request_, 0)).error_code == ErrorCode.NONE

    leader.lapse()

    assert (await wire.ask(request_, 0)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
