"""The messages in docs/troubleshooting.md are those of the clients."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from odradek import client
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server, free_port

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()


def assert_quoted(message: object, *quotes: str) -> None:
    """Check that both the client's message and the page have these parts."""
    for quote in quotes:
        assert quote in str(message)
        assert quote in PAGE


def delivery_error(bootstrap: str, topic: str, value: bytes, **settings: object) -> KafkaError:
    """The error of librdkafka for a record."""
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    [error] = errors
    return error


def first_error(settings: Mapping[str, object]) -> str:
    """The first error of librdkafka's error callback, all times in it 0."""
    errors: list[str] = []
    producer = Producer({"log_level": 0, **settings, "error_cb": lambda error: errors.append(error.str())})
    for _ in range(100):
        if errors:
            break
        producer.poll(0.1)
    return re.sub(r"\(after \d+ms", "(after 0ms", errors[0])


async def send(bootstrap: str, topic: str, value: bytes) -> None:
    async with client.Producer(bootstrap, max_block_ms=1000) as producer:
        await (await producer.send(topic, value))


async def test_a_port_without_a_listener() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(client.ClientError) as raised:
        await send(address, "t", b"v")
    assert_quoted(
        raised.value, "find the cluster: ", "connection refused. Check the bootstrap servers, and advertised.listeners"
    )
    assert_quoted(
        first_error({"bootstrap.servers": address}), "failed: Connection refused (after 0ms in state CONNECT)"
    )
    producer = AIOKafkaProducer(bootstrap_servers=address)
    with pytest.raises(Exception, match="bootstrap") as raised_there:
        await producer.start()
    await producer.stop()
    assert_quoted(raised_there.value, "KafkaConnectionError: Unable to bootstrap from [('127.0.0.1', ")


async def test_an_advertised_address_that_cannot_be_resolved(start_server: Callable[..., Server]) -> None:
    server = start_server({"advertised.listeners": "PLAINTEXT://broker.invalid:9092"})
    with pytest.raises(client.ClientError) as raised:
        await send(server.bootstrap, "t", b"v")
    assert_quoted(raised.value, "find the cluster: broker.invalid:9092 (broker 1): the name cannot be resolved (")


def test_sasl_on_a_plaintext_port(server: Server) -> None:
    sasl = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
    }
    error = first_error({"bootstrap.servers": server.bootstrap, **sasl})
    assert_quoted(error, "SASL PLAIN mechanism handshake failed: Broker: Request not valid in current SASL state")


async def test_tls_and_sasl_of_this_client_on_a_plaintext_port(server: Server) -> None:
    with pytest.raises(client.ClientError) as raised:
        async with client.Admin(server.bootstrap, security_protocol="SSL"):
            pass
    assert_quoted(
        raised.value, "find the cluster: ", "the peer ended the TLS handshake. Is this the port of a TLS listen"
    )
    user = {"sasl_username": "u", "sasl_password": "p"}
    with pytest.raises(client.AuthenticationFailedError) as raised:
        async with client.Admin(server.bootstrap, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", **user):
            pass
    assert_quoted(raised.value, "authenticate as u with PLAIN at ", "the listener does not use SASL. Set security_prot")


async def test_a_topic_that_does_not_exist(start_server: Callable[..., Server]) -> None:
    server = start_server({"auto.create.topics.enable": "false"})
    with pytest.raises(client.ClientError) as raised:
        await send(server.bootstrap, "t", b"v")
    assert_quoted(
        raised.value, "UNKNOWN_TOPIC_OR_PARTITION. Check the names of topic and partition, or create the topic"
    )
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "g", "log_level": 0})
    consumer.subscribe(["t"])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert_quoted(message.error(), "Subscribed topic not available: t: Broker: Unknown topic or partition")


async def test_a_record_that_is_too_large(server: Server, make_topic: Callable[..., str]) -> None:
    topic = make_topic(max_message_bytes=1000)
    with pytest.raises(client.ClientError) as raised:
        await send(server.bootstrap, topic, bytes(5000))
    cure = "Send smaller records, or raise max.message.bytes of the topic and max_request_size of the producer"
    assert_quoted(raised.value, "MESSAGE_TOO_LARGE", cure)
    if server.kind == "odradek":  # Kafka does not say how large
        assert_quoted(raised.value, "MESSAGE_TOO_LARGE (the batch has 5070 bytes, max.message.bytes is 1000). ")
    assert_quoted(delivery_error(server.bootstrap, topic, bytes(5000)).str(), "Broker: Message size too large")


async def test_an_offset_out_of_range(server: Server, topic: str) -> None:
    Confluent().produce(server.bootstrap, topic, [Outgoing(None, b"v")])
    async with client.Consumer(server.bootstrap, auto_offset_reset="none") as ours:
        ours.assign([client.TopicPartition(topic, 0)])
        ours.seek(client.TopicPartition(topic, 0), 999)
        with pytest.raises(client.ClientError) as raised:
            await ours.poll(10_000)
    assert_quoted(
        raised.value, "OFFSET_OUT_OF_RANGE. Choose an offset between the beginning and the end of the partition"
    )
    settings = {"bootstrap.servers": server.bootstrap, "group.id": topic, "auto.offset.reset": "error", "log_level": 0}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 999)])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert_quoted(
        message.error(), "fetch failed due to requested offset not available on the broker: Broker: Offset out of range"
    )
    aio = AIOKafkaConsumer(bootstrap_servers=server.bootstrap, auto_offset_reset="none")
    await aio.start()
    aio.assign([AioTopicPartition(topic, 0)])
    aio.seek(AioTopicPartition(topic, 0), 999)
    with pytest.raises(Exception, match="OffsetOutOfRangeError") as raised_there:
        await aio.getone()
    await aio.stop()
    assert_quoted(raised_there.value, "[Error 1] OffsetOutOfRangeError: {TopicPartition(topic='")


def test_a_second_broker_on_the_port_or_the_log_directory(server: Server, tmp_path: Path) -> None:
    if server.kind != "odradek":
        pytest.skip("the broker's own words")
    listeners = {"taken": f"PLAINTEXT://{server.bootstrap}", "free": "PLAINTEXT://127.0.0.1:0"}
    directories = {"taken": server.log_dir, "free": tmp_path}
    port = broker_error(listeners["taken"], directories["free"])
    assert_quoted(
        port.replace(server.bootstrap, "127.0.0.1:9092"), "PLAINTEXT://127.0.0.1:9092 (listeners): Address already"
    )
    locked = broker_error(listeners["free"], directories["taken"])
    assert_quoted(locked.replace(str(server.log_dir), "data"), "another broker is using the log directory data")


def broker_error(listeners: str, log_dirs: Path) -> str:
    """The output of a broker that cannot start."""
    overrides = [f"listeners={listeners}", f"log.dirs={log_dirs}"]
    options = [argument for override in overrides for argument in ("--override", override)]
    done = subprocess.run(
        [sys.executable, "-m", "odradek.broker", *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_every_symptom_leads_to_its_section() -> None:
    headings = {
        re.sub(r"[^\w -]", "", line.removeprefix("## ")).lower().replace(" ", "-")
        for line in PAGE.splitlines()
        if line.startswith("## ")
    }
    linked = re.findall(r"\]\(#([\w-]+)\)", PAGE)
    assert sorted(linked) == sorted(headings)
