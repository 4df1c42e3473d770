"""Consumer groups of other clients: they share, fail over, resume, and Kafka's tools describe and change them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.conftest import KINDS
from tests.peers import java
from tests.peers.availability import program
from tests.peers.group_member import CONSUMER_PROTOCOL, HEARTBEAT_MS, REMOTE_ASSIGNOR, SESSION_MS
from tests.peers.server import Server

PARTITIONS = 4
JAVA_ASSIGNORS = {
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
CASES = [
    ("confluent", "range"),
    ("confluent", "roundrobin"),
    ("confluent", "cooperative-sticky"),
    ("confluent", REMOTE_ASSIGNOR),
    ("aiokafka", "roundrobin"),
    ("aiokafka", "sticky"),
    ("kafka_python", "range"),
    ("kafka_python", "sticky"),
    ("kcat", "range"),
    # Each test starts two Java machines: only cases that no other test has.
    *(pytest.param("java", each, marks=pytest.mark.java) for each in ("sticky", "cooperative-sticky", REMOTE_ASSIGNOR)),
]
TIMEOUT = 60
"""Seconds until members must have read, or have their assignments."""
COORDINATOR_IS_COMING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
ATTEMPTS = 60_000
"""The pause between two requests for the state of a group; a response takes a millisecond."""


@pytest.fixture(scope="module")
def server(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with short session timeouts."""
    properties = {
        "group.min.session.timeout.ms": "1000",
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.session.timeout.ms": str(SESSION_MS),
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
        "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    }
    server = KINDS[kind](tmp_path_factory.mktemp("groups"), properties)
    server.start()
    yield server
    server.kill()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]


