"""Requests of transactions that a slow network delays never touch a later transaction.

| test | the delayed request |
|---|---|
| version 2 | a client sent it again over another connection, and is in its next transaction, which has another epoch |
| version 1 | its producer was replaced, which changed the epoch. Within an epoch, version 1 has no such protection |
| markers | a marker that the coordinator sent a second time, and the first copy arrives in the next transaction |
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

import pytest

from odradek.client import Consumer, Producer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from odradek.protocol.schema import spec
from tests.handlers.requests import create
from tests.interop.conftest import KINDS
from tests.peers.holding_proxy import HoldingProxy
from tests.peers.server import Server, free_port
from tests.peers.transactional import TransactionError
from tests.peers.transactional.confluent import Confluent
from tests.peers.transactional.raw import RawProducer, await_state, error_codes
from tests.wire import Wire

PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, END, OFFSETS = 0, 24, 25, 26, 28
_LAST_OF_CLIENTS = 3  # of AddPartitionsToTxn: brokers send later versions to each other


@pytest.fixture(scope="module")
def proxy_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(kind: str, proxy_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    properties = {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy_port}",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    server = KINDS[kind](tmp_path_factory.mktemp("late"), properties)
    server.start()
    yield server
    server.kill()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]


@pytest.fixture
async def proxy(server: Server, proxy_port: int) -> AsyncIterator[HoldingProxy]:
    async with HoldingProxy(proxy_port, server.port).listening() as proxy:
        yield proxy


@pytest.fixture
async def wire(server: Server) -> AsyncIterator[Wire]:
    """A connection to the broker that no request delays."""
    async with Wire(server.host, server.port) as wire:
        yield wire


@pytest.fixture
async def topic(wire: Wire, topic_name: str) -> str:
    await create(wire, topic_name)
    return topic_name


async def read(proxy: HoldingProxy, topic: str, isolation_level: Any = "read_committed") -> list[bytes | None]:
    """All records of the topic's only partition."""
    async with Consumer(proxy.bootstrap, auto_offset_reset="earliest", isolation_level=isolation_level) as consumer:
        consumer.assign([(topic, 0)])
        [end] = (await consumer.end_offsets([(topic, 0)])).values()
        values = []
        while await consumer.position((topic, 0)) < end:
            values += [record.value for record in await consumer.poll(100)]
        return values


async def committed_offset(proxy: HoldingProxy, topic: str) -> int | None:
    """The offset that the group of the topic's name has committed for its partition."""
    async with Consumer(proxy.bootstrap, group_id=topic, isolation_level="read_committed") as consumer:
        found = (await consumer.committed([(topic, 0)]))[topic, 0]
        return None if found is None else found.offset


class _AbortWantedError(Exception):
    """Aborts the transaction of the block that it leaves."""


class Late(NamedTuple):
    """The API of a delayed request, whether its transaction is committed, and the answer to it."""

    api_key: int
    commits: bool
    answer: ErrorCode


REPEATED = {
    "commit": Late(END, True, ErrorCode.PRODUCER_FENCED),
    "abort": Late(END, False, ErrorCode.PRODUCER_FENCED),
    "records": Late(PRODUCE, True, ErrorCode.INVALID_PRODUCER_EPOCH),
    "offsets": Late(OFFSETS, True, ErrorCode.INVALID_PRODUCER_EPOCH),
}


@pytest.mark.parametrize("late", REPEATED.values(), ids=REPEATED)
async def test_a_request_that_was_repeated_arrives_in_the_next_transaction(
    proxy: HoldingProxy, wire: Wire, topic: str, late: Late
) -> None:
    async with (
        Consumer(proxy.bootstrap, group_id=topic) as consumer,
        Producer(
            proxy.bootstrap, transactional_id=topic, linger_ms=0, retry_backoff_ms=10, request_timeout_ms=1000
        ) as producer,
    ):

        async def send(value: bytes, offset: int, *, commits: bool) -> None:
            await producer.send_and_wait(topic, value)
            await transaction.send_offsets({(topic, 0): offset}, consumer)
            if not commits:
                raise _AbortWantedError

        held = proxy.hold(late.api_key)
        try:
            async with producer.transaction() as transaction:
                await send(b"first", 1, commits=late.commits)
        except _AbortWantedError:
            pass
        assert held.version >= 0

        try:
            async with producer.transaction() as transaction:
                await producer.send_and_wait(topic, b"second")
                before = await await_state(wire, topic, "Ongoing")
                assert set(error_codes(await held.release())) - {0} == {late.answer}
                assert await await_state(wire, topic, "Ongoing", "CompleteCommit", "CompleteAbort") == before
                await send(b"third", 2, commits=not late.commits)
        except _AbortWantedError:
            pass
        await await_state(wire, topic, "CompleteAbort" if late.commits else "CompleteCommit")

    assert await read(proxy, topic) == ([b"first"] if late.commits else [b"second", b"third"])
    assert await read(proxy, topic, "read_uncommitted") == [b"first", b"second", b"third"]
    assert await committed_offset(proxy, topic) == (1 if late.commits else 2)


