"""No request gets an answer of unbounded size: for each API, the bytes of the answer per byte of the worst request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from odradek.broker.apis.table import ROWS
from odradek.broker.broker import Broker
from odradek.broker.security.principal import ANONYMOUS
from odradek.broker.startup.authorizer import make_authorizer
from odradek.protocol import api
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, OpData, RequestEntryData
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.fuzz import waiting
from tests.fuzz.worst_answers import (
    CLASSIC_GROUP,
    CONSUMER_GROUP,
    PARTITIONS,
    PER_BYTE,
    STATE_BYTES,
    TRANSACTION,
    WORST_ANSWERS,
)
from tests.fuzz.worst_of_transactions import worst_of_transactions
from tests.fuzz.worst_requests import MANY, WORST, Worst, names
from tests.handlers.group_members import GroupMember
from tests.handlers.requests import batch
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire

SIZE = 150_000
KINDS = [*WORST, *worst_of_transactions(SIZE / 1_000_000), *WORST_ANSWERS]
PRODUCERS = 20
LARGE = b"x" * 2_000


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    """A broker that has some of everything that requests can name."""
    new = Broker({**waiting.PROPERTIES, "socket.response.max.bytes": "2147483647"})  # else that refuses the worst
    new.on_start.append(partial(_authorize, new))
    async with new as started:
        await waiting.prepare("127.0.0.1", started.port, PARTITIONS)
        async with Wire("127.0.0.1", started.port) as wire:
            await _fill(wire)
            yield started


def _authorize(started: Broker) -> None:
    """Make every client a super user, so that there are access rules."""
    authorizer = make_authorizer(started.services.metadata, [ANONYMOUS], allow_everyone=False)
    object.__setattr__(started.services, "authorizer", authorizer)


async def _fill(wire: Wire) -> None:
    rows = [OffsetCommitRequestPartition(index, 1, committed_metadata="m" * 100) for index in range(PARTITIONS)]
    commit = OffsetCommitRequest("g", -1, "", topics=[OffsetCommitRequestTopic(MANY, partitions=rows)])
    committed = await wire.ask(commit, 8)
    assert {row.error_code for row in committed.topics[0].partitions} == {ErrorCode.NONE}
    member = GroupMember(wire, CLASSIC_GROUP)
    await member.join(protocols={"range": LARGE})
    assert (await member.sync({member.member_id: LARGE})).error_code == ErrorCode.NONE
    joining = ConsumerGroupHeartbeatRequest(
        CONSUMER_GROUP, "A" * 22, 0, rebalance_timeout_ms=1000, subscribed_topic_names=[MANY], topic_partitions=[]
    )
    assert (await wire.ask(joining, 1)).error_code == ErrorCode.NONE
    producer = TransactionalProducer(wire, TRANSACTION)
    await producer.start()
    assert set((await producer.add({MANY: list(range(PARTITIONS))})).values()) == {ErrorCode.NONE}
    for producer_id in range(1000, 1000 + PRODUCERS):
        records = batch(LARGE, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        topic = TopicProduceData(MANY, partition_data=[PartitionProduceData(0, records)])
        produced = await wire.ask(ProduceRequest(None, -1, 30_000, [topic]), 9)
        assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    rules = [AclCreation(2, name, 3, "User:u", "*", 3, 3) for name in names(20)]
    assert (await wire.ask(CreateAclsRequest(rules), 3)).results[0].error_code == ErrorCode.NONE
    quota = RequestEntryData([EntityData("user", "u")], [OpData("producer_byte_rate", 1e9)])
    assert (await wire.ask(AlterClientQuotasRequest([quota]), 1)).entries[0].error_code == ErrorCode.NONE


def test_every_api_has_a_row() -> None:
    assert {name.split(",")[0] for name in PER_BYTE} == {api.by_key(key).name for key in ROWS}
    assert sorted(PER_BYTE) == sorted(kind.name for kind in KINDS)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_an_answer_is_bounded_by_its_request(broker: Broker, kind: Worst) -> None:
    requests, answers = await _exchange(broker.port, kind)
    assert answers <= STATE_BYTES + PER_BYTE[kind.name] * requests


async def _exchange(port: int, kind: Worst) -> tuple[int, int]:
    """Send a request and its follow-up; return the bytes of the requests, and of the answers."""
    frame = kind.frame(SIZE)
    async with Wire("127.0.0.1", port) as wire:
        answer = await _ask(wire, frame)
        if kind.follow is None:
            return len(frame), len(answer)
        following = next(kind.follow(answer))
        return len(frame) + len(following), len(answer) + len(await _ask(wire, following))


async def _ask(wire: Wire, frame: bytes) -> bytes:
    """The answer to a request; nothing if the connection is closed."""
    wire.writer.write(frame)
    try:
        return await wire.reader.readexactly(int.from_bytes(await wire.reader.readexactly(4)))
    except (ConnectionError, asyncio.IncompleteReadError):
        return b""
