"""`produce` and `perf produce` in transactions, with real brokers: Odradek and Apache Kafka."""

from __future__ import annotations

import signal
import subprocess

import pytest

from odradek.client import Admin, Consumer, Producer, TopicPartition
from tests.client.cli.commands import run, run_json, start
from tests.client.conftest import MakeTopic

pytestmark = [pytest.mark.servers("odradek", "apache"), pytest.mark.process]


async def committed(bootstrap: str, topic: str) -> list[bytes | None]:
    """All committed records of partition 0. A transaction of ours marks the end, and waits for the others."""
    async with Producer(bootstrap, transactional_id=f"{topic}-end") as producer, producer.transaction():
        await producer.send(topic, b"end", partition=0)
    async with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([(topic, 0)])
        found = []
        while (value := (await anext(consumer)).value) != b"end":
            found.append(value)
    return found


async def test_all_lines_are_in_one_transaction(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    to = ("produce", "--bootstrap-server", bootstrap, "--topic", topic, "--transactional-id", topic)
    _, err = await run(*to, stdin=b"1\n2\n3\n")
    assert err == ""
    assert await committed(bootstrap, topic) == [b"1", b"2", b"3"]
    async with Admin(bootstrap) as admin:
        end = (await admin.list_offsets({(topic, 0): -1})).value(TopicPartition(topic, 0)).offset
    assert end == 6  # three records and their marker, then the one of `committed` and its own


async def test_a_line_that_cannot_be_parsed_aborts(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    to = (
        "produce",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--command-property",
        f"transactional.id={topic}",
    )
    _, err = await run(*to, "--key-separator", "=", stdin=b"a=1\nb\n", status=1)
    assert err.startswith("error: line 2 ")
    assert await committed(bootstrap, topic) == []


async def test_ctrl_c_aborts(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    process = await start(
        "produce", "--bootstrap-server", bootstrap, "--topic", topic, "--transactional-id", topic, stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(b"typed\n")
    while not await producing(bootstrap, topic):
        pass
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert (process.returncode, err) == (130, b"")
    assert await committed(bootstrap, topic) == []


async def producing(bootstrap: str, topic: str) -> bool:
    """Whether a transaction is open in partition 0."""
    async with Admin(bootstrap) as admin:
        producers = (await admin.describe_producers([(topic, 0)])).value(TopicPartition(topic, 0))
    return any(one.transaction_start_offset is not None for one in producers)


async def test_a_transaction_ends_after_its_time_even_if_no_line_follows(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    to = ("produce", "--bootstrap-server", bootstrap, "--topic", topic, "--transactional-id", topic)
    process = await start(*to, "--transaction-duration-ms", "1", stdin=subprocess.PIPE)
    assert process.stdin is not None
    async with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([(topic, 0)])
        for line in (b"first", b"second"):
            process.stdin.write(line + b"\n")
            assert (await anext(consumer)).value == line
    process.stdin.close()
    _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    _, err = await run("produce", "--topic", topic, "--transaction-duration-ms", "1", status=2)
    assert "error: --transaction-duration-ms needs --transactional-id" in err


async def test_perf_sends_in_transactions(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    perf = ("perf", "produce", "--bootstrap-server", bootstrap, "--topic", topic, "--num-records", "50")
    sent = await run_json(*perf, "--transactional-id", topic, "--warmup-records", "10")
    assert sent["records"] == 40
    assert await committed(bootstrap, topic) != []
    one_transaction = 51 + 2
    async with Admin(bootstrap) as admin:
        partition = TopicPartition(topic, 0)
        assert (await admin.list_offsets({partition: -1})).value(partition).offset == one_transaction
        sent = await run_json(*perf, "--transaction-duration-ms", "1", "--throughput", "200")
        assert sent["records"] == 50
        assert [one for one in await admin.list_transactions() if one.startswith("perf-producer-")]
        assert (await admin.list_offsets({partition: -1})).value(partition).offset > one_transaction + 50 + 1
    assert len(await committed(bootstrap, topic)) == 50
