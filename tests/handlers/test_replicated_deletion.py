"""DeleteRecords of a partition with followers: what its answer waits for."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.image import ImageChange
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.requests import batch, create, produce
from tests.handlers.test_replica_fetch import VERSION, follower_request
from tests.wire import Wire

pytestmark = pytest.mark.usefixtures("only_here")

BOTH = {SELF: 1000, OTHER: 9}
LONG_MS = 60_000


class Deletion:
    """A request to delete both records of topic `t`, which waits for a follower."""

    def __init__(self, broker: Broker, wire: Wire, topic_id: bytes) -> None:
        self._broker = broker
        self._wire = wire
        self._topic_id = topic_id
        self._request = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 2)])], LONG_MS)

    async def send(self, timeout_ms: int = LONG_MS) -> None:
        self._request.timeout_ms = timeout_ms
        await self._wire.send(self._request, 2)

    async def is_waiting(self) -> None:
        async with asyncio.timeout(30):
            while not len(self._broker.services.deletion_purgatory):  # noqa: ASYNC110 - a turn of the loop, not a pause
                await asyncio.sleep(0)

    async def followed(self, log_start_offset: int) -> None:
        """Let the follower fetch, whose log begins there."""
        request = follower_request(self._topic_id, 2)
        request.topics[0].partitions[0].log_start_offset = log_start_offset
        async with Wire("127.0.0.1", self._broker.port) as other:
            await other.ask(request, VERSION)

    async def row(self) -> DeleteRecordsPartitionResult:
        [topic] = (await self._wire.receive(self._request, 2)).topics
        [row] = topic.partitions
        assert isinstance(row, DeleteRecordsPartitionResult)
        return row


@pytest.fixture
async def deletion(broker: Broker, wire: Wire) -> Deletion:
    topic_id = await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b"))
    publish(broker, "t", isr=BOTH)
    made = Deletion(broker, wire, topic_id)
    await made.followed(0)
    return made


async def test_the_answer_waits_until_the_follower_has_the_new_start(broker: Broker, deletion: Deletion) -> None:
    await deletion.send()
    await deletion.is_waiting()
    assert broker.services.partitions.get("t", 0).log.log_start_offset == 2

    await deletion.followed(1)
    await deletion.is_waiting()
    await deletion.followed(2)

    row = await deletion.row()
    assert (row.error_code, row.low_watermark) == (ErrorCode.NONE, 2)


async def test_a_follower_that_has_it_already_is_not_waited_for(deletion: Deletion) -> None:
    await deletion.followed(2)

    await deletion.send()

    assert (await deletion.row()).low_watermark == 2


async def test_after_its_timeout_the_request_fails(broker: Broker, deletion: Deletion) -> None:
    await deletion.send(timeout_ms=10)

    assert (await deletion.row()).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not len(broker.services.deletion_purgatory)


async def test_a_follower_that_dies_is_not_waited_for(broker: Broker, deletion: Deletion) -> None:
    await deletion.send()
    await deletion.is_waiting()

    metadata = broker.services.metadata
    before = metadata.image
    alone = {node: each for node, each in before.brokers.items() if node != OTHER}
    metadata.image = msgspec.structs.replace(before, brokers=alone, registered=alone)
    metadata.notify(ImageChange(before, metadata.image, ()))

    assert (await deletion.row()).low_watermark == 2


async def test_a_leader_that_is_replaced_answers_at_once(broker: Broker, deletion: Deletion) -> None:
    await deletion.send()
    await deletion.is_waiting()

    publish(broker, "t", isr=BOTH, leader=OTHER)

    assert (await deletion.row()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
