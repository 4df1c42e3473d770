"""TLS and certificates of clients, with the clients of others: right ones are served, wrong ones are not."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError as KafkaPythonError
from kafka.errors import KafkaTimeoutError
from py4j.protocol import Py4JJavaError

from tests.peers import secured
from tests.peers.certificates import Authority
from tests.peers.java_machine import JavaMachine
from tests.peers.secured import Secured

LIMIT = 1_048_000  # record sizes up to those that fill a Fetch of 1 MiB alone


class Identity(NamedTuple):
    """What a client knows: the file of the authority that it trusts, and its own key and chain if it has one."""

    ca: Path
    own: Path | None = None


class RefusedError(Exception):
    """The client could not connect."""


Values = Sequence[bytes]


class Confluent:
    name = "confluent-kafka"

    def produce(self, bootstrap: str, topic: str, identity: Identity, values: Values) -> None:
        failures: list[object] = []
        producer = Producer(
            {**self._settings(bootstrap, identity), "message.max.bytes": LIMIT, "message.timeout.ms": 8000}
        )
        for value in values:
            producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
        producer.flush(20)
        if failures:
            raise RefusedError(failures[0])

    def consume(self, bootstrap: str, topic: str, identity: Identity, count: int) -> list[bytes]:
        consumer = Consumer({**self._settings(bootstrap, identity), "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.assign([ConfluentPartition(topic, 0, 0)])
        received: list[bytes] = []
        while len(received) < count:
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None, message.error()
            received.append(message.value())
        consumer.close()
        return received

    def _settings(self, bootstrap: str, identity: Identity) -> dict[str, Any]:
        settings = {"bootstrap.servers": bootstrap, "security.protocol": "ssl", "ssl.ca.location": str(identity.ca)}
        if identity.own is not None:
            settings["ssl.certificate.location"] = str(identity.own)
            settings["ssl.key.location"] = str(identity.own)
        return settings


class Aiokafka:
    name = "aiokafka"

    def produce(self, bootstrap: str, topic: str, identity: Identity, values: Values) -> None:
        async def produce() -> None:
            settings = self._settings(bootstrap, identity)
            producer = AIOKafkaProducer(**settings, max_request_size=2 * LIMIT, max_batch_size=LIMIT)
            try:
                await producer.start()
                for value in values:
                    await producer.send_and_wait(topic, value)
            finally:
                await producer.stop()

        self._run(produce())

    def consume(self, bootstrap: str, topic: str, identity: Identity, count: int) -> list[bytes]:
        async def consume() -> list[bytes]:
            settings = self._settings(bootstrap, identity)
            async with AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest") as consumer:
                async with asyncio.timeout(30):
                    return [(await consumer.getone()).value for _ in range(count)]

        return self._run(consume())

    def _run(self, work: Any) -> Any:
        try:
            return asyncio.run(work)
        except KafkaConnectionError as error:
            raise RefusedError(str(error)) from error

    def _settings(self, bootstrap: str, identity: Identity) -> dict[str, Any]:
        return {
            "bootstrap_servers": bootstrap,
            "security_protocol": "SSL",
            "ssl_context": context(identity),
            "request_timeout_ms": 8000,
        }


class KafkaPython:
    name = "kafka-python"

    def produce(self, bootstrap: str, topic: str, identity: Identity, values: Values) -> None:
        try:
            producer = KafkaProducer(
                **self._settings(bootstrap, identity), max_request_size=2 * LIMIT, batch_size=LIMIT, max_block_ms=8000
            )
            with closing(producer):
                for value in values:
                    producer.send(topic, value).get(20)
        except (KafkaPythonError, KafkaTimeoutError) as error:
            raise RefusedError(str(error)) from error

    def consume(self, bootstrap: str, topic: str, identity: Identity, count: int) -> list[bytes]:
        consumer = KafkaConsumer(**self._settings(bootstrap, identity), consumer_timeout_ms=20_000)
        partition = TopicPartition(topic, 0)
        with closing(consumer):
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            return [record.value for _, record in zip(range(count), consumer, strict=False)]

    def _settings(self, bootstrap: str, identity: Identity) -> dict[str, Any]:
        return {
            "bootstrap_servers": bootstrap,
            "security_protocol": "SSL",
            "ssl_cafile": str(identity.ca),
            "ssl_certfile": None if identity.own is None else str(identity.own),
            "ssl_keyfile": None if identity.own is None else str(identity.own),
        }


class Java:
    name = "java"

    def __init__(self, machine: JavaMachine) -> None:
        self._machine = machine

    def produce(self, bootstrap: str, topic: str, identity: Identity, values: Values) -> None:
        make = partial(self._machine.new, "org.apache.kafka.common.serialization.ByteArraySerializer")
        settings = {"max.request.size": str(2 * LIMIT), "max.block.ms": "8000", **self._settings(bootstrap, identity)}
        producer = self._machine.new("org.apache.kafka.clients.producer.KafkaProducer", settings, make(), make())
        try:
            record = "org.apache.kafka.clients.producer.ProducerRecord"
            for sent in [producer.send(self._machine.new(record, topic, value)) for value in values]:
                sent.get()
        except Py4JJavaError as error:
            raise RefusedError(str(error.java_exception)) from error
        finally:
            producer.close()

    def consume(self, bootstrap: str, topic: str, identity: Identity, count: int) -> list[bytes]:
        make = partial(self._machine.new, "org.apache.kafka.common.serialization.ByteArrayDeserializer")
        settings = self._settings(bootstrap, identity)
        consumer = self._machine.new("org.apache.kafka.clients.consumer.KafkaConsumer", settings, make(), make())
        partition = self._machine.new("org.apache.kafka.common.TopicPartition", topic, 0)
        consumer.assign([partition])
        consumer.seekToBeginning([partition])
        received: list[bytes] = []
        while len(received) < count:
            polled = consumer.poll(self._machine.named("java.time.Duration").ofSeconds(20))
            assert not polled.isEmpty()
            records = polled.iterator()
            while records.hasNext():
                received.append(bytes(records.next().value()))
        consumer.close()
        return received

    def _settings(self, bootstrap: str, identity: Identity) -> dict[str, str]:
        settings = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(identity.ca),
        }
        if identity.own is not None:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(identity.own)}
        return settings


Client = Confluent | Aiokafka | KafkaPython | Java


def context(identity: Identity) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(identity.ca))
    if identity.own is not None:
        made.load_cert_chain(identity.own)
    return made


@pytest.fixture(scope="module")
def machine() -> Iterator[JavaMachine]:
    with JavaMachine() as machine:
        yield machine


JAVA = pytest.param("java", marks=pytest.mark.java)
NAMED: dict[str, Client] = {each.name: each for each in (Confluent(), Aiokafka(), KafkaPython())}


def _named(request: pytest.FixtureRequest) -> Client:
    return NAMED.get(request.param) or Java(request.getfixturevalue("machine"))


@pytest.fixture(params=[*NAMED, JAVA])
def client(request: pytest.FixtureRequest) -> Client:
    return _named(request)


@pytest.fixture(params=["confluent-kafka", "aiokafka", JAVA])
def refused_client(request: pytest.FixtureRequest) -> Client:
    """All but kafka-python, which leaves sockets open when it cannot connect."""
    return _named(request)


Start = Callable[[str], Secured]


@pytest.fixture(scope="module")
def secured_by(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start a server once for each value of `ssl.client.auth`."""
    started: dict[str, Secured] = {}

    def start(client_auth: str) -> Secured:
        if client_auth not in started:
            prepared = secured.prepare(kind, tmp_path_factory.mktemp("secured"), client_auth=client_auth)
            prepared.server.start()
            started[client_auth] = prepared
        return started[client_auth]

    yield start
    for each in started.values():
        each.server.stop()
        assert "Traceback" not in each.server.printed(), each.server.printed()[-8000:]


