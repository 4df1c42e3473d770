"""`transactions` against real brokers: Odradek and Apache Kafka. tests/interop compares with kafka-transactions.sh."""

from __future__ import annotations

import pytest

from odradek.client import Producer, ProducerFencedError
from tests.client.cli.commands import run, run_json
from tests.client.conftest import MakeTopic
from tests.client.transactions.hanging import open_unknown_to_its_coordinator

both = pytest.mark.servers("odradek", "apache")


@both
async def test_an_open_transaction_is_shown_and_fenced(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    at = ("--bootstrap-server", bootstrap)
    async with Producer(bootstrap, transactional_id=topic, linger_ms=0) as producer:
        with pytest.raises(ProducerFencedError):  # noqa: PT012 - the block is what is tested
            async with producer.transaction():
                await producer.send_and_wait(topic, b"open", partition=1)
                listed = await run_json(
                    "transactions", "list", *at, "--transactional-id-pattern", f"{topic}.*", "--state", "Ongoing"
                )
                ids = ("--transactional-id", topic, "--transactional-id", "never-was")
                out, err = await run("transactions", "describe", *at, *ids, status=1)
                [described] = await run_json("transactions", "describe", *at, *ids[:2])
                where = ("--topic", topic, "--partition", "1", "--broker-id", "1")
                [producing] = await run_json("transactions", "describe-producers", *at, *where)
                [fenced] = await run_json("transactions", "fence", *at, "--transactional-id", topic)
    [row] = listed
    assert row == {
        "transactional_id": topic, "coordinator": 1, "producer_id": described["producer_id"],
        "transaction_state": "Ongoing",
    }  # fmt: skip
    assert [heading.decode() for heading in out[0].split()] == [name.upper().replace("_", "-") for name in described]
    assert out[1].split()[-1] == f"{topic}-1".encode()
    assert err.startswith("error: describe the transactions of never-was at ")
    assert 0 <= described["transaction_duration_ms"] < 60_000
    assert described["topic_partitions"] == [f"{topic}-1"]
    assert (producing["last_sequence"], producing["current_transaction_start_offset"]) == (0, 0)
    assert (fenced["transactional_id"], fenced["producer_epoch"]) == (topic, described["producer_epoch"] + 2)

    older = ("--transactional-id-pattern", topic, "--duration-filter", "3600000", "--state", "Ongoing")
    assert await run("transactions", "list", *at, *older) == ([], "")
    wanted = str(described["producer_id"])
    [row] = await run_json("transactions", "list", *at, "--producer-id", wanted)
    assert (row["transactional_id"], row["transaction_state"]) == (topic, "Empty")


@both
async def test_a_hanging_transaction_is_found_and_aborted(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    at = ("--bootstrap-server", bootstrap, "--topic", topic)
    producer_id = await open_unknown_to_its_coordinator(bootstrap, topic)
    [hanging] = await run_json("transactions", "find-hanging", *at)
    assert (hanging["partition"], hanging["producer_id"], hanging["start_offset"]) == (0, producer_id, 0)
    assert hanging["transactional_id"] == topic
    for where in (("--partition", "1"), ("--max-transaction-timeout", "100000000")):
        assert await run("transactions", "find-hanging", *at, *where) == ([], "")
    broker = ("--bootstrap-server", bootstrap, "--broker-id", "1")
    found = await run_json("transactions", "find-hanging", *broker)
    assert hanging | {"duration_min": 0} in [row | {"duration_min": 0} for row in found], "a minute may have passed"

    nothing = ("transactions", "abort", *at, "--partition", "0", "--start-offset", "1")
    assert await run(*nothing, status=1) == ([], f"error: no open transaction of {topic}-0 begins at offset 1\n")
    out, _ = await run("transactions", "abort", *at, "--partition", "0", "--start-offset", "0")
    assert out == [f"the transaction of producer {producer_id} in {topic}-0 is aborted".encode()]
    assert await run("transactions", "find-hanging", *at) == ([], "")

    producer_id = await open_unknown_to_its_coordinator(bootstrap, topic)
    epochs = ("--producer-epoch", str(hanging["producer_epoch"] + 1), "--coordinator-epoch", "-1")
    await run("transactions", "abort", *at, "--partition", "0", "--producer-id", str(producer_id), *epochs)
    assert await run("transactions", "find-hanging", *at) == ([], "")


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("find-hanging", "find-hanging needs --topic or --broker-id"),
        ("find-hanging --broker-id 1 --partition 0", "--partition needs --topic"),
        ("abort --topic t --partition 0", "name --start-offset, or --producer-id, --producer-epoch and"),
        ("abort --topic t --partition 0 --producer-id 1 --producer-epoch 0", "name --start-offset, or --producer-id"),
        ("abort --topic t --partition 0 --start-offset 1 --producer-id 1", "--start-offset excludes --producer-id"),
        ("describe", "the following arguments are required: --transactional-id"),
        ("list --state Open", "argument --state: invalid choice: 'Open'"),
    ],
)
async def test_wrong_command_lines(typed: str, reason: str) -> None:
    _, err = await run("transactions", *typed.split(), status=2)
    assert f"error: {reason}" in err
