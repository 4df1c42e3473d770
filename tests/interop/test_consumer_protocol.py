"""Groups of the consumer protocol (KIP-848) with librdkafka and Java's consumer: they share, fail over, migrate."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.interop.conftest import KINDS
from tests.peers import java
from tests.peers.server import Server

PARTITIONS = 4
TIMEOUT = 60
"""Seconds until members must have their assignments."""


PROPERTIES = {
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
}
"""Properties of a server with frequent heartbeats and short sessions."""


@pytest.fixture(scope="module")
def server(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = KINDS[kind](tmp_path_factory.mktemp("consumer-protocol"), PROPERTIES)
    server.start()
    yield server
    server.kill()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]


@pytest.fixture(scope="module")
def admin(server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


@pytest.fixture
def topic(admin: AdminClient, topic_name: str) -> str:
    admin.create_topics([NewTopic(topic_name, PARTITIONS, 1)])[topic_name].result(30)
    return topic_name


def produce(bootstrap: str, topic: str, count: int, partitions: int = PARTITIONS) -> None:
    """Write `count` records to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for partition in range(partitions):
        for number in range(count):
            producer.produce(topic, f"{partition} {number}".encode(), partition=partition)
    assert producer.flush(TIMEOUT) == 0


@contextmanager
def member(bootstrap: str, group: str, *topics: str, **properties: str | bool) -> Iterator[Consumer]:
    """A consumer of librdkafka; properties with underscores for dots."""
    written = {name.replace("_", "."): value for name, value in properties.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **written,
        }
    )
    consumer.subscribe(list(topics))
    try:
        yield consumer
    finally:
        consumer.close()


def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> None:
    """Poll the consumers until the condition holds."""
    for _ in range(TIMEOUT * 10 // len(consumers)):
        if condition():
            return
        for consumer in consumers:
            message = consumer.poll(0.1)
            assert message is None or message.error() is None, message.error()
    raise AssertionError(f"not within {TIMEOUT} s: {[consumer.assignment() for consumer in consumers]}")


def share(consumer: Consumer) -> int:
    return len(consumer.assignment())


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_share_and_take_over(bootstrap: str, topic: str, assignor: str) -> None:
    with member(bootstrap, topic, topic, group_remote_assignor=assignor) as one:
        poll_until(lambda: share(one) == 4, one)
        with member(bootstrap, topic, topic, group_remote_assignor=assignor) as other:
            poll_until(lambda: share(one) == share(other) == 2, one, other)
            owned = {(each.partition) for consumer in (one, other) for each in consumer.assignment()}
            assert owned == set(range(PARTITIONS))
        poll_until(lambda: share(one) == 4, one)


def test_a_group_continues_from_its_committed_offsets(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 10)
    total = 10 * PARTITIONS
    with member(bootstrap, topic, topic) as first:
        read = first.consume(total, TIMEOUT)
        first.commit(asynchronous=False)
    produce(bootstrap, topic, 1)
    with member(bootstrap, topic, topic) as second:
        again = second.consume(PARTITIONS, TIMEOUT)

    offsets = sorted((each.partition(), each.offset()) for each in read)
    assert offsets == [(partition, offset) for partition in range(4) for offset in range(10)]
    assert sorted((each.partition(), each.offset()) for each in again) == [(partition, 10) for partition in range(4)]


def test_members_continue_after_their_broker_was_killed(start_server: Callable[..., Server], topic_name: str) -> None:
    server = start_server(PROPERTIES)
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(topic_name, PARTITIONS, 1)])[topic_name].result(30)
    produce(server.bootstrap, topic_name, 5)
    with (
        member(server.bootstrap, "outliving", topic_name) as one,
        member(server.bootstrap, "outliving", topic_name) as other,
    ):
        poll_until(lambda: share(one) == share(other) == 2, one, other)
        server.kill()
        server.start()
        produce(server.bootstrap, topic_name, 1)
        last: dict[int, int] = {}

        def have_read_all() -> bool:
            for consumer in (one, other):
                last.update({message.partition(): message.offset() for message in consumer.consume(10, 0.1)})
            return last == dict.fromkeys(range(PARTITIONS), 5)

        assert any(have_read_all() for _ in range(TIMEOUT * 5)), last
        poll_until(lambda: share(one) == share(other) == 2, one, other)


def test_the_broker_evaluates_a_regular_expression(bootstrap: str, admin: AdminClient, topic: str) -> None:
    # New topics are found after ten seconds; the transcripts of the state machine test that.
    admin.create_topics([NewTopic(f"{topic}-more", 2, 1)])[f"{topic}-more"].result(30)
    with member(bootstrap, topic, f"^{topic}.*") as consumer:
        poll_until(lambda: share(consumer) == 6, consumer)