@pytest.fixture(scope="module")
def admin(server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


class Member:
    """A member in a process of its own, and the offsets that it has read, by partition, in order."""

    def __init__(self, command: list[str]) -> None:
        self.read: dict[int, list[int]] = {}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._heard = threading.Condition()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith("\n"):
                return  # killed in the middle of a line
            if numbers := re.findall(r"\d+", line):
                partition, offset = map(int, numbers)
                with self._heard:
                    self.read.setdefault(partition, []).append(offset)
                    self._heard.notify_all()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the offsets that were read meet the condition."""
        with self._heard:
            assert self._heard.wait_for(condition, TIMEOUT), self.read

    def has_read(self, partitions: int, up_to: int) -> bool:
        """Whether it has read so many partitions, each up to this offset (exclusive)."""
        return len(self.read) == partitions and all(offsets[-1] == up_to - 1 for offsets in self.read.values())

    def ends_with(self, partition: int, offsets: list[int]) -> bool:
        """Whether these are the last offsets that it has read of a partition, which it may have owned before."""
        return not offsets or self.read.get(partition, [])[-len(offsets) :] == offsets

    def end(self, *, kill: bool) -> None:
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.wait(30)
        self._thread.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start_member(bootstrap: str) -> Iterator[Callable[..., Member]]:
    members = []

    def start(client: str, group: str, topic: str, assignor: str) -> Member:
        member = Member(command(client, bootstrap, group, topic, assignor))
        members.append(member)
        return member

    yield start
    for member in members:
        member.end(kill=True)


def command(client: str, bootstrap: str, group: str, topic: str, assignor: str) -> list[str]:
    timeouts = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS, "auto.commit.interval.ms": 100}
    if client == "kcat":
        options = [f"-X{name}={value}" for name, value in timeouts.items()]
        options += [f"-Xpartition.assignment.strategy={assignor}", "-Xauto.offset.reset=earliest"]
        return [program("kcat", "kcat"), "-b", bootstrap, *options, "-u", "-q", "-f", r"%p %o\n", "-G", group, topic]
    if client == "java":
        if assignor == REMOTE_ASSIGNOR:
            settings = {**CONSUMER_PROTOCOL, "auto.commit.interval.ms": 100}
        else:
            settings = timeouts | {"partition.assignment.strategy": JAVA_ASSIGNORS[assignor]}
        options = [part for name, value in settings.items() for part in ("--command-property", f"{name}={value}")]
        prints = ["print.partition=true", "print.offset=true", "print.value=false"]
        options += [part for each in prints for part in ("--formatter-property", each)]
        return java.command(
            java.CONSOLE_CONSUMER,
            *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--from-beginning", *options),
        )
    return [sys.executable, "-m", "tests.peers.group_member", client, bootstrap, group, topic, assignor]


@pytest.fixture
def make_topic(admin: AdminClient, topic_name: str) -> str:
    admin.create_topics([NewTopic(topic_name, PARTITIONS, 1)])[topic_name].result(30)
    return topic_name


def produce(bootstrap: str, topic: str, each: int) -> None:
    """Write `each` records to every partition."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(each * PARTITIONS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def committed(admin: AdminClient, group: str) -> dict[int, int]:
    """The group's committed offsets by partition."""
    request = [ConsumerGroupTopicPartitions(group)]
    found = answer(lambda: admin.list_consumer_group_offsets(request)[group])
    return {row.partition: row.offset for row in found.topic_partitions}


def answer(ask: Callable[[], Any]) -> Any:
    """The response of the coordinator as soon as it is available: Apache Kafka's needs some time."""
    for _ in range(ATTEMPTS):
        try:
            return ask().result(30)
        except KafkaException as error:
            if error.args[0].code() not in COORDINATOR_IS_COMING:
                raise
    raise AssertionError("the coordinator does not come")


def wait_for_members(admin: AdminClient, group: str, count: int) -> list[Any]:
    """The members of the group as soon as it is stable and has so many, each with its share."""
    for _ in range(ATTEMPTS):
        described = answer(lambda: admin.describe_consumer_groups([group])[group])
        shares = [len(member.assignment.topic_partitions) for member in described.members]
        if described.state.name == "STABLE" and len(shares) == count and sum(shares) == PARTITIONS and all(shares):
            return list(described.members)
    raise AssertionError(f"{described.state} {described.members}")


def wait_for_commits(admin: AdminClient, group: str, offset: int) -> None:
    """Wait until the group has committed this offset in every partition: some clients commit at intervals."""
    for _ in range(ATTEMPTS):
        if committed(admin, group) == dict.fromkeys(range(PARTITIONS), offset):
            return
    raise AssertionError(committed(admin, group))


@pytest.mark.parametrize(("client", "assignor"), CASES)
def test_a_killed_member_is_replaced_at_its_committed_offsets(
    client: str,
    assignor: str,
    bootstrap: str,
    admin: AdminClient,
    make_topic: str,
    start_member: Callable[..., Member],
) -> None:
    topic, group = make_topic, f"group-of-{make_topic}"
    survivor, victim = (start_member(client, group, topic, assignor) for _ in range(2))
    wait_for_members(admin, group, 2)
    produce(bootstrap, topic, 50)
    survivor.wait_until(lambda: survivor.has_read(2, 50))
    victim.wait_until(lambda: victim.has_read(2, 50))
    assert survivor.read.keys() | victim.read.keys() == set(range(PARTITIONS))
    wait_for_commits(admin, group, 50)

    produce(bootstrap, topic, 200)
    victim.wait_until(lambda: any(offsets[-1] > 50 for offsets in victim.read.values()))
    victim.end(kill=True)
    last_commits = committed(admin, group)
    expected = {partition: list(range(250)) for partition in survivor.read}
    expected |= {partition: list(range(last_commits[partition], 250)) for partition in victim.read}
    survivor.wait_until(lambda: all(survivor.ends_with(*share) for share in expected.items()))

    if client != "java":  # one more Java machine would show nothing new
        start_member(client, group, topic, assignor)
        wait_for_members(admin, group, 2)


def read(bootstrap: str, group: str, topic: str, count: int) -> list[tuple[int, int]]:
    """Partition and offset of `count` records that a new member of the group reads and commits before it leaves."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
        }
    )
    consumer.subscribe([topic])
    found: list[tuple[int, int]] = []
    while len(found) < count:
        message = consumer.poll(TIMEOUT)
        assert message is not None, found
        assert message.error() is None, message.error()
        found.append((message.partition(), message.offset()))
        consumer.commit(message=message, asynchronous=False)
    consumer.close()
    return found


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_group_resumes_after_a_restart(end: str, start_server: Callable[..., Server], topic_name: str) -> None:
    server = start_server({"group.min.session.timeout.ms": "1000"})
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(topic_name, PARTITIONS, 1)])[topic_name].result(30)
    produce(server.bootstrap, topic_name, 25)
    before = read(server.bootstrap, "resuming", topic_name, 60)
    offsets = committed(admin, "resuming")

    getattr(server, end)()
    server.start()

    assert committed(AdminClient({"bootstrap.servers": server.bootstrap}), "resuming") == offsets
    after = read(server.bootstrap, "resuming", topic_name, 40)
    assert sorted(before + after) == [(partition, offset) for partition in range(PARTITIONS) for offset in range(25)]


def group_command(bootstrap: str, *arguments: str) -> list[list[str]]:
    """The words of each line of Kafka's tool."""
    done = java.run(java.CONSUMER_GROUP_COMMAND, "--bootstrap-server", bootstrap, *arguments)
    return [line.split() for line in done.stdout.splitlines() if line.strip()]


@pytest.mark.java
def test_kafkas_tool_lists_describes_resets_and_deletes(
    bootstrap: str, admin: AdminClient, make_topic: str, start_member: Callable[..., Member]
) -> None:
    topic, group = make_topic, f"group-of-{make_topic}"
    produce(bootstrap, topic, 10)
    member = start_member("confluent", group, topic, "range")
    member.wait_until(lambda: member.has_read(PARTITIONS, 10))
    wait_for_commits(admin, group, 10)

    assert [group, "Classic", "Stable"] in group_command(bootstrap, "--list", "--state", "--type")
    rows = [line for line in group_command(bootstrap, "--describe", "--group", group) if line[0] == group]
    assert sorted((line[2], *line[3:6]) for line in rows) == [
        (str(partition), "10", "10", "0") for partition in range(PARTITIONS)
    ]

    member.end(kill=False)
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "4", "--execute")
    assert sorted(line[2:] for line in group_command(bootstrap, *reset) if line[0] == group) == [
        [str(partition), "4"] for partition in range(PARTITIONS)
    ]
    assert committed(admin, group) == dict.fromkeys(range(PARTITIONS), 4)
    group_command(bootstrap, "--delete-offsets", "--group", group, "--topic", topic)
    assert committed(admin, group) == {}
    group_command(bootstrap, "--delete", "--group", group)
    assert group not in {listed.group_id for listed in admin.list_consumer_groups().result(30).valid}


