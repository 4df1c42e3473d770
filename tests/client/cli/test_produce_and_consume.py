"""`produce` and `consume` with real brokers: Odradek and Apache Kafka."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from odradek.client import Consumer, ConsumerRecord, Producer
from odradek.protocol.plural import pluralize
from tests.client.cli.commands import run
from tests.client.conftest import MakeTopic

pytestmark = pytest.mark.servers("odradek", "apache")


async def read(bootstrap: str, topic: str, count: int) -> list[ConsumerRecord]:
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(await consumer.partitions_for(topic))
        return [await anext(consumer) for _ in range(count)]


@pytest.mark.process
async def test_every_part_of_a_record_can_be_typed(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    to = ("produce", "--bootstrap-server", bootstrap, "--topic", topic)
    typed = (
        ("--header", "all=1", "--timestamp", "5000", "--partition", "1", "--key", "k"),
        ("--key-separator", r"\t", "--headers-delimiter", "|", "--null-marker", "-", "--partition", "1"),
        ("--reader-property", "parse.key=true", "--property", "key.separator=:", "--compression-codec", "zstd"),
        ("--format", "json"),
    )
    lines = (
        b"plain\n",
        b"a:1,b:-|k\t-\n",
        b"key 1:v\n",
        b'{"partition":0,"timestamp":7,"headers":{"x":"y"},"value":"j"}',
    )
    for arguments, line in zip(typed, lines, strict=True):
        _, err = await run(*to, *arguments, "--command-property", "linger.ms=0", stdin=line)
        assert err == ""
    records = sorted(await read(bootstrap, topic, 4), key=lambda record: (record.value or b"", record.key or b""))
    assert [(record.key, record.value, record.headers) for record in records] == [
        (b"k", None, (("a", b"1"), ("b", None))),
        (None, b"j", (("x", b"y"),)),
        (b"k", b"plain", (("all", b"1"),)),
        (b"key 1", b"v", ()),
    ]
    assert [record.timestamp for record in records[1:3]] == [7, 5000]
    assert [record.partition for record in records[:3]] == [1, 0, 1]


async def test_ranges_formats_and_filters(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(2)
    async with Producer(bootstrap) as producer:
        for number in range(20):
            await producer.send(
                topic, b"%d" % number, b"k%d" % (number % 3), 0, [("n", b"%d" % number)], timestamp=1000 * number + 1000
            )

    async def consume(*arguments: str) -> list[str]:
        out, err = await run("consume", "--bootstrap-server", bootstrap, "--topic", topic, *arguments)
        assert err == f"Processed a total of {pluralize(len(out), 'message')}\n"
        return [line.decode() for line in out]

    assert await consume("--from-beginning", "--no-follow") == [str(number) for number in range(20)]
    assert await consume("--offset", "-3", "--no-follow", "--partition", "0,1") == ["17", "18", "19"]
    assert await consume("--offset", "5", "--to-offset", "8") == ["5", "6", "7"]
    assert await consume("--offset", "25", "--to-offset", "30", "--partition", "0") == []
    assert await consume("--from-timestamp", "1970-01-01T00:00:18", "--no-follow") == ["17", "18", "19"]
    assert await consume("--from-timestamp", "18001", "--to-timestamp", "20000") == ["18"]
    assert await consume("--from-timestamp", "-1h", "--no-follow") == []
    assert await consume("--from-beginning", "--to-timestamp", "2000", "--follow", "--timeout-ms", "3000") == ["0"]
    assert await consume("--from-beginning", "--no-follow", "--filter", "key=k1", "--filter", "value~^1") == [
        "1", "10", "13", "16", "19",
    ]  # fmt: skip
    assert await consume("--from-beginning", "--filter", "header.n=7", "--max-messages", "1") == ["7"]
    parts = ("--print", "key,value,offset,partition,timestamp,headers", "--max-messages", "1", "--from-beginning")
    assert await consume(*parts) == ["CreateTime:1000\tPartition:0\tOffset:0\tn:0\tk0\t0"]
    template = r"%t/%p/%o %k=%s %h %T\n"
    assert await consume("--format", template, "--offset", "-1", "--no-follow") == [f"{topic}/0/19 k1=19 n=19 20000"]
    [line] = await consume("--format", "json", "--offset", "19", "--to-offset", "20")
    assert await consume("--json", "--offset", "19", "--to-offset", "20") == [line]
    assert json.loads(line) == {
        "topic": topic, "partition": 0, "offset": 19, "timestamp": 20000, "timestamp_type": "CreateTime",
        "headers": [["n", "19"]], "key": "k1", "value": "19",
    }  # fmt: skip


@pytest.mark.process
async def test_what_consume_prints_as_json_produce_sends_again(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with Producer(bootstrap) as producer:
        await producer.send(topic, b"\xff\xfe", b"", headers=[("a", None), ("b", b"\x80")], timestamp=77)
        await producer.send(topic, None, "ü".encode(), timestamp=78)
    names = ("--bootstrap-server", bootstrap, "--topic", topic, "--format", "json")
    printed, _ = await run("consume", *names, "--from-beginning", "--no-follow")
    await run("produce", *names, stdin=b"\n".join(printed))
    first, second, *again = await read(bootstrap, topic, 4)
    assert [replace(record, offset=record.offset - 2) for record in again] == [first, second]


@pytest.mark.process
async def test_blank_lines_of_json_are_skipped_but_counted(bootstrap: str, make_topic: MakeTopic) -> None:
    to = ("produce", "--bootstrap-server", bootstrap, "--topic", await make_topic(), "--format", "json")
    _, err = await run(*to, "--summary", stdin=b'{"value": "1"}\n\n \n{"value": "2"}\n')
    assert err.startswith("2 records, ")
    _, err = await run(*to, "--key", "k", stdin=b'\n\n{"value": "3"}\n{"value"', status=1)
    assert err.startswith("error: line 4 is not a record in JSON: ")
    assert [record.value for record in await read(bootstrap, to[4], 3)] == [b"1", b"2", b"3"]


@pytest.mark.process
async def test_refused_records_are_reported_once(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(max_message_bytes=200)
    at = ("--bootstrap-server", bootstrap, "--topic", topic)
    long = b"x" * 500 + b"\n"
    _, err = await run("produce", *at, "--command-property", "batch.size=1", stdin=long + b"short\n" + long, status=1)
    refused = f"send records on {topic}-0 at {bootstrap} (broker 1): MESSAGE_TOO_LARGE"
    assert err.startswith(f"error: 2 of 3 records were not acknowledged: {refused}")
    assert err.count("\n") == 1
    _, err = await run("perf", "produce", *at, "--record-size", "500", "--num-records", "9", status=1)
    assert err.startswith(f"error: 9 of 9 records were not acknowledged: {refused}")
    assert err.count("\n") == 1
    slow = ("--num-records", "3", "--record-size", "500", "--timeout-ms", "300")
    _, err = await run("perf", "e2e", *at, *slow, status=1)
    assert err.startswith(f"error: {refused}")
    assert err.count("\n") == 1


@pytest.mark.process
async def test_records_without_a_partition_go_where_the_partitioner_says(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(3)
    to = ("produce", "--bootstrap-server", bootstrap, "--topic", topic, "--partitioner", "round-robin")
    await run(*to, stdin=b"1\n2\n3\n4\n5\n6\n")
    assert sorted(record.partition for record in await read(bootstrap, topic, 6)) == [0, 0, 1, 1, 2, 2]


@pytest.mark.process
async def test_settings_come_from_a_file_and_from_flags(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = await make_topic()
    file = tmp_path / "client.properties"
    file.write_text("# a comment\nlinger.ms = 0\nclient.id=7\nmax.request.size=1000\n")
    to = ("produce", "--bootstrap-server", bootstrap, "--topic", topic, "--command-config", str(file))
    _, err = await run(*to, stdin=b"x" * 2000, status=1)
    assert "2000 bytes, and max.request.size is 1000" in err.replace("2001 bytes", "2000 bytes")
    await run(*to, "--command-property", "max.request.size=100000", stdin=b"x" * 2000)
    _, err = await run(*to, "--command-property", "linger=3", stdin=b"x", status=1)
    assert err.startswith("error: configure the client: there is no property linger.")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("liner.ms=5", "there is no property liner.ms. Did you mean linger.ms?"),
        ("queue.buffering.max.ms=5", "there is no property queue.buffering.max.ms. Did you mean linger.ms?"),
        ("ssl.ca.location=/ca.pem", "there is no property ssl.ca.location. Did you mean ssl.truststore.location?"),
        (
            "ssl.keystore.locaton=/k.pem",
            "there is no property ssl.keystore.locaton. Did you mean ssl.keystore.location",
        ),
        ("sasl.mechanisms=PLAIN", "there is no property sasl.mechanisms. Did you mean sasl.mechanism?"),
        ("sasl.login.callback.handler.class=my.Own", "there is no property sasl.login.callback.handler.class."),
        ("security.protocol=SASL_SSL", "sasl.mechanism is not set. choose one of PLAIN"),
        ("key.serializer=json", "there is no property key.serializer. docs/client.md lists"),
    ],
)
async def test_an_unknown_property_gets_the_intended_one_suggested(setting: str, words: str) -> None:
    _, err = await run("produce", "--topic", "t", "--command-property", setting, status=1)
    assert err.startswith(f"error: configure the client: {words}")


@pytest.mark.process
def test_progress_and_colours_are_for_terminals(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("line\n")
    command = [sys.executable, "-m", "odradek.client", "produce", "--bootstrap-server", "127.0.0.1:1", "--topic", "t"]

    def printed(**environment: str) -> bytes:
        master, slave = pty.openpty()
        inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        variables = {**inherited, "TERM": "xterm", **environment}
        process = subprocess.run([*command, "--file", str(file)], stderr=slave, env=variables, check=False)
        os.close(slave)
        said = os.read(master, 10000)
        os.close(master)
        assert process.returncode == 1
        return said

    assert b"\x1b[31merror:\x1b[0m find the cluster" in printed()
    assert b"error: find the cluster" in printed(NO_COLOR="1")
    assert b"\x1b" not in printed(TERM="dumb")
