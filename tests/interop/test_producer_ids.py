"""A log directory goes from Apache Kafka to Odradek and back: no new idempotent producer gets the id of an old one.

The log stores producers by id, and each broker counts ids for itself. With an id that was used before, the first
batches of a new producer would be duplicates of old ones: acknowledged, but not in the log.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer as ConfluentProducer

from odradek.broker.metadata.store.sqlite import FILE_NAME
from odradek.broker.storage import open_log_dir
from odradek.client import Producer
from tests.peers import apache, odradek
from tests.peers.clients.confluent import TIMEOUT, Confluent
from tests.peers.server import Server

pytestmark = pytest.mark.java

TOPIC = "numbered"
PRODUCERS = 3


def by_librdkafka(server: Server, values: list[bytes]) -> None:
    """Send the values with a new idempotent producer, one batch for each."""
    producer = ConfluentProducer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for value in values:
        producer.produce(TOPIC, value, partition=0)
        assert producer.flush(TIMEOUT) == 0


async def by_the_bundled_client(server: Server, values: list[bytes]) -> None:
    async with Producer(server.bootstrap) as producer:
        for value in values:
            await (await producer.send(TOPIC, value, partition=0))


class Written:
    """The acknowledged values with their producer, in order."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def next(self) -> list[bytes]:
        values = [b"%d" % number for number in range(len(self.values), len(self.values) + 2)]
        self.values += values
        return values

    async def by_new_producers(self, server: Server) -> None:
        for _ in range(PRODUCERS):
            by_librdkafka(server, self.next())
            await by_the_bundled_client(server, self.next())

    def check(self, server: Server) -> None:
        found = Confluent().consume(server.bootstrap, TOPIC, count=len(self.values))
        assert [record.value for record in found] == self.values


def lose_metadata(log_dir: Path) -> None:
    for file in log_dir.glob(f"{FILE_NAME}*"):
        file.unlink()


def producer_ids(log_dir: Path) -> set[int]:
    with open_log_dir(log_dir) as directory:
        return {entry.producer_id for entry in directory.partitions[TOPIC, 0].producers}


async def test_new_producers_do_not_get_ids_of_the_other_broker(tmp_path: Path) -> None:
    """The servers in order: Kafka, stopped; Odradek, killed; Kafka, killed; Odradek without its metadata; Kafka."""
    kafka = apache.prepare(tmp_path / "kafka")
    ours = odradek.prepare(tmp_path / "ours", {"log.dirs": str(kafka.log_dir)})
    written = Written()
    try:
        for server, leave in (
            (kafka, Server.stop), (ours, Server.kill), (kafka, Server.kill), (ours, Server.stop), (kafka, Server.stop),
        ):  # fmt: skip
            server.start()
            await written.by_new_producers(server)
            written.check(server)
            leave(server)
            if leave is Server.kill and server is kafka:
                lose_metadata(kafka.log_dir)
    finally:
        for server in (kafka, ours):
            if hasattr(server, "process"):
                server.kill()
    ids = producer_ids(kafka.log_dir)
    assert len(ids) == 2 * PRODUCERS * 5, "each has one of its own"
    assert len({each for each in ids if each >= 1 << 40}) == 2 * PRODUCERS * 2
    assert "Traceback" not in ours.printed()
