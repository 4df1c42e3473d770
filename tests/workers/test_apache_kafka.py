"""A log directory of Apache Kafka that Odradek spreads over workers, and gives back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.broker.storage.names import CLEAN_SHUTDOWN
from odradek.broker.workers.layout import SpreadRefusedError
from tests.peers import apache
from tests.peers.clients import Incoming, Outgoing
from tests.peers.clients.confluent import TIMEOUT, Confluent
from tests.peers.server import NotStartedError, Server
from tests.workers.hosts import Host

pytestmark = pytest.mark.java

TOPICS = ("t", "worker", "worker.1")


def _read(server: Server) -> list[list[Incoming]]:
    return [Confluent().consume(server.bootstrap, topic, count=9) for topic in TOPICS]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = apache.prepare(tmp_path)
    server.start()
    yield server
    server.kill()


async def test_kafka_refuses_the_directory_of_workers_until_they_are_empty(server: Server) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for created in admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS]).values():
        created.result(TIMEOUT)
    for topic in TOPICS:
        Confluent().produce(server.bootstrap, topic, [Outgoing(b"k", b"%d" % number) for number in range(9)])
    written = _read(server)
    server.stop()
    host = Host(server.log_dir)
    async with host.running(1):  # it makes topics of the partitions
        pass
    assert (await host.spread(3)).moved
    async with host.running(3):
        pass

    with pytest.raises(NotStartedError, match=r"Found directory \S+/(worker\.\d), '\1' is not in the form of"):
        server.start()

    assert not (server.log_dir / CLEAN_SHUTDOWN).exists(), "Kafka removes it before it reads the names"
    with pytest.raises(SpreadRefusedError, match="was not stopped cleanly: start and stop it first"):
        await host.spread(1)
    async with host.running(3):
        pass
    assert (await host.spread(1)).moved
    server.start()
    assert _read(server) == written
    assert not list(server.log_dir.glob("*-stray"))