class Zombie(NamedTuple):
    """The API of a delayed request, what sends it, and the answer to it."""

    api_key: int
    step: str
    answer: ErrorCode


ZOMBIES = {
    "partitions": Zombie(ADD_PARTITIONS, "send", ErrorCode.INVALID_PRODUCER_EPOCH),
    "records": Zombie(PRODUCE, "send", ErrorCode.INVALID_PRODUCER_EPOCH),
    "a group": Zombie(ADD_OFFSETS, "send_offsets", ErrorCode.INVALID_PRODUCER_EPOCH),
    "offsets": Zombie(OFFSETS, "send_offsets", ErrorCode.INVALID_PRODUCER_EPOCH),
    "commit": Zombie(END, "commit", ErrorCode.INVALID_PRODUCER_EPOCH),
    "abort": Zombie(END, "abort", ErrorCode.INVALID_PRODUCER_EPOCH),
}


@pytest.mark.parametrize("late", ZOMBIES.values(), ids=ZOMBIES)
async def test_a_request_of_a_producer_that_was_replaced_arrives_in_a_transaction_of_the_next(
    proxy: HoldingProxy, wire: Wire, topic: str, late: Zombie
) -> None:
    client = Confluent()
    other = f"{topic}-other"
    await create(wire, other)
    member = await asyncio.to_thread(client.member, proxy.bootstrap, topic, topic)
    zombie = await asyncio.to_thread(client.producer, proxy.bootstrap, topic)
    zombie.begin()
    if late.step != "send":
        await asyncio.to_thread(zombie.send, topic, b"of the zombie")
    steps: dict[str, Callable[[], None]] = {
        "send": lambda: zombie.send(other, b"of the zombie"),
        "send_offsets": lambda: zombie.send_offsets(member, {(topic, 0): 1}),
        "commit": zombie.commit,
        "abort": zombie.abort,
    }
    held = proxy.hold(late.api_key, at_most=_LAST_OF_CLIENTS if late.api_key == ADD_PARTITIONS else 99)
    step = asyncio.create_task(asyncio.to_thread(steps[late.step]))
    await held.arrived()

    successor = await asyncio.to_thread(client.producer, proxy.bootstrap, topic)
    successor.begin()
    await asyncio.to_thread(successor.send, topic, b"of its successor")
    before = await await_state(wire, topic, "Ongoing")
    assert set(error_codes(await held.release())) - {0} == {late.answer}
    assert await await_state(wire, topic, "Ongoing", "CompleteCommit", "CompleteAbort") == before
    await asyncio.to_thread(successor.commit)
    with pytest.raises(TransactionError):
        await step

    assert await read(proxy, topic) == [b"of its successor"]
    assert await read(proxy, other, "read_uncommitted") == []
    assert await committed_offset(proxy, topic) is None
    await asyncio.to_thread(member.close)


@pytest.mark.parametrize("generation", [1, 2])
async def test_a_marker_that_was_repeated_arrives_in_the_next_transaction(
    proxy: HoldingProxy, wire: Wire, topic: str, generation: int
) -> None:
    producer = RawProducer(wire, topic, generation=generation)
    await producer.init()
    marker_key = spec(WriteTxnMarkersRequest).key
    assert marker_key is not None

    async def send(value: bytes) -> None:
        if generation == 1:
            await producer.add({topic: [0]})
        await producer.send(topic, value)

    await send(b"first")
    await producer.end(committed=True)
    await await_state(wire, topic, "CompleteCommit")
    marker = WritableTxnMarker(
        producer.producer_id, producer.epoch, True, [WritableTxnMarkerTopic(topic, [0])], 0, generation
    )
    held = proxy.hold(marker_key)
    async with Wire("127.0.0.1", proxy.port) as coordinator:
        await coordinator.send(WriteTxnMarkersRequest([marker]), 2)
        await held.arrived()
        if generation == 1:
            await producer.init()  # the next epoch: version 1 has another one only after a replacement
        await send(b"second")
        assert set(error_codes(await held.release())) - {0} == {ErrorCode.INVALID_PRODUCER_EPOCH}

    await await_state(wire, topic, "Ongoing")
    assert await read(proxy, topic) == [b"first"]
    await producer.end(committed=False)
    await await_state(wire, topic, "CompleteAbort")
    assert await read(proxy, topic) == [b"first"]
