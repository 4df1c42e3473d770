"""One script of transactions, and the bytes that Apache Kafka and Odradek write for it.

The logs of `__transaction_state`, `__consumer_offsets` and of the data are equal batch by batch. Not compared are
times, checksums that contain them, the order of partitions in a record, and producer ids, which depend on earlier
starts: these are compared by the order of their first appearance. The epoch of a leader is left out as well, because
Apache Kafka raises it at a start and Odradek does not; but a marker has the epoch of the coordinator that sent it.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.protocol import codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import BatchHeader, batch_headers
from odradek.protocol.records.record_iterator import Record, iter_records
from odradek.protocol.schema import Message
from odradek.protocol.stored_records.record_types import GROUP_RECORDS, TRANSACTION_RECORDS
from odradek.protocol.stored_records.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from tests.handlers.requests import create, produce_request
from tests.interop.conftest import KINDS
from tests.peers import apache, features, java
from tests.peers.java_machine import JavaMachine
from tests.peers.server import Server
from tests.peers.transactional.raw import TRANSACTION, RawProducer, ask, find_coordinator
from tests.wire import Wire

pytestmark = pytest.mark.java

PROPERTIES = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
}
STATE = "__transaction_state"
LOGS = (f"{STATE}-0", "__consumer_offsets-0", "data-0", "data-1", "data-2")
NOT_COMPARED = ("crc", "base_timestamp", "max_timestamp", "partition_leader_epoch")
"""Fields of the header of a batch that differ between two runs."""
TOPIC_ID = "topic_id"
"""Of an offset that a transaction commits. Apache Kafka stores it from 4.4 on, as Odradek does, and 4.3 zeros."""
SHORT_MS = 400
COMPLETE_COMMIT = 4
LAST_EPOCH = 32766
"""The last epoch that a producer gets: the next one comes with another producer id."""
SEEDED = {"rotates at its end": 900, "rotates when it is fenced": 901, "rotates by its init": 902}
"""Transactional ids whose epochs are nearly used up, and their producer ids."""


class Logs(NamedTuple):
    """What a server has written: the log directory, and the log of each partition."""

    log_dir: Path
    batches: dict[str, list[Any]]


@pytest.fixture(scope="module")
def machine() -> Iterator[JavaMachine]:
    with JavaMachine() as machine:
        yield machine


@pytest.fixture(scope="module")
def logs(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return written_by(KINDS[kind](tmp_path_factory.mktemp("ours"), PROPERTIES))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, logs: Logs) -> Logs:
    return written_by(apache.prepare(tmp_path_factory.mktemp("kafka"), PROPERTIES))


def written_by(server: Server) -> Logs:
    try:
        server.start()
        asyncio.run(seed(server))
        server.stop()
        server.start()
        for level in (2, 1, 0):
            features.set_level(server, features.TRANSACTION_VERSION, level)
            asyncio.run(play(server, level))
    finally:
        server.kill()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
    ranks = Ranks()
    return Logs(server.log_dir, {log: list(batches(server.log_dir / log, ranks)) for log in LOGS})


async def seed(server: Server) -> None:
    """Write transactions with a high epoch into the log of the coordinator, which reads it at the next start."""
    async with Wire(server.host, server.port, client_id="__admin_client") as wire:
        await find_coordinator(wire, "any", TRANSACTION)
        for transactional_id, producer_id in SEEDED.items():
            value = TransactionLogValue(
                producer_id, producer_epoch=LAST_EPOCH - 2, transaction_timeout_ms=60_000,
                transaction_status=COMPLETE_COMMIT, transaction_partitions=[],
            )  # fmt: skip
            records = seed_batch(stored(0, TransactionLogKey(transactional_id)), stored(1, value, 1))
            await ask(wire, produce_request(STATE, records, acks=-1), 9)


def stored(prefix: int, message: Message, version: int = 0) -> bytes:
    """The key or value of a stored record: its type or version, and the message."""
    return struct.pack(">h", prefix) + bytes(codec.encode(message, version))


def seed_batch(key: bytes, value: bytes) -> bytes:
    builder = BatchBuilder()
    builder.append(1_700_000_000_000, key, value)
    return bytes(builder.build())


async def play(server: Server, level: int) -> None:
    """The script: commit, abort, offsets, a time-out, a fence, and where it is possible a new producer id."""
    async with Wire(server.host, server.port) as wire:
        if level == 2:
            await create(wire, "data", 3)
            await second_generation(wire)
        await first_generation(wire, f"first {level}")
        if level == 0:
            await rotate_by_init(wire)


async def first_generation(wire: Wire, name: str) -> None:
    producer = RawProducer(wire, name, generation=1)
    await producer.init()
    for number, committed in enumerate((True, False, True)):
        await producer.add({"data": [0, 1]})
        await producer.add({"data": [1, 2]})
        for partition in range(3):
            await producer.send("data", b"%d" % number, b"%d again" % number, partition=partition)
        await producer.send_offsets(f"group of {name}", {("data", 0): number, ("data", 1): number + 1})
        await producer.end(committed=committed)
        await producer.await_state("CompleteCommit" if committed else "CompleteAbort")
    await producer.add({"data": [0]})
    await producer.init()  # aborts the open transaction
    await producer.add({"data": [2]})
    await producer.send("data", b"fenced", partition=2)
    await producer.init()
    await time_out(RawProducer(wire, f"{name} times out", generation=1, timeout_ms=SHORT_MS))


async def second_generation(wire: Wire) -> None:
    producer = RawProducer(wire, "second")
    await producer.init()
    for number, committed in enumerate((True, False, True)):
        for partition in range(3):
            await producer.send("data", b"%d" % number, partition=partition)
        await producer.send_offsets("group", {("data", 0): number})
        await producer.end(committed=committed)
        await producer.await_state("CompleteCommit" if committed else "CompleteAbort")
    await producer.end(committed=False)  # a transaction without partitions
    await producer.await_state("CompleteAbort")
    await producer.send("data", b"fenced")
    await producer.init()
    await time_out(RawProducer(wire, "second times out", timeout_ms=SHORT_MS))

    rotating = RawProducer(wire, "rotates at its end")
    await rotating.init()
    for number in range(3):
        await rotating.send("data", b"rotating %d" % number, partition=1)
        await rotating.end(committed=number != 1)
        await rotating.await_state("CompleteCommit", "CompleteAbort")
    fenced = RawProducer(wire, "rotates when it is fenced")
    await fenced.init()
    await fenced.end(committed=False)
    await fenced.await_state("CompleteAbort")
    await fenced.send("data", b"to be fenced", partition=2)
    await fenced.init()


async def time_out(producer: RawProducer) -> None:
    """Leave a transaction open until the coordinator aborts it, then go on."""
    await producer.init()
    if producer.generation == 1:
        await producer.add({"data": [1]})
    else:
        await producer.send("data", b"times out", partition=1)
    await producer.await_state("CompleteAbort")
    await producer.init()


async def rotate_by_init(wire: Wire) -> None:
    producer = RawProducer(wire, "rotates by its init", generation=1)
    for _ in range(4):
        await producer.init()


class Ranks:
    """Numbers in the order of their first appearance, each kind by itself."""

    def __init__(self) -> None:
        self._seen: dict[object, list[int]] = {}

    def rank(self, kind: object, number: int) -> int:
        """The place of a number among those of its kind; negative numbers stay."""
        if number < 0:
            return number
        seen = self._seen.setdefault(kind, [])
        if number not in seen:
            seen.append(number)
        return seen.index(number)


def stored_batches(directory: Path) -> Iterator[tuple[BatchHeader, list[Record]]]:
    for file in sorted(directory.glob("*.log")):
        data = file.read_bytes()
        for position, header in batch_headers(data):
            yield header, list(iter_records(data, position, header))


def batches(directory: Path, ranks: Ranks) -> Iterator[Any]:
    """Every batch of a log: the comparable fields of its header, and its records."""
    for header, records in stored_batches(directory):
        fields = {name: getattr(header, name) for name in header.__slots__ if name not in NOT_COMPARED}
        fields["producer_id"] = ranks.rank("producer", header.producer_id)
        if directory.name.startswith("__consumer_offsets"):
            del fields["batch_length"]  # depends on the topic ids; the records are compared field by field
        yield (
            fields,
            [
                (record.offset, *content(directory.name, record.key, record.value, header.is_control, ranks))
                for record in records
            ],
        )


def content(log: str, key: bytes | None, value: bytes | None, is_control: bool, ranks: Ranks) -> tuple[Any, ...]:
    assert key is not None
    if is_control:
        assert value is not None
        version, _coordinator_epoch = struct.unpack(">hi", value)
        return key, version
    if log.startswith("data"):
        return key, value
    types = TRANSACTION_RECORDS if log.startswith(STATE) else GROUP_RECORDS
    kind = types[struct.unpack_from(">h", key)[0]]
    return key, *plain(kind.value, value, ranks)


def plain(kind: type[Message], value: bytes | None, ranks: Ranks) -> tuple[Any, ...]:
    """The version and the fields of a stored value, which are all that its bytes contain."""
    if value is None:
        return ("deleted",)
    [version] = struct.unpack_from(">h", value)
    message = codec.decode(kind, version, value[2:])
    assert stored(version, message, version) == value
    names = [name for name in message.__struct_fields__ if "timestamp" not in name and name != TOPIC_ID]
    fields = {name: getattr(message, name) for name in names}
    fields |= {name: ranks.rank("producer", each) for name, each in fields.items() if name.endswith("producer_id")}
    rows: list[PartitionsSchema] | None = fields.get("transaction_partitions")
    if rows is not None:
        fields["transaction_partitions"] = sorted((row.topic, sorted(row.partition_ids)) for row in rows)
    has_start = getattr(message, "transaction_start_timestamp_ms", 0) >= 0
    return version, fields, has_start


@pytest.mark.parametrize("log", LOGS)
def test_the_same_script_writes_the_same_bytes(log: str, logs: Logs, reference: Logs) -> None:
    ours, kafkas = logs.batches[log], reference.batches[log]
    for number, (one, other) in enumerate(zip(ours, kafkas, strict=False)):
        assert one == other, f"batch {number} of {len(kafkas)}"
    assert len(ours) == len(kafkas)


def test_markers_have_the_epoch_of_their_coordinator(logs: Logs) -> None:
    *_, (last, _) = stored_batches(logs.log_dir / f"{STATE}-0")
    epochs = {
        struct.unpack(">hi", record.value or b"")[1]
        for log in LOGS
        for header, [record, *_] in stored_batches(logs.log_dir / log)
        if header.is_control
    }
    assert epochs == {last.partition_leader_epoch}


def test_kafkas_tool_decodes_the_states(logs: Logs, reference: Logs, machine: JavaMachine) -> None:
    ours, kafkas = (dumped_states(machine, each.log_dir) for each in (logs, reference))
    assert len(kafkas) > 50
    assert ours == kafkas


def dumped_states(machine: JavaMachine, log_dir: Path) -> list[tuple[str, str]]:
    """The transactional id and the state of each record, as the tool prints them."""
    files = sorted(map(str, (log_dir / f"{STATE}-0").glob("*.log")))
    printed = machine.run(java.DUMP_LOG_SEGMENTS, "--transaction-log-decoder", "--files", ",".join(files))
    return re.findall(r'"transactionalId":"(.*?)".*"transactionStatus":(\d+)', printed)
