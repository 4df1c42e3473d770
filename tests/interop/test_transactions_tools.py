"""kafka-transactions.sh: it lists and describes open transactions, and finds and aborts one without a coordinator.

`odradek transactions` prints the same columns and rows.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.interop.conftest import KINDS
from tests.interop.test_cli import client
from tests.peers import java
from tests.peers.java_machine import JavaMachine
from tests.peers.server import Server
from tests.peers.transactional.confluent import Confluent
from tests.peers.transactional.raw import RawProducer
from tests.wire import Wire

pytestmark = pytest.mark.java

Tool = Callable[..., list[dict[str, str]]]


@pytest.fixture(scope="module")
def server(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = KINDS[kind](tmp_path_factory.mktemp("transactions")).start()
    yield server
    server.kill()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]


@pytest.fixture(scope="module")
def admin(server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


@pytest.fixture(scope="module")
def tool(server: Server) -> Iterator[Tool]:
    """Run a command of kafka-transactions.sh, and return the rows of its table."""
    with JavaMachine() as machine:

        def run(*arguments: str) -> list[dict[str, str]]:
            printed = machine.run(java.TRANSACTIONS_COMMAND, "--bootstrap-server", server.bootstrap, *arguments)
            if not printed.strip():
                return []
            header, *rows = [line.removesuffix("\t").split("\t") for line in printed.splitlines()]
            names = [name.strip() for name in header]
            return [dict(zip(names, [each.strip() for each in row], strict=True)) for row in rows]

        yield run


def use(server: Server, transactional_id: str, topic: str, *, generation: int = 1, added: bool = True) -> RawProducer:
    """Open a transaction with one record. Without `added` the coordinator does not know the partition."""

    async def begin() -> RawProducer:
        async with Wire(server.host, server.port) as wire:
            producer = RawProducer(wire, transactional_id, generation=generation)
            await producer.init()
            if added and generation == 1:
                await producer.add({topic: [0]})
            await producer.send(topic, b"open")
        return producer

    return asyncio.run(begin())


def prints_the_same(server: Server, theirs: list[dict[str, str]], *typed: str, changing: str = "") -> None:
    """Check that our command has the columns of Kafka's in their order, and its rows but for a `changing` column."""
    ours = json.loads(client("transactions", *typed, "--bootstrap-server", server.bootstrap, "--json"))
    assert len(ours) == len(theirs) > 0
    for row, other in zip(by_producer(ours, "producer_id"), by_producer(theirs, "ProducerId"), strict=True):
        columns = [re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name)[1:] for name in other]
        columns = [name.replace("(min)", "_min") for name in columns]
        assert list(row)[: len(columns)] == columns
        for name, shown in zip(columns, other.values(), strict=True):
            value = row[name]
            text = ",".join(value) if isinstance(value, list) else str(value)
            assert name == changing or text == shown or (value is None and shown == "-1"), name


def by_producer(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row[column]))


def test_open_transactions_are_listed_and_described(server: Server, tool: Tool, topic: str) -> None:
    producer = use(server, topic, topic)
    other = use(server, f"{topic}-other", topic, generation=2)

    listed = sorted((row["TransactionalId"], row["ProducerId"], row["TransactionState"]) for row in tool("list"))
    assert listed == [(each.transactional_id, str(each.producer_id), "Ongoing") for each in (producer, other)]
    [row] = tool("list", "--transactional-id-pattern", f".*{topic}-ot.*")
    assert row["TransactionalId"] == f"{topic}-other"
    assert tool("list", "--duration-filter", "3600000") == []
    assert tool("list", "--transactional-id-pattern", "no such id") == []

    prints_the_same(server, tool("list"), "list")

    [described] = tool("describe", "--transactional-id", topic)
    prints_the_same(server, [described], "describe", "--transactional-id", topic, changing="transaction_duration_ms")
    assert int(described.pop("CurrentTransactionStartTimeMs")) > 0
    assert int(described.pop("TransactionDurationMs")) >= 0
    described.pop("CoordinatorId")
    assert described == {
        "TransactionalId": topic, "ProducerId": str(producer.producer_id), "ProducerEpoch": "0",
        "TransactionState": "Ongoing", "TransactionTimeoutMs": "60000", "TopicPartitions": f"{topic}-0",
    }  # fmt: skip

    producers = tool("describe-producers", "--topic", topic, "--partition", "0")
    prints_the_same(server, producers, "describe-producers", "--topic", topic, "--partition", "0")
    shown = [(row["ProducerId"], row["LastSequence"], row["CurrentTransactionStartOffset"]) for row in producers]
    assert sorted(shown) == sorted([(str(producer.producer_id), "0", "0"), (str(other.producer_id), "0", "1")])


def test_a_transaction_is_force_terminated(server: Server, tool: Tool, topic: str) -> None:
    use(server, topic, topic)
    tool("forceTerminateTransaction", "--transactionalId", topic)

    [described] = tool("describe", "--transactional-id", topic)
    assert described["TransactionState"] in ("PrepareAbort", "CompleteAbort", "Empty")
    while Confluent().committed(server.bootstrap, topic) != []:
        continue


def test_a_hanging_transaction_is_found_and_aborted(server: Server, admin: AdminClient, tool: Tool, topic: str) -> None:
    """It is open in a partition, and unknown to its coordinator: only possible without verification."""
    verify(admin, "false")
    producer = use(server, topic, topic, added=False)
    verify(admin, "true")
    use_and_commit(server, f"{topic}-later", topic)
    assert Confluent().committed(server.bootstrap, topic) == []

    [row] = tool("find-hanging", "--topic", topic, "--partition", "0")
    assert (row["Topic"], row["ProducerId"], row["StartOffset"]) == (topic, str(producer.producer_id), "0")
    prints_the_same(server, [row], "find-hanging", "--topic", topic, changing="duration_min")
    tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")

    assert tool("find-hanging", "--topic", topic) == []
    assert Confluent().committed(server.bootstrap, topic) == [b"later"]


def verify(admin: AdminClient, value: str) -> None:
    """Set `transaction.partition.verification.enable`, and wait until it counts."""
    entry = ConfigEntry("transaction.partition.verification.enable", value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)
    asked = ConfigResource(ResourceType.BROKER, "1")
    while admin.describe_configs([asked])[asked].result(30)[entry.name].value != value:
        continue


def use_and_commit(server: Server, transactional_id: str, topic: str) -> None:
    producer = Confluent().producer(server.bootstrap, transactional_id)
    producer.begin()
    producer.send(topic, b"later")
    producer.commit()
