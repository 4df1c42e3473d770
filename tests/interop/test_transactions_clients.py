"""Transactions of other clients: commit, abort, fence, time out, copy with offsets, and hold back read_committed.

Java's client speaks the second version of the protocol where level 2 of `transaction.version` is finalized, and the
first version at levels 1 and 0. The other clients always speak the first; one of them is enough at the lower levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import KINDS
from tests.interop.test_groups import answer
from tests.peers import features
from tests.peers.java_machine import JavaMachine
from tests.peers.server import Server
from tests.peers.transactional import FencedError, TransactionalClient, TransactionalProducer, TransactionError
from tests.peers.transactional.aiokafka import Aiokafka
from tests.peers.transactional.confluent import Confluent
from tests.peers.transactional.java import Java
from tests.peers.transactional.kafka_python import KafkaPython

pytestmark = pytest.mark.java

CASES = [
    *((2, name) for name in ("java", "confluent", "aiokafka", "kafka_python")),
    *((1, name) for name in ("java", "aiokafka")),
    (0, "java"),
]
"""The finalized level of `transaction.version`, and a client."""
SHORT_MS = 1000
"""The time-out of a transaction that is to time out."""

Make = Callable[..., TransactionalProducer]


@pytest.fixture(scope="module")
def server(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that looks for transactions that have timed out ten times a second."""
    properties = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
        "group.initial.rebalance.delay.ms": "0",
    }
    server = KINDS[kind](tmp_path_factory.mktemp("transactions"), properties)
    server.start()
    yield server
    server.kill()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]


@pytest.fixture(scope="module")
def admin(server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


@pytest.fixture(scope="module")
def machine() -> Iterator[JavaMachine]:
    with JavaMachine() as machine:
        yield machine


@pytest.fixture(scope="module", params=CASES, ids=[f"{name} at level {level}" for level, name in CASES])
def client(server: Server, machine: JavaMachine, request: pytest.FixtureRequest) -> TransactionalClient:
    level, name = request.param
    features.set_level(server, features.TRANSACTION_VERSION, level)
    clients: dict[str, TransactionalClient] = {
        "java": Java(machine), "confluent": Confluent(), "aiokafka": Aiokafka(), "kafka_python": KafkaPython()
    }  # fmt: skip
    return clients[name]


@pytest.fixture
def make(client: TransactionalClient, bootstrap: str, topic_name: str) -> Iterator[Make]:
    """Make producers with the test's transactional id, and close them at the end."""
    made: list[TransactionalProducer] = []

    def make(timeout_ms: int = 60_000) -> TransactionalProducer:
        made.append(client.producer(bootstrap, topic_name, timeout_ms))
        return made[-1]

    yield make
    for producer in made:
        producer.close()


def test_committed_records_show_and_aborted_ones_do_not(
    client: TransactionalClient, make: Make, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=2)
    producer = make()
    for number in range(4):
        producer.begin()
        producer.send(topic, b"a%d" % number, b"b%d" % number)
        producer.send(topic, b"c%d" % number, partition=1)
        if number % 2:
            producer.abort()
        else:
            producer.commit()

    assert client.committed(bootstrap, topic) == [b"a0", b"b0", b"a2", b"b2"]
    assert client.committed(bootstrap, topic, 1) == [b"c0", b"c2"]


def test_a_new_producer_fences_the_old_one_and_aborts_its_transaction(
    client: TransactionalClient, make: Make, bootstrap: str, topic: str
) -> None:
    zombie = make()
    zombie.begin()
    zombie.send(topic, b"of the zombie")

    successor = make()
    successor.begin()
    successor.send(topic, b"of its successor")
    with pytest.raises(FencedError):
        zombie.commit()
    successor.commit()

    assert client.committed(bootstrap, topic) == [b"of its successor"]


def test_a_transaction_that_takes_too_long_is_aborted(
    client: TransactionalClient, make: Make, bootstrap: str, topic: str
) -> None:
    slow = make(SHORT_MS)
    slow.begin()
    slow.send(topic, b"too late")
    other = client.producer(bootstrap, f"{topic}-other")
    other.begin()
    other.send(topic, b"in time")
    other.commit()
    other.close()

    while client.committed(bootstrap, topic) != [b"in time"]:
        continue  # until the coordinator has ended the older transaction, which holds back this one
    with pytest.raises(TransactionError):
        slow.commit()
    assert client.committed(bootstrap, topic) == [b"in time"]


def test_an_open_transaction_holds_back_the_records_after_it(
    client: TransactionalClient, make: Make, bootstrap: str, topic: str
) -> None:
    opened = make()
    opened.begin()
    opened.send(topic, b"first")
    later = client.producer(bootstrap, f"{topic}-later")
    later.begin()
    later.send(topic, b"second")
    later.commit()
    later.close()

    assert client.committed(bootstrap, topic) == []
    opened.commit()
    assert client.committed(bootstrap, topic) == [b"first", b"second"]


def test_a_copy_and_its_offsets_are_committed_or_aborted_together(
    client: TransactionalClient, make: Make, bootstrap: str, admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    source, target = make_topic(), make_topic()
    writer = client.producer(bootstrap, f"{source}-writer")
    writer.begin()
    writer.send(source, b"0", b"1", b"2")
    writer.commit()
    writer.close()
    member, producer = client.member(bootstrap, f"{source}-group", source), make()

    read = member.read(2)
    for end in (producer.abort, producer.commit):
        producer.begin()
        producer.send(target, *(each.value for each in read))
        producer.send_offsets(member, {(source, 0): read[-1].offset + 1})
        end()
        assert client.committed(bootstrap, target) == ([] if end == producer.abort else [b"0", b"1"])
    member.close()

    assert committed_offset(admin, f"{source}-group", source) == 2
    successor = client.member(bootstrap, f"{source}-group", source)
    assert [each.value for each in successor.read(1)] == [b"2"]
    successor.close()


def committed_offset(admin: AdminClient, group: str, topic: str) -> int:
    request = [ConsumerGroupTopicPartitions(group)]
    found = answer(lambda: admin.list_consumer_group_offsets(request)[group])
    [row] = found.topic_partitions
    assert row.topic == topic
    offset: int = row.offset
    return offset
