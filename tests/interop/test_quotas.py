"""Quotas as clients see them: throttled to the rate within ten percent, while others go on.

A client may use the bytes of all eleven windows at once, and again when that burst is out of them, eleven seconds
later: so the rate is measured for twice that time. Apache Kafka's rates have the same course, second by second.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import aiokafka
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

from tests.handlers.quotas import Part, set_quota
from tests.peers import java
from tests.peers.server import Server
from tests.wire import Wire

StartServer = Callable[..., Server]

LIMIT = 1_000_000  # bytes a second
VALUE = b"x" * 10_000
MEASURED = 22.0
"""Seconds: twice all windows."""


class Meter:
    """The rate of what was counted in the first `MEASURED` seconds after the first count."""

    def __init__(self) -> None:
        self.began = 0.0
        self.counted = 0
        self.took = 0.0

    def count(self, size: int) -> bool:
        """Count bytes, and return whether more are needed."""
        now = time.monotonic()
        self.began = self.began or now
        self.took = now - self.began
        if self.took < MEASURED:
            self.counted += size
        return self.took < MEASURED

    @property
    def rate(self) -> float:
        return self.counted / MEASURED


def limit(server: Server, parts: list[Part], kind: str, value: float = LIMIT) -> None:
    async def set_it() -> None:
        async with Wire(server.host, server.port, "admin") as wire:
            await set_quota(wire, parts, (kind, value))

    asyncio.run(set_it())


def create(server: Server, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)


def rate_of_kafka_pythons_producer(server: Server) -> float:
    meter = Meter()
    producer = KafkaProducer(
        bootstrap_servers=server.bootstrap, client_id="kafka-python", batch_size=50_000, linger_ms=5
    )
    try:
        more = True
        while more:
            for sent in [producer.send("kafka-python", VALUE) for _ in range(20)]:
                sent.get(60)
                more = meter.count(len(VALUE))
    finally:
        producer.close()
    return meter.rate


def rate_of_librdkafkas_producer(server: Server) -> float:
    meter, more = Meter(), True

    def delivered(error: KafkaError | None, message: object) -> None:
        nonlocal more
        assert error is None, error
        more = meter.count(len(VALUE))

    limits = {"queue.buffering.max.kbytes": 2000, "batch.size": 100_000}
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "librdkafka", **limits})
    while more:
        try:
            producer.produce("librdkafka", VALUE, on_delivery=delivered)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    producer.flush(60)
    return meter.rate


async def rate_of_aiokafkas_consumer(server: Server) -> float:
    meter = Meter()
    consumer = aiokafka.AIOKafkaConsumer(
        "aiokafka", bootstrap_servers=server.bootstrap, client_id="aiokafka", auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        async for record in consumer:
            assert record.value is not None
            if not meter.count(len(record.value)):
                break
    finally:
        await consumer.stop()
    return meter.rate


async def fill(server: Server, topic: str) -> None:
    """Write 40 MB, each record in its own batch, so that no fetch ends within one."""
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=server.bootstrap)
    await producer.start()
    for _ in range(4):
        await asyncio.gather(*[await producer.send(topic, VALUE) for _ in range(1000)])
    await producer.stop()


def latency(server: Server) -> float:
    """Return the seconds that a client without a quota takes to connect and write a record."""
    began = time.monotonic()
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "quick", "linger.ms": 0})
    producer.produce("quick", VALUE)
    assert producer.flush(30) == 0
    return time.monotonic() - began


def test_clients_are_throttled_to_their_rates_and_others_are_not_slowed(start_server: StartServer) -> None:
    server = start_server()
    for topic in ("kafka-python", "librdkafka", "aiokafka", "quick"):
        create(server, topic)
    asyncio.run(fill(server, "aiokafka"))
    limit(server, [("client-id", "kafka-python")], "producer_byte_rate")
    limit(server, [("user", "ANONYMOUS"), ("client-id", "librdkafka")], "producer_byte_rate")
    limit(server, [("user", None), ("client-id", "aiokafka")], "consumer_byte_rate")

    with ThreadPoolExecutor() as threads:
        throttled = {
            "kafka-python": threads.submit(rate_of_kafka_pythons_producer, server),
            "librdkafka": threads.submit(rate_of_librdkafkas_producer, server),
            "aiokafka": threads.submit(lambda: asyncio.run(rate_of_aiokafkas_consumer(server))),
        }
        latencies = []
        while not all(each.done() for each in throttled.values()):
            latencies.append(latency(server))
        rates = {name: each.result() for name, each in throttled.items()}

    assert rates == pytest.approx(dict.fromkeys(rates, LIMIT), rel=0.1)
    assert len(latencies) > 20
    assert statistics.median(latencies) < 0.3  # a throttled client waits a second or more


def test_a_consumer_of_librdkafka_with_larger_fetches_than_its_quota_gets_through(start_server: StartServer) -> None:
    server = start_server()
    create(server, "t")
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "quick"})
    for _ in range(300):
        producer.produce("t", VALUE)
    producer.flush(30)
    limit(server, [("client-id", "slow")], "consumer_byte_rate", 200_000)  # two of three megabytes at once
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap, "client.id": "slow", "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    try:
        began, received = time.monotonic(), 0
        while received < 300:
            message = consumer.poll(30)
            assert message is not None, received
            assert message.error() is None
            received += 1
    finally:
        consumer.close()

    assert 3 < time.monotonic() - began < 25


@pytest.mark.java
def test_kafka_configs_sets_describes_and_removes_quotas(start_server: StartServer) -> None:
    server = start_server()

    def configs(*arguments: str) -> str:
        return java.run(java.CONFIG_COMMAND, "--bootstrap-server", server.bootstrap, *arguments).stdout

    set_to = "producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=12.5,controller_mutation_rate=0.5"
    configs("--alter", "--entity-type", "users", "--entity-name", "alice", "--add-config", set_to)
    configs(
        "--alter", "--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "a/b c",
        "--add-config", "producer_byte_rate=7",
    )  # fmt: skip
    configs(
        "--alter", "--entity-type", "ips", "--entity-name", "192.0.2.7", "--add-config", "connection_creation_rate=3"
    )

    described = configs("--describe", "--entity-type", "users")
    assert "Quota configs for user-principal 'alice' are " in described
    for each in ("producer_byte_rate=1024.0", "request_percentage=12.5", "controller_mutation_rate=0.5"):
        assert each in described
    pairs = configs("--describe", "--entity-type", "users", "--entity-default", "--entity-type", "clients")
    assert "the default user-principal, client-id 'a/b c' are producer_byte_rate=7.0" in pairs
    assert "ip '192.0.2.7' are connection_creation_rate=3.0" in configs("--describe", "--entity-type", "ips")

    names = "producer_byte_rate,consumer_byte_rate,request_percentage,controller_mutation_rate"
    configs("--alter", "--entity-type", "users", "--entity-name", "alice", "--delete-config", names)
    assert configs("--describe", "--entity-type", "users", "--entity-name", "alice").strip() == ""


@pytest.mark.java
def test_kafka_topics_reports_that_the_quota_of_mutations_is_over(start_server: StartServer) -> None:
    server = start_server()
    limit(server, [("user", "ANONYMOUS")], "controller_mutation_rate", 1)

    def create_topic(name: str, partitions: str, *, check: bool = True) -> str:
        arguments = ("--bootstrap-server", server.bootstrap, "--create", "--topic", name, "--partitions", partitions)
        done = java.run(java.TOPIC_COMMAND, *arguments, check=check)
        return done.stdout + done.stderr

    create_topic("a", "500")

    assert "The throttling quota has been exceeded." in create_topic("b", "1", check=False)
