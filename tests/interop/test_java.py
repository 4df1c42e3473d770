"""Kafka's own clients and tools, from the command line."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.peers import java, kcat
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent

pytestmark = pytest.mark.java

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
T0 = 1_700_000_000_000


def read(bootstrap: str, topic: str, count: int, offset: str = "earliest", *formats: str) -> list[str]:
    """The first `count` records from `offset` on, one line each, as the console consumer prints them."""
    arguments = [argument for name in formats for argument in ("--formatter-property", name)]
    return java.run(
        java.CONSOLE_CONSUMER,
        *("--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", offset),
        *("--max-messages", str(count), "--timeout-ms", "20000", *arguments),
    ).stdout.splitlines()


def test_the_console_clients_read_every_codec(bootstrap: str, topic: str) -> None:
    for codec in CODECS:
        java.run(
            java.CONSOLE_PRODUCER,
            *("--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec),
            stdin="".join(f"{codec} {number}\n" for number in range(100)),
        )
    assert read(bootstrap, topic, 500) == [f"{codec} {number}" for codec in CODECS for number in range(100)]


def test_console_clients_keep_keys_headers_and_nulls(bootstrap: str, topic: str) -> None:
    java.run(
        java.CONSOLE_PRODUCER,
        *("--bootstrap-server", bootstrap, "--topic", topic),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        *("--reader-property", "null.marker=NULL"),
        stdin="h1:v1,h2:v2\tkey\tvalue\nNULL\tkey\tNULL\nh:NULL\tNULL\tvalue\n",
    )
    prints = ("print.key=true", "print.headers=true", "print.offset=true", "null.literal=NULL")
    assert read(bootstrap, topic, 3, "earliest", *prints) == [
        "Offset:0\th1:v1,h2:v2\tkey\tvalue",
        "Offset:1\tNO_HEADERS\tkey\tNULL",
        "Offset:2\th:NULL\tNULL\tvalue",
    ]


def test_the_console_consumer_starts_at_an_offset(bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, [Outgoing(None, str(number).encode()) for number in range(50)])
    assert read(bootstrap, topic, 8, "42") == [str(number) for number in range(42, 50)]


def test_java_reads_compressed_records_of_other_clients(bootstrap: str, topic: str) -> None:
    for codec in CODECS:
        Confluent().produce(bootstrap, topic, [Outgoing(b"k", codec.encode() * 50)] * 100, codec=codec)
    assert read(bootstrap, topic, 500) == [codec * 50 for codec in CODECS for _ in range(100)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_the_producer_benchmark_ends_with_every_record_stored(acks: str, bootstrap: str, topic: str) -> None:
    done = java.run(
        java.PRODUCER_PERFORMANCE,
        *("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
        *("--command-property", f"bootstrap.servers={bootstrap}", f"acks={acks}", "compression.type=lz4"),
        f"enable.idempotence={'true' if acks == 'all' else 'false'}",
    )
    assert "20000 records sent" in done.stdout
    assert Confluent().offsets(bootstrap, topic) == (0, 20_000)


def test_the_topic_tool_creates_lists_describes_and_deletes(bootstrap: str, topic_name: str) -> None:
    def topics(*arguments: str) -> str:
        return java.run(java.TOPIC_COMMAND, "--bootstrap-server", bootstrap, *arguments).stdout

    assert topics("--create", "--topic", topic_name, "--partitions", "2", "--config", "retention.ms=1000") == (
        f"Created topic {topic_name}.\n"
    )
    assert topic_name in topics("--list").splitlines()
    summary, *partitions = topics("--describe", "--topic", topic_name).splitlines()
    assert re.fullmatch(
        rf"Topic: {topic_name}\tTopicId: \S{{22}}\tPartitionCount: 2\tReplicationFactor: 1\t"
        # Apache Kafka 4.3 formats a cluster with min.insync.replicas set for all topics.
        r"Configs: (min\.insync\.replicas=1,)?retention\.ms=1000",
        summary,
    )
    assert [line.split("\tElr:")[0] for line in partitions] == [
        f"\tTopic: {topic_name}\tPartition: {number}\tLeader: 1\tReplicas: 1\tIsr: 1" for number in range(2)
    ]
    topics("--delete", "--topic", topic_name)
    while topic_name in (row["topic"] for row in kcat.metadata(bootstrap)["topics"]):
        continue  # Apache Kafka responds to the deletion some milliseconds before it is visible


def test_the_offset_tool_finds_ends_times_and_the_latest_timestamp(
    bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=2)
    times = [T0, T0 + 3000, T0 + 1000, T0 + 2000]
    Confluent().produce(bootstrap, topic, [Outgoing(None, b"v", (), time) for time in times])

    def offsets(time: str) -> list[str]:
        return java.run(
            java.GET_OFFSET_SHELL, "--bootstrap-server", bootstrap, "--topic", topic, "--time", time
        ).stdout.splitlines()

    assert offsets("latest") == [f"{topic}:0:4", f"{topic}:1:0"]
    assert offsets("earliest") == [f"{topic}:0:0", f"{topic}:1:0"]
    assert offsets("max-timestamp") == [f"{topic}:0:1"]  # an empty partition has no line
    assert offsets(str(T0 + 1)) == [f"{topic}:0:1"]  # an empty partition has no line


def test_the_config_tool_describes_topics_and_brokers(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(retention_ms=60_000)

    def describe(kind: str, name: str) -> str:
        return java.run(
            java.CONFIG_COMMAND,
            *("--bootstrap-server", bootstrap, "--describe", "--all", "--entity-type", kind, "--entity-name", name),
        ).stdout

    of_topic = describe("topics", topic)
    assert "  retention.ms=60000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=60000, " in of_topic
    assert "STATIC_BROKER_CONFIG:log.retention.ms=-1" in of_topic
    assert "  cleanup.policy=delete sensitive=false synonyms={" in of_topic
    of_broker = describe("brokers", "1")
    assert "  log.retention.ms=-1 sensitive=false synonyms={STATIC_BROKER_CONFIG:log.retention.ms=-1" in of_broker
    assert "  message.max.bytes=1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588" in of_broker


def test_the_versions_tool_finds_the_versions_of_this_release(bootstrap: str) -> None:
    """The tool lists each API of the release with the newest version that both sides support."""
    printed = java.run(java.API_VERSIONS_COMMAND, "--bootstrap-server", bootstrap).stdout
    assert bootstrap in printed
    for api in ("Produce(0): 0 to 13", "Fetch(1): 4 to ", "ListOffsets(2): 1 to ", "Metadata(3): 0 to 13"):
        assert api in printed
