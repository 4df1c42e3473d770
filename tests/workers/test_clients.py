"""Clients of two workers of one machine: each finds its partitions, its coordinators and its records."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster import members, transactional, writers
from tests.cluster.comparison import read
from tests.cluster.writers import PARTITIONS, Writer
from tests.peers import kcat
from tests.workers.machine import Machine

pytestmark = [
    pytest.mark.interop,
    pytest.mark.java,
    # kafka-python 3.0 leaves the sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings(r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("workers"), 2)
    try:
        yield machine.start()
        assert machine.server.stop() == 0
        assert "Traceback" not in machine.server.printed()
    finally:
        machine.close()
        gc.collect()  # what kafka-python has left


def create(workers: Machine, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": workers.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)
    assert workers.leaders(topic) == [1, 1001, 1]
    return topic


@pytest.mark.parametrize("at", [0, 1])
def test_every_client_writes_and_reads_whichever_worker_it_asks_first(
    workers: Machine, at: int, tmp_path: Path
) -> None:
    bootstrap = f"127.0.0.1:{workers.first_port + at}"
    each_writer: list[Writer] = [
        writers.Librdkafka(bootstrap, create(workers, f"librdkafka-{at}")),
        writers.KafkaPython(bootstrap, create(workers, f"kafka-python-{at}")),
        writers.Aiokafka(bootstrap, create(workers, f"aiokafka-{at}")),
        writers.Java(bootstrap, create(workers, f"java-{at}"), tmp_path),
    ]
    kinds = (members.Librdkafka, members.KafkaPython, members.Aiokafka, members.Java)
    with ExitStack() as stack:
        for writer in each_writer:
            stack.enter_context(writer)
        for writer in each_writer:
            writer.await_progress()
        for kind, writer in zip(kinds, each_writer, strict=True):
            member = stack.enter_context(kind(bootstrap, f"group-{writer.topic}", writer.topic))
            member.await_commits(dict.fromkeys(range(PARTITIONS), 10))
    for writer in each_writer:
        found = read(bootstrap, writer.topic)
        assert {value: found.get(value) for value in writer.acknowledged} == writer.acknowledged


def test_transactions_span_workers(workers: Machine) -> None:
    for number, kind in enumerate((transactional.Librdkafka, transactional.Bundled)):
        topic = create(workers, f"transactions-{number}")
        with kind(workers.bootstrap, topic, f"transactional-{number}") as producer:
            producer.write(b"committed")
            producer.commit()
            producer.write(b"aborted")
            producer.abort()
        assert transactional.committed(workers.bootstrap, topic) == [[b"committed"]] * PARTITIONS


def test_kcat_lists_both_workers_and_writes_to_both(workers: Machine) -> None:
    topic = create(workers, "kcat")
    for partition in range(PARTITIONS):
        kcat.run(workers.bootstrap, "-P", "-t", topic, "-p", str(partition), stdin=b"from kcat %d" % partition)
    listed = kcat.run(workers.bootstrap, "-L")
    assert "broker 1 at" in listed
    assert "broker 1001 at" in listed
    assert sorted(read(workers.bootstrap, topic)) == [b"from kcat %d" % each for each in range(PARTITIONS)]