@pytest.fixture
def new_topic(topic_name: str) -> Callable[[Secured], str]:
    def create(server: Secured) -> str:
        admin = AdminClient({"bootstrap.servers": server.server.bootstrap})
        admin.create_topics([NewTopic(topic_name, 1)])[topic_name].result(20)
        return topic_name

    return create


def values() -> list[bytes]:
    source = random.Random(4)
    return [source.randbytes(size) for size in [0, 1, 100, *[5000] * 50, 200_000, 900_000, 16_384, 900_000, 950_000, 3]]


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_records_come_back_byte_for_byte(
    client: Client, client_auth: str, secured_by: Start, new_topic: Callable[[Secured], str]
) -> None:
    server = secured_by(client_auth)
    topic, sent = new_topic(server), values()
    identity = Identity(server.ca, None if client_auth == "none" else server.directory / "client.pem")
    client.produce(server.bootstrap, topic, identity, sent)
    assert client.consume(server.bootstrap, topic, identity, len(sent)) == sent


def test_a_client_without_a_certificate_is_refused_where_one_is_required(
    refused_client: Client, secured_by: Start
) -> None:
    server = secured_by("required")
    with pytest.raises(RefusedError):
        refused_client.produce(server.bootstrap, "t", Identity(server.ca), [b"x"])


def test_a_client_with_a_certificate_of_another_authority_is_refused(
    refused_client: Client, secured_by: Start, tmp_path: Path
) -> None:
    server = secured_by("required")
    foreign = Authority("foreign").client("alice").write(tmp_path, "client")
    with pytest.raises(RefusedError):
        refused_client.produce(server.bootstrap, "t", Identity(server.ca, foreign), [b"x"])


def test_a_client_does_not_trust_another_authority(refused_client: Client, secured_by: Start, tmp_path: Path) -> None:
    server = secured_by("none")
    with pytest.raises(RefusedError):
        refused_client.produce(server.bootstrap, "t", Identity(Authority("foreign").write(tmp_path)), [b"x"])


def test_a_plaintext_client_is_refused_with_a_line_that_says_why(secured_by: Start, kind: str) -> None:
    server = secured_by("none")
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "socket.timeout.ms": 3000})
    with pytest.raises(KafkaException) as caught:
        admin.list_topics(timeout=3)
    assert caught.value.args[0].code() == KafkaError._TRANSPORT  # noqa: SLF001 - that is its name
    if kind == "odradek":
        assert "the client does not speak TLS" in server.server.printed()
