"""The rights to write and to read records: Produce and Fetch of several topics, transactions, followers, sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.access_rules import CLUSTER_NAME, Operation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.handlers.requests import batch, create, fetch, fetch_request, parked, produce, values_in
from tests.handlers.secured import (
    CLUSTER,
    FEW_LOGS,
    TOPIC,
    TRANSACTIONAL_ID,
    allow,
    coordinate,
    deny,
    error_codes,
    revoke,
    secure,
)
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_THIS_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
READ, WRITE = Operation.READ, Operation.WRITE


@pytest.fixture
async def admin(secured: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", secured.port, "admin") as connected:
        await coordinate(connected)
        for name in ("t", "u"):
            await create(connected, name)
        yield connected


def to_both(
    records: bytes, other: bytes | None = None, acks: int = 1, transactional_id: str | None = None
) -> ProduceRequest:
    data = {"t": records, "u": records if other is None else other}
    topics = [TopicProduceData(name, partition_data=[PartitionProduceData(0, each)]) for name, each in data.items()]
    return ProduceRequest(transactional_id, acks, 5000, topics)


def of_both(*, session_id: int = 0, session_epoch: int = -1, **fields: int) -> FetchRequest:
    wanted = [FetchTopic(name, partitions=[FetchPartition(0, partition_max_bytes=1 << 20)]) for name in ("t", "u")]
    return FetchRequest(
        max_wait_ms=fields.pop("max_wait_ms", 0),
        min_bytes=1,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[] if session_epoch > 0 else wanted,
        **fields,  # type: ignore[arg-type]
    )


def codes(answer: ProduceResponse | FetchResponse) -> dict[str, ErrorCode]:
    if isinstance(answer, ProduceResponse):
        return {topic.name: ErrorCode(topic.partition_responses[0].error_code) for topic in answer.responses}
    return {topic.topic: ErrorCode(topic.partitions[0].error_code) for topic in answer.responses}


async def count(admin: Wire, topic: str) -> int:
    return (await fetch(admin, topic)).high_watermark


async def test_each_topic_is_written_or_refused(admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (WRITE, TOPIC, "t"))

    answer = await alice.ask(to_both(batch(b"v")), 9)

    assert codes(answer) == {"t": ErrorCode.NONE, "u": REFUSED}
    assert answer.responses[1].partition_responses[0].error_message == "Topic authorization failed."
    assert (await count(admin, "t"), await count(admin, "u")) == (1, 0)


async def test_each_topic_is_read_or_refused(admin: Wire, alice: Wire) -> None:
    await admin.ask(to_both(batch(b"v")), 9)
    await allow(admin, "alice", (READ, TOPIC, "u"))

    answer = await alice.ask(of_both(), 12)

    assert codes(answer) == {"t": REFUSED, "u": ErrorCode.NONE}
    rows = {topic.topic: topic.partitions[0] for topic in answer.responses}
    assert (values_in(rows["u"]), rows["t"].high_watermark) == ([b"v"], -1)
    assert not rows["t"].records


async def test_a_refusal_without_acknowledgement_closes_the_connection(admin: Wire, alice: Wire) -> None:
    await alice.send(to_both(batch(b"v"), acks=0), 9)
    assert await alice.is_closed_by_peer()
    assert await count(admin, "t") == 0


async def test_one_of_thousand_topics_is_refused(admin: Wire, alice: Wire) -> None:
    """A long request is executed in slices, and asks for each of its rights."""
    names = [f"many-{number}" for number in range(600)]
    await allow(admin, "alice", *[(WRITE, TOPIC, name) for name in names[:-1]])
    topics = [TopicProduceData(name, partition_data=[PartitionProduceData(0, batch(b"v"))]) for name in names]
    answer = await alice.ask(ProduceRequest(None, 1, 5000, topics), 9)
    assert {name for name, code in codes(answer).items() if code is REFUSED} == {names[-1]}


@pytest.mark.parametrize("version", [9, 12])
async def test_a_transactional_batch_anywhere_needs_the_right_to_its_id(admin: Wire, alice: Wire, version: int) -> None:
    """CVE-2018-17196: the batch counts, not what the request says of itself."""
    producer = TransactionalProducer(admin, "x")
    await producer.start()
    await producer.add({"t": [0], "u": [0]})
    transactional = batch(
        b"v", producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=0, is_transactional=True
    )
    await allow(admin, "alice", (WRITE, TOPIC, "t"), (WRITE, TOPIC, "u"), (WRITE, TRANSACTIONAL_ID, "other"))

    for transactional_id in ("x", None):
        for request in (
            to_both(batch(b"v"), transactional, transactional_id=transactional_id),
            to_both(transactional, transactional_id=transactional_id),
        ):
            assert codes(await alice.ask(request, version)) == {"t": NOT_THIS_ID, "u": NOT_THIS_ID}
    assert (await count(admin, "t"), await count(admin, "u")) == (0, 0)

    await allow(admin, "alice", (WRITE, TRANSACTIONAL_ID, "x"))
    answer = await alice.ask(to_both(transactional, transactional_id="x"), version)
    assert codes(answer) == {"t": ErrorCode.NONE, "u": ErrorCode.NONE}


async def test_a_batch_that_is_not_transactional_needs_no_right_to_the_id(admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (WRITE, TOPIC, "t"), (WRITE, TOPIC, "u"))
    answer = await alice.ask(to_both(batch(b"v"), transactional_id="x"), 9)
    assert codes(answer) == {"t": ErrorCode.NONE, "u": ErrorCode.NONE}


async def test_a_refused_topic_does_not_become_part_of_a_transaction(admin: Wire, alice: Wire) -> None:
    """From version 12 on a Produce adds its partitions; that of a topic without the right is not added."""
    await allow(admin, "alice", (WRITE, TRANSACTIONAL_ID, "x"), (WRITE, TOPIC, "t"))
    producer = TransactionalProducer(alice, "x")
    await producer.start()
    transactional = batch(
        b"v", producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=0, is_transactional=True
    )

    answer = await alice.ask(to_both(transactional, transactional_id="x"), 12)

    assert codes(answer) == {"t": ErrorCode.NONE, "u": REFUSED}
    state = await TransactionalProducer(admin, "x").describe()
    assert [topic.topic for topic in state.topics] == ["t"]


@pytest.mark.parametrize("replica_id", [0, 1, 7])
async def test_a_replica_id_needs_the_rights_of_a_broker(admin: Wire, alice: Wire, replica_id: int) -> None:
    """CVE-2018-1288."""
    await allow(admin, "alice", (Operation.ALL, TOPIC, "t"))
    for version in (4, 12, 14):
        answer = await alice.ask(fetch_request("t", replica_id=replica_id), version)
        assert set(error_codes(answer)) - {ErrorCode.NONE} == {REFUSED}
    await allow(admin, "alice", (Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME))
    answer = await alice.ask(fetch_request("t", replica_id=replica_id), 12)
    assert REFUSED not in error_codes(answer)


async def test_no_other_listener_than_that_of_brokers_has_followers() -> None:
    listeners = {
        "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
    }
    broker = Broker({**FEW_LOGS, **listeners})
    secure(broker)
    async with broker, Wire("127.0.0.1", broker.ports["CLIENTS"], "admin") as admin:
        await create(admin, "t")
        request = fetch_request("t", replica_id=7)
        assert REFUSED in error_codes(await admin.ask(request, 12))
        async with Wire("127.0.0.1", broker.ports["BROKERS"], "admin") as follower:
            assert REFUSED not in error_codes(await follower.ask(request, 12))


async def test_a_consumer_for_debugging_is_a_consumer(admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (READ, TOPIC, "t"))
    assert (await fetch(alice, "t", replica_id=-2)).error_code == ErrorCode.NONE


async def test_a_fetch_session_belongs_to_its_principal(secured: Broker, admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (READ, TOPIC, "t"), (READ, TOPIC, "u"))
    await allow(admin, "bob", (READ, TOPIC, "t"), (READ, TOPIC, "u"))
    session_id = (await alice.ask(of_both(session_epoch=0), 12)).session_id
    assert session_id

    async with Wire("127.0.0.1", secured.port, "bob") as bob:
        stolen = await bob.ask(of_both(session_id=session_id, session_epoch=1), 12)
        assert stolen.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        for epoch in (-1, 0):  # which end a session of the client's own
            assert (await bob.ask(of_both(session_id=session_id, session_epoch=epoch), 12)).error_code == ErrorCode.NONE

    async with Wire("127.0.0.1", secured.port, "alice") as again:
        answer = await again.ask(of_both(session_id=session_id, session_epoch=1), 12)
        assert (answer.error_code, answer.session_id) == (ErrorCode.NONE, session_id)


async def test_a_session_heeds_a_change_of_rights(admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (READ, TOPIC, "t"), (READ, TOPIC, "u"))
    session_id = (await alice.ask(of_both(session_epoch=0), 12)).session_id

    await deny(admin, "alice", (READ, TOPIC, "u"))
    answer = await alice.ask(of_both(session_id=session_id, session_epoch=1), 12)
    assert codes(answer) == {"u": REFUSED}

    await admin.ask(to_both(batch(b"v")), 9)
    answer = await alice.ask(of_both(session_id=session_id, session_epoch=2), 12)
    assert codes(answer) == {"t": ErrorCode.NONE, "u": REFUSED}


async def test_a_parked_fetch_is_decided_when_it_is_answered(secured: Broker, admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (READ, TOPIC, "t"), (READ, TOPIC, "u"))
    answering = asyncio.ensure_future(alice.ask(of_both(max_wait_ms=60_000), 12))
    await parked(secured)

    await revoke(admin, "alice")
    await produce(admin, "t", batch(b"secret"))

    answer = await answering
    assert codes(answer) == {"t": REFUSED, "u": REFUSED}
    assert not any(topic.partitions[0].records for topic in answer.responses)


async def test_a_refused_topic_does_not_end_the_wait_for_another(secured: Broker, admin: Wire, alice: Wire) -> None:
    await allow(admin, "alice", (READ, TOPIC, "t"))
    answering = asyncio.ensure_future(alice.ask(of_both(max_wait_ms=60_000), 12))
    await parked(secured)
    await produce(admin, "t", batch(b"v"))
    assert codes(await answering) == {"t": ErrorCode.NONE, "u": REFUSED}


async def test_without_an_authorizer_nothing_is_decided() -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"v"))
        await fetch(wire, "t")
        [connection] = broker.connections
        assert connection.context.decisions is None
