"""Our commands and the tools of the same name: the same input makes the same records, and the reverse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.test_cli import client
from tests.peers import java, kcat

MakeTopic = Callable[..., str]

RECORDS = """\
{"key": "k1", "value": "v1", "timestamp": 1700000000000, "headers": [["a", "1"], ["b", null], ["a", ""]]}
{"key": null, "value": null, "timestamp": 1700000000001}
{"key": "", "value": "", "timestamp": 1700000000002}
{"key": "ü", "value": "tab\\tin it", "timestamp": 1700000000003, "headers": {"ü": "ö"}}
"""
LINES = "a:1,b:NULL\tk1\tv1\nNULL\tk2\tNULL\nb:,,\tNULL\t\nh:x:y\tü\tv\tw\n"


def at(bootstrap: str, topic: str) -> tuple[str, ...]:
    return ("--bootstrap-server", bootstrap, "--topic", topic)


@pytest.mark.java
def test_consume_prints_the_same_as_the_console_consumer(bootstrap: str, make_topic: MakeTopic) -> None:
    for appended in ("CreateTime", "LogAppendTime"):
        topic = make_topic(message_timestamp_type=appended)
        client("produce", *at(bootstrap, topic), "--format", "json", stdin=RECORDS)
        parts = ("timestamp", "partition", "offset", "headers", "key")
        properties = [f"print.{part}=true" for part in parts] + ["key.separator=|", "headers.separator=;"]
        flags = [flag for name in (*properties, "null.literal=(null)") for flag in ("--formatter-property", name)]
        flags += ["--from-beginning", "--max-messages", "4", "--timeout-ms", "20000"]
        theirs = java.run(java.CONSOLE_CONSUMER, *at(bootstrap, topic), *flags).stdout
        assert theirs.count(f"{appended}:") == 4
        assert client("consume", *at(bootstrap, topic), *flags) == theirs


@pytest.mark.java
def test_produce_accepts_the_input_of_the_console_producer(bootstrap: str, make_topic: MakeTopic) -> None:
    properties = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    flags = [flag for name in properties for flag in ("--reader-property", name)]
    ours, theirs = make_topic(), make_topic()
    client("produce", *at(bootstrap, ours), *flags, stdin=LINES)
    java.run(java.CONSOLE_PRODUCER, *at(bootstrap, theirs), *flags, stdin=LINES)

    def records(topic: str) -> list[dict[str, object]]:
        return [
            {name: record[name] for name in ("offset", "key", "payload")} | {"headers": record.get("headers")}
            for record in kcat.consume(bootstrap, topic, "-o", "beginning")
        ]

    assert records(ours) == records(theirs)
    assert [record["payload"] for record in records(ours)] == ["v1", None, "", "v\tw"]


def test_consume_prints_the_same_as_kcat(bootstrap: str, topic: str) -> None:
    client("produce", *at(bootstrap, topic), "--format", "json", stdin=RECORDS)
    template = r"%t [%p] @%o %T: %k (%K) = %s (%S) %h %%\n"
    theirs = kcat.run(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", template)
    assert theirs.count("\n") == 4
    assert client("consume", *at(bootstrap, topic), "--from-beginning", "--no-follow", "--format", template) == theirs


@pytest.mark.java
def test_offsets_that_we_reset_are_those_that_kafkas_tool_describes(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    group = f"group-of-{topic}"
    for partition in ("0", "1"):
        client("produce", *at(bootstrap, topic), "--partition", partition, stdin="line\n" * 5)
    client("groups", "reset-offsets", *at(bootstrap, topic), "--group", group, "--to-offset", "3", "--execute")
    described = java.run(
        java.CONSUMER_GROUP_COMMAND, "--bootstrap-server", bootstrap, "--describe", "--group", group
    ).stdout
    rows = [line.split()[:6] for line in described.splitlines() if topic in line]
    assert sorted(rows) == [[group, topic, str(partition), "3", "5", "2"] for partition in (0, 1)]
