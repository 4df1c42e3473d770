"""A new leader without records that were read from the earlier one (KIP-320), over a scripted network."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import AuthorizationError, Consumer, ConsumerRecord, LogTruncationError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.client.scripted_broker import Broker
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import batch, drop_unread
from tests.client.virtual_time import simulated

T0 = ("t", 0)


def fill(log: Log, count: int, mark: str = "") -> None:
    """Append batches of one record in the leader's epoch."""
    for offset in range(log.end_offset, log.end_offset + count):
        log.add(batch([b"%d%s" % (offset, mark.encode())], offset, leader_epoch=log.leader_epoch))


def two_brokers() -> tuple[ScriptedNetwork, Log]:
    network = ScriptedNetwork(brokers=2)
    [log] = network.create("t")
    fill(log, 10)
    return network, log


def asked_ends(network: ScriptedNetwork) -> list[OffsetForLeaderEpochRequest]:
    return [request for broker in network.brokers.values() for request in broker.received(OffsetForLeaderEpochRequest)]


async def read(consumer: Consumer, count: int) -> list[bytes | None]:
    records: list[ConsumerRecord] = []
    while len(records) < count:
        records += await consumer.poll(max_records=count - len(records))
    return [record.value for record in records]


@simulated
async def test_a_new_leader_with_all_records_is_validated_once() -> None:
    network, log = two_brokers()
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 10)
        network.move(log, to=2)
        fill(log, 5)
        assert await read(consumer, 5) == [b"%d" % offset for offset in range(10, 15)]
    [request] = asked_ends(network)
    [requested] = request.topics[0].partitions
    assert (requested.partition, requested.current_leader_epoch, requested.leader_epoch) == (0, 1, 0)


@simulated
async def test_a_policy_continues_where_the_logs_diverge() -> None:
    network, log = two_brokers()
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="latest") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 0)
        await read(consumer, 10)
        log.truncate(6)
        network.move(log, to=2)
        fill(log, 6, mark=" again")
        assert await read(consumer, 6) == [b"%d again" % offset for offset in range(6, 12)]


@simulated
async def test_truncation_raises_without_a_policy_until_the_user_seeks() -> None:
    network, log = two_brokers()
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 0)
        await read(consumer, 10)
        log.truncate(6)
        network.move(log, to=2)
        fill(log, 6, mark=" again")
        for _ in range(2):
            with pytest.raises(LogTruncationError) as raised:
                await consumer.poll()
            assert raised.value.offset == 6
            assert str(raised.value) == (
                "validate the position on t-0 at broker2:9092 (broker 2): "
                "records up to offset 10 were read, and the leader's log has them only up to offset 6. "
                "They were lost when another replica became leader: call seek() with the offset to continue at"
            )
        consumer.seek(T0, 6)
        assert await read(consumer, 6) == [b"%d again" % offset for offset in range(6, 12)]


@simulated
async def test_lost_records_in_the_buffer_are_fetched_again() -> None:
    network, log = two_brokers()
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 0)
        assert await read(consumer, 4) == [b"0", b"1", b"2", b"3"]
        log.truncate(6)
        network.move(log, to=2)
        fill(log, 6, mark=" again")
        await asyncio.sleep(2)  # until the waiting fetch gets the error of the old leader
        assert await read(consumer, 8) == [b"4", b"5"] + [b"%d again" % offset for offset in range(6, 12)]


@simulated
async def test_a_leader_without_the_epoch_applies_the_policy() -> None:
    network, log = two_brokers()
    log.leader_epoch = 3
    log.data.clear()
    log.end_offset = 0
    fill(log, 5)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 5)
        network.move(log, to=2)
        log.data.clear()
        log.end_offset = 0
        fill(log, 3, mark=" again")
        assert await read(consumer, 3) == [b"0 again", b"1 again", b"2 again"]


def answer_with(code: ErrorCode) -> Any:
    async def answer(broker: Broker, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        rows = [EpochEndOffset(code, 0)]
        return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult("t", rows)])

    return answer


async def name_nothing(broker: Broker, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse()


@pytest.mark.parametrize("trouble", [drop_unread, answer_with(ErrorCode.UNKNOWN_LEADER_EPOCH)])
@simulated
async def test_validation_is_retried_until_it_succeeds(trouble: Any) -> None:
    network, log = two_brokers()
    network.brokers[2].script("OffsetForLeaderEpoch", trouble, trouble)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 10)
        network.move(log, to=2)
        fill(log, 5)
        assert len(await read(consumer, 5)) == 5
    assert len(asked_ends(network)) == 3


@simulated
async def test_a_final_error_of_validation_raises() -> None:
    network, log = two_brokers()
    network.brokers[2].script("OffsetForLeaderEpoch", answer_with(ErrorCode.TOPIC_AUTHORIZATION_FAILED), name_nothing)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 10)
        network.move(log, to=2)
        fill(log, 5)
        with pytest.raises(AuthorizationError, match="validate the position on t-0 at broker2"):
            await consumer.poll()
        with pytest.raises(Exception, match="does not have every partition"):
            await consumer.poll()
        assert len(await read(consumer, 5)) == 5


@simulated
async def test_positions_are_valid_at_a_broker_without_the_api() -> None:
    network, log = two_brokers()
    del network.brokers[2].versions[23]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 10)
        network.move(log, to=2)
        fill(log, 5)
        assert len(await read(consumer, 5)) == 5
