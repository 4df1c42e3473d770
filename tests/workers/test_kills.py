"""Workers and their supervisor, killed and stopped while clients write: nothing that was acknowledged is lost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster import members, writers
from tests.cluster.brokers import wait_until
from tests.cluster.comparison import read
from tests.cluster.writers import PARTITIONS, Writer
from tests.workers.machine import Machine, is_running

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

KILLS = 20
SUPERVISOR = -1


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "machine", 2)
    try:
        yield machine.start()
    finally:
        machine.close()


def create(workers: Machine, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": workers.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)
    return topic


def check(workers: Machine, *each: Writer) -> None:
    for writer in each:
        found = read(workers.bootstrap, writer.topic)
        assert {value: found.get(value) for value in writer.acknowledged} == writer.acknowledged


def test_nothing_acknowledged_is_lost_when_any_of_the_processes_is_killed(workers: Machine) -> None:
    victims = [0, 1, SUPERVISOR] * (KILLS // 3) + [0, 1][: KILLS % 3]
    random.Random(24).shuffle(victims)
    with ExitStack() as stack:
        each: list[Writer] = [
            stack.enter_context(writers.Librdkafka(workers.bootstrap, create(workers, "librdkafka"))),
            stack.enter_context(writers.Aiokafka(workers.bootstrap, create(workers, "aiokafka"))),
        ]
        member = stack.enter_context(members.Librdkafka(workers.bootstrap, "readers", each[0].topic))
        for victim in victims:
            for writer in each:
                writer.await_progress(1)
            if victim == SUPERVISOR:
                pids = workers.pids().values()
                workers.server.kill()
                wait_until(lambda: not any(map(is_running, pids)), workers.describe)  # noqa: B023
                workers.start()
            else:
                workers.kill(victim)
        for writer in each:
            writer.await_progress()
        member.await_commits({partition: len(each[0].acknowledged) // PARTITIONS for partition in range(PARTITIONS)})
    check(workers, *each)
    assert len(victims) == KILLS
    assert workers.server.stop() == 0
    assert "Traceback" not in workers.server.printed()


def test_a_stop_under_load_is_no_error_for_anybody(workers: Machine) -> None:
    with writers.Librdkafka(workers.bootstrap, create(workers, "librdkafka")) as writer:
        for _ in range(2):
            writer.await_progress()
            assert workers.server.stop() == 0
            assert all((workers.log_dir_of(worker) / ".kafka_cleanshutdown").exists() for worker in range(2))
            workers.start()
        writer.await_progress()
    check(workers, writer)
    assert workers.server.stop() == 0
    for line in workers.server.printed().splitlines():
        assert " ERROR " not in line
        assert " WARNING " not in line
