"""One log directory used by Apache Kafka and Odradek alternately, each stopped or killed before the other starts.

At its first start there, Odradek adopts topics, ids and properties, which Kafka keeps in a log of its own; Kafka later
finds the records that Odradek appended. Both must serve the same: every record with its offset, timestamp and headers,
aborted transactions, properties, committed offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.peers import apache, java, odradek
from tests.peers.clients import Incoming, Outgoing
from tests.peers.clients.aiokafka import Aiokafka
from tests.peers.clients.confluent import TIMEOUT, Confluent
from tests.peers.server import Server

pytestmark = pytest.mark.java

T0 = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONFIGS: Mapping[str, dict[str, str]] = {
    "segments": {"segment.bytes": "1048576", "index.interval.bytes": "1024", "retention.ms": "-1"},
    "transactions": {},
    "copied": {},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.9"},
}
TRANSACTIONAL = ("transactions", "copied")
GROUP = "readers"


class Seen(NamedTuple):
    """Everything that clients can read from a server."""

    records: dict[str, list[Incoming]]
    committed_records: dict[str, list[Incoming]]
    ends: dict[str, tuple[int, int]]
    by_time: list[int | None]
    configs: dict[str, dict[str, str]]
    group: list[int]


def create_topics(server: Server) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    topics = [NewTopic(name, 1, 1, config=configs) for name, configs in CONFIGS.items()]
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT)


def fill(server: Server) -> None:
    random = Random(1)
    for number, codec in enumerate(CODECS):
        records = [
            Outgoing(
                None if i % 5 == 0 else b"key-%d" % i,
                None if i % 13 == 0 else random.randbytes(1500),
                (("header", b"value"), ("null", None)) if i % 3 == 0 else (),
                T0 + i * 1000,
            )
            for i in range(number * 400, number * 400 + 400)
        ]
        Confluent().produce(server.bootstrap, "segments", records, codec=codec, idempotent=True)
    Confluent().produce(server.bootstrap, "compacted", [Outgoing(b"k%d" % (i % 7), b"v%d" % i) for i in range(100)])
    run_transactions(server)
    run_java_transactions(server)
    copy_by_java_transactions(server)
    commit(server, 700)


def run_transactions(server: Server) -> None:
    """Write ten transactions, every third of which is aborted, and records without a transaction between them."""
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": "t"})
    producer.init_transactions(TIMEOUT)
    for number in range(10):
        producer.begin_transaction()
        for index in range(20):
            producer.produce("transactions", b"transaction %d record %d" % (number, index), timestamp=T0 + number)
        assert producer.flush(TIMEOUT) == 0
        if number % 3:
            producer.commit_transaction(TIMEOUT)
        else:
            producer.abort_transaction(TIMEOUT)
        Confluent().produce(server.bootstrap, "transactions", [Outgoing(None, b"between", (), T0)])


def run_java_transactions(server: Server) -> None:
    """Write some transactions with Kafka's own client, each with ten milliseconds of records."""
    done = java.run(
        java.PRODUCER_PERFORMANCE,
        *("--topic", "transactions", "--num-records", "400", "--record-size", "100", "--throughput", "2000"),
        *("--command-property", f"bootstrap.servers={server.bootstrap}"),
        *("--transactional-id", "java", "--transaction-duration-ms", "10"),
    )
    assert "400 records sent" in done.stdout


def copy_by_java_transactions(server: Server) -> None:
    """Copy records with Kafka's own client, two in a transaction; it aborts a third of them and retries."""
    java.run(
        java.TRANSACTIONAL_MESSAGE_COPIER,
        *("--broker-list", server.bootstrap, "--transactional-id", "copier", "--transaction-size", "2"),
        *("--input-topic", "compacted", "--input-partition", "0", "--output-topic", "copied"),
        *("--consumer-group", "copiers", "--enable-random-aborts"),
    )


def commit(server: Server, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("segments", 0, offset)], asynchronous=False)
    consumer.close()


def state_of(server: Server) -> Seen:
    bootstrap = server.bootstrap
    ends = {topic: Aiokafka().offsets(bootstrap, topic) for topic in CONFIGS}
    group = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    committed = [each.offset for each in group.committed([TopicPartition("segments", 0)], timeout=TIMEOUT)]
    group.close()
    plain = {topic: read(bootstrap, topic, "read_uncommitted") for topic in CONFIGS}
    return Seen(
        plain,
        {topic: read(bootstrap, topic, "read_committed") for topic in TRANSACTIONAL},
        ends,
        [Confluent().offset_for_time(bootstrap, "segments", T0 + second * 1000) for second in (0, 1234, 1999, 2000)],
        configs_of(bootstrap),
        committed,
    )


def read(bootstrap: str, topic: str, isolation: str) -> list[Incoming]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
            "isolation.level": isolation, "enable.partition.eof": True,
        }
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [record for _, record in records_to_the_end(consumer, 1)]
    consumer.close()
    return found


def records_to_the_end(consumer: Consumer, partitions: int) -> Iterator[tuple[str, Incoming]]:
    """Every record of the assigned partitions, with its topic; the consumer reports their ends."""
    ended = 0
    while ended < partitions:
        message = consumer.poll(TIMEOUT)
        assert message is not None, "the end is not reached"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()  # noqa: SLF001
            ended += 1
            continue
        headers = tuple(message.headers() or ())
        yield (
            message.topic(),
            Incoming(message.offset(), message.timestamp()[1], message.key(), message.value(), headers),
        )


def configs_of(bootstrap: str) -> dict[str, dict[str, str]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    futures = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in CONFIGS])
    return {
        resource.name: {name: described.result(TIMEOUT)[name].value for name in CONFIGS[resource.name]}
        for resource, described in futures.items()
    }


def test_each_serves_the_records_of_the_other(tmp_path: Path) -> None:
    """The servers in order: Kafka, stopped; Odradek, killed; Kafka, killed; Odradek."""
    kafka = apache.prepare(tmp_path / "kafka")
    ours = odradek.prepare(tmp_path / "ours", {"log.dirs": str(kafka.log_dir)})
    try:
        kafka.start()
        create_topics(kafka)
        fill(kafka)
        seen = state_of(kafka)
        assert seen.configs == CONFIGS
        assert seen.group == [700]
        assert len(seen.records["copied"]) > len(seen.committed_records["copied"]) == 100
        kafka.stop()
        assert len(list((kafka.log_dir / "segments-0").glob("*.log"))) > 2

        ours.start()
        assert state_of(ours) == seen
        more = [Outgoing(b"k", b"ours %d" % i, (), T0 + i) for i in range(500)]
        appended = Confluent().produce(ours.bootstrap, "segments", more, codec="zstd", idempotent=True)
        assert appended == list(range(2000, 2500))
        commit(ours, 2400)
        seen = state_of(ours)
        ours.kill()

        kafka.start()
        assert state_of(kafka) == seen
        assert Confluent().produce(kafka.bootstrap, "segments", [Outgoing(None, b"goes on")]) == [2500]
        seen = state_of(kafka)
        kafka.kill()

        ours.start()
        assert state_of(ours) == seen
    finally:
        for server in (kafka, ours):
            if hasattr(server, "process"):
                server.kill()
        assert "Traceback" not in ours.printed()
