"""`doctor` names the transactions that hold back readers, with real brokers, and its commands end them."""

from __future__ import annotations

import re
import shlex

import pytest

from odradek.client import Admin, Producer, ProducerFencedError, TopicPartition
from odradek.client.admin.results import TransactionDescription
from odradek.client.doctor.finding import Severity
from odradek.client.doctor.open_transactions import finding_of_known
from tests.client.cli.commands import run, run_json
from tests.client.conftest import MakeTopic
from tests.client.transactions.hanging import open_unknown_to_its_coordinator

both = pytest.mark.servers("odradek", "apache")


@both
async def test_an_open_transaction_is_named_with_the_command_that_ends_it(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(2)
    name = f"{topic} of mine"
    async with Producer(bootstrap, transactional_id=name, linger_ms=0) as producer:
        with pytest.raises(ProducerFencedError):  # noqa: PT012 - the block is what is tested
            async with producer.transaction():
                await producer.send_and_wait(topic, b"open", partition=1)
                findings = await run_json("doctor", "--bootstrap-server", bootstrap)
                [found] = [one for one in findings if one["subject"] == f"transaction {name}"]
                async with Admin(bootstrap) as admin:
                    described = (await admin.describe_transactions([name])).value(name)
                command = found["cure"].partition("odradek ")[2]
                await run(*shlex.split(command))
    assert found["severity"] == "note"
    assert re.match(
        rf"open since 20.*\+00:00 \(state Ongoing, producer id {described.producer_id}, epoch"
        rf" {described.producer_epoch}, timeout 60000 ms, coordinator broker 1\); readers of committed records wait for"
        rf" it: {topic}-1 at offset 0 of 1, 1 offset behind$",
        found["text"],
    )
    findings = await run_json("doctor", "--bootstrap-server", bootstrap)
    assert [one["severity"] for one in findings if one["subject"] == "transactions"] == ["ok"]


@both
async def test_a_hanging_transaction_is_a_problem_and_its_command_ends_it(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(2)
    producer_id = await open_unknown_to_its_coordinator(bootstrap, topic)
    out, _ = await run("doctor", "--bootstrap-server", bootstrap, status=1)
    [line] = [one.decode() for one in out if one.startswith(b"problem")]
    assert line.startswith(
        f"problem  {topic}-0: a transaction hangs from offset 0 on (producer id {producer_id}, epoch"
    )
    command = line.partition("odradek ")[2].removesuffix(".")
    await run(*shlex.split(command))
    findings = await run_json("doctor", "--bootstrap-server", bootstrap)
    assert [one["severity"] for one in findings if one["subject"] == "transactions"] == ["ok"]


def test_a_transaction_that_is_open_for_long_is_a_warning() -> None:
    place = TopicPartition("orders", 0)
    held = {TopicPartition("orders", number): (7, 9) for number in range(7)}
    old = TransactionDescription("id", 1, "Ongoing", 5, 0, 900_000, 1_700_000_000_000, (place,))
    finding = finding_of_known(old, held, "--bootstrap-server b:1")
    assert finding.severity is Severity.WARNING
    assert finding.text.startswith("open since 2023-11-14T22:13:20+00:00 (")
    assert finding.text.endswith("orders-4 at offset 7 of 9, 2 offsets behind; …")
