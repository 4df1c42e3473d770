"""Open and decided transactions in a log directory that Apache Kafka and Odradek use alternately, each killed.

The directory has a completed transaction, one that is open, and one whose decision is written although no marker is:
a script appends its record in the coordinator's log. The server that opens the directory ends the decided one at once;
the open one stays open until its producer, which has kept its id and epoch, commits it.

Apache Kafka only opens the logs of topics that it has created, so it creates them in every directory that it opens.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.protocol import codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import batch_headers
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.stored_records.transaction_log import TransactionLogValue
from tests.handlers.requests import create, produce_request
from tests.interop.conftest import KINDS
from tests.peers import apache, odradek
from tests.peers.server import Server
from tests.peers.transactional.confluent import Confluent
from tests.peers.transactional.raw import TRANSACTION, RawProducer, ask, find_coordinator
from tests.wire import Wire

pytestmark = pytest.mark.java

STATE = "__transaction_state"
PROPERTIES = {"transaction.state.log.num.partitions": "1"}
STARTS_SOON_AFTER_A_KILL = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
"""Apache Kafka's controller lets a killed broker come back when its earlier session is over: by default after 9 s."""
PREPARE_COMMIT = 2
GENERATIONS = (1, 2)


async def make_topics(server: Server) -> None:
    async with Wire(server.host, server.port) as wire:
        for generation in GENERATIONS:
            await create(wire, f"data{generation}", 2)
        await find_coordinator(wire, "any", TRANSACTION)


async def fill(server: Server, log_dir: Path, generation: int) -> dict[str, RawProducer]:
    """Leave one transaction of each kind; the record of the decision is not written by its coordinator."""
    producers = {}
    async with Wire(server.host, server.port, client_id="__admin_client") as wire:
        for name in ("completed", "decided", "open"):
            producer = RawProducer(wire, f"{name} {generation}", generation=generation)
            await producer.init()
            await begin(producer, f"data{generation}", name.encode())
            producers[name] = producer
        await producers["completed"].end(committed=True)
        await producers["completed"].await_state("CompleteCommit")
        await decide(wire, log_dir, producers["decided"])
    return producers


async def begin(producer: RawProducer, topic: str, value: bytes) -> None:
    for partition in range(2):
        if producer.generation == 1:
            await producer.add({topic: [partition]})
        await producer.send(topic, value, partition=partition)


async def decide(wire: Wire, log_dir: Path, producer: RawProducer) -> None:
    """Append what the coordinator writes for EndTxn: a crash then prevents all markers."""
    key, value = last_record(log_dir / f"{STATE}-0", producer.transactional_id)
    [version] = struct.unpack_from(">h", value)
    state = codec.decode(TransactionLogValue, version, value[2:])
    state.transaction_status = PREPARE_COMMIT
    if producer.generation == 2:
        state.previous_producer_id = state.producer_id
        state.producer_epoch += 1
        state.client_transaction_version = 2
    builder = BatchBuilder()
    builder.append(state.transaction_last_update_timestamp_ms, key, value[:2] + bytes(codec.encode(state, version)))
    await ask(wire, produce_request(STATE, bytes(builder.build()), acks=-1), 9)


def last_record(directory: Path, transactional_id: str) -> tuple[bytes, bytes]:
    found = None
    for file in sorted(directory.glob("*.log")):
        data = file.read_bytes()
        for position, header in batch_headers(data):
            for record in iter_records(data, position, header):
                if transactional_id.encode() in (record.key or b""):
                    found = record.key, record.value
    assert found is not None
    return found  # type: ignore[return-value]


async def finish(server: Server, producers: dict[str, RawProducer]) -> None:
    """Check that the decided transaction ends by itself, then commit the open one and start another."""
    async with Wire(server.host, server.port) as wire:
        for producer in producers.values():
            producer.use(wire)
        assert (await producers["completed"].await_state("CompleteCommit")).error_code == 0
        await producers["decided"].await_state("CompleteCommit")
        await producers["open"].await_state("Ongoing")
        topic = f"data{producers['open'].generation}"
        await begin(producers["open"], topic, b"goes on")
        await producers["open"].end(committed=True)
        await producers["open"].await_state("CompleteCommit")
        await producers["decided"].init()
        await begin(producers["decided"], topic, b"next")
        await producers["decided"].end(committed=True)
        await producers["decided"].await_state("CompleteCommit")


@pytest.mark.parametrize("order", ["kafka first", "odradek first"])
def test_each_ends_the_transactions_of_the_other(order: str, tmp_path: Path) -> None:
    kafka = apache.prepare(tmp_path / "kafka", {**PROPERTIES, **STARTS_SOON_AFTER_A_KILL})
    ours = odradek.prepare(tmp_path / "ours", {**PROPERTIES, "log.dirs": str(kafka.log_dir)})
    first, second = (kafka, ours) if order == "kafka first" else (ours, kafka)
    check(kafka, first, second)


def test_each_ends_its_own_transactions(kind: str, tmp_path: Path) -> None:
    server = KINDS[kind](tmp_path, PROPERTIES)
    check(server, server, server)


def check(creator: Server, first: Server, second: Server) -> None:
    """Create topics, leave transactions at `first`, kill it, and finish them at `second`."""
    creator.start()
    with killed_at_the_end(creator):
        asyncio.run(make_topics(creator))
        if creator is not first:
            creator.stop()
            first.start()
        with killed_at_the_end(first):
            left = {number: asyncio.run(fill(first, creator.log_dir, number)) for number in GENERATIONS}
    second.start()
    with killed_at_the_end(second):
        for generation, producers in left.items():
            asyncio.run(finish(second, producers))
            expected = [b"completed", b"decided", b"open", b"goes on", b"next"]
            for partition in range(2):
                assert Confluent().committed(second.bootstrap, f"data{generation}", partition) == expected


@contextmanager
def killed_at_the_end(server: Server) -> Iterator[None]:
    try:
        yield
    finally:
        server.kill()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