def test_new_partitions_are_assigned(bootstrap: str, admin: AdminClient, topic: str) -> None:
    with member(bootstrap, topic, topic) as consumer:
        poll_until(lambda: share(consumer) == 4, consumer)
        admin.create_partitions([NewPartitions(topic, 6)])[topic].result(30)
        poll_until(lambda: share(consumer) == 6, consumer)


def test_a_static_member_that_restarts_keeps_its_partitions(bootstrap: str, topic: str) -> None:
    with member(bootstrap, topic, topic) as dynamic:
        with member(bootstrap, topic, topic, group_instance_id="static") as static:
            poll_until(lambda: share(static) == share(dynamic) == 2, static, dynamic)
            before = sorted(each.partition for each in static.assignment())
        with member(bootstrap, topic, topic, group_instance_id="static") as static:
            poll_until(lambda: share(static) == 2, static, dynamic)
            assert sorted(each.partition for each in static.assignment()) == before
            assert share(dynamic) == 2


def test_a_classic_group_migrates_to_the_consumer_protocol_and_back(
    bootstrap: str, admin: AdminClient, topic: str
) -> None:
    classic = {
        "group_protocol": "classic",
        "partition_assignment_strategy": "cooperative-sticky",
        "session_timeout_ms": "6000",
        "heartbeat_interval_ms": "300",
    }
    with member(bootstrap, topic, topic, **classic) as old:
        poll_until(lambda: share(old) == 4, old)
        assert _type_of(admin, topic) == "CLASSIC"
        with member(bootstrap, topic, topic) as new:
            poll_until(lambda: share(old) == share(new) == 2, old, new)
            assert _type_of(admin, topic) == "CONSUMER"
        poll_until(lambda: share(old) == 4, old)
        assert _type_of(admin, topic) == "CLASSIC"


def _type_of(admin: AdminClient, group: str) -> str:
    (listing,) = [each for each in admin.list_consumer_groups().result(30).valid if each.group_id == group]
    name: str = listing.type.name
    return name


@pytest.mark.java
def test_javas_consumer_reads_and_its_tool_describes(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 25)
    printed = _console_consumer(bootstrap, topic, "--max-messages", "100")
    assert sorted(printed) == sorted(f"{partition} {number}" for partition in range(4) for number in range(25))

    produce(bootstrap, topic, 1)
    described = _groups(bootstrap, "--describe", "--group", topic)
    rows = re.findall(rf"^{re.escape(topic)} +{re.escape(topic)} +(\d) +(\d+) +(\d+) +(\d+)", described, re.MULTILINE)
    assert sorted(rows) == [(str(partition), "25", "26", "1") for partition in range(4)]
    assert re.search(rf"{re.escape(topic)} +\S+ +\(1\) +uniform +Empty +\d+ +\d+ +0", _state(bootstrap, topic))
    assert re.search(rf"{re.escape(topic)} +Consumer", _groups(bootstrap, "--list", "--type"))


@pytest.mark.java
def test_javas_tool_describes_members_of_a_live_group(bootstrap: str, topic: str) -> None:
    with member(bootstrap, topic, topic, client_id="reader") as consumer:
        poll_until(lambda: share(consumer) == 4, consumer)
        described = _groups(bootstrap, "--describe", "--group", topic, "--members", "--verbose")
        state = _state(bootstrap, topic)
    assert re.search(rf"reader +4 +\d+ +{re.escape(topic)}:0,1,2,3 ", described), described
    assert re.search(r"uniform +Stable +\d+ +\d+ +1", state), state


@pytest.mark.java
def test_a_group_of_javas_and_librdkafkas_members_shares(bootstrap: str, topic: str) -> None:
    command = java.command(java.CONSOLE_CONSUMER, *_console_options(bootstrap, topic))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with member(bootstrap, topic, topic) as consumer:
            poll_until(lambda: share(consumer) == 2, consumer)
            process.kill()
            poll_until(lambda: share(consumer) == 4, consumer)
    finally:
        process.kill()
        process.wait(30)


def _console_options(bootstrap: str, topic: str) -> list[str]:
    options = ["--bootstrap-server", bootstrap, "--topic", topic, "--group", topic, "--from-beginning"]
    return [*options, "--command-property", "group.protocol=consumer"]


def _console_consumer(bootstrap: str, topic: str, *options: str) -> list[str]:
    arguments = [*_console_options(bootstrap, topic), "--timeout-ms", "30000", *options]
    return java.run(java.CONSOLE_CONSUMER, *arguments, timeout=120).stdout.splitlines()


def _groups(bootstrap: str, *options: str) -> str:
    return java.run(java.CONSUMER_GROUP_COMMAND, "--bootstrap-server", bootstrap, *options, timeout=120).stdout


def _state(bootstrap: str, group: str) -> str:
    return _groups(bootstrap, "--describe", "--group", group, "--state", "--verbose")