def json_values(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a text without separators."""
    found = []
    while text := text.lstrip():
        value, end = json.JSONDecoder().raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


@pytest.mark.java
def test_kafkas_console_consumer_reads_the_records_of_groups(
    bootstrap: str, admin: AdminClient, topic_name: str
) -> None:
    admin.create_topics([NewTopic(topic_name, PARTITIONS, 1)])[topic_name].result(30)
    produce(bootstrap, topic_name, 5)
    read(bootstrap, f"group-of-{topic_name}", topic_name, 5 * PARTITIONS)

    def formatted(formatter: str) -> list[dict[str, Any]]:
        done = java.run(
            java.CONSOLE_CONSUMER,
            *("--bootstrap-server", bootstrap, "--topic", "__consumer_offsets", "--from-beginning"),
            *("--formatter", f"org.apache.kafka.tools.consumer.{formatter}", "--timeout-ms", "3000"),
        )
        return json_values(done.stdout)

    group = f"group-of-{topic_name}"
    commits = [each for each in formatted("OffsetsMessageFormatter") if each["key"]["data"]["group"] == group]
    last = {each["key"]["data"]["partition"]: each["value"] for each in commits}
    offsets = {partition: value["data"]["offset"] for partition, value in last.items()}
    assert offsets == dict.fromkeys(range(PARTITIONS), 5)
    assert {value["version"] for value in last.values()} == {4}
    states = [each for each in formatted("GroupMetadataMessageFormatter") if each["key"]["data"]["group"] == group]
    assert [each["value"]["data"]["generation"] for each in states] == [0, 1, 2]
    assert [len(each["value"]["data"]["members"]) for each in states] == [0, 1, 0]
