"""One of two log directories fills up while clients produce, on a file system that is really full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers import odradek
from tests.peers.clients.confluent import TIMEOUT, Confluent
from tests.peers.server import Server

pytestmark = pytest.mark.crash

PARTITIONS = 2
VALUE = b"x" * 10_000


def mount(path: Path, size: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "odradek-test", str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small"
    path.mkdir()
    if not mount(path, "4m"):
        pytest.skip("mounting a file system of its own takes rights that this run lacks")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def server(tmp_path: Path, small_disk: Path) -> Iterator[Server]:
    prepared = odradek.prepare(tmp_path, {"log.dirs": f"{tmp_path}/large,{small_disk}"})
    prepared.start()
    yield prepared
    prepared.kill()
    assert "Traceback" not in prepared.printed(), prepared.printed()[-8000:]


def produce(server: Server, partition: int, count: int) -> tuple[list[int], list[KafkaError]]:
    """The acknowledged offsets, and the errors of the other records."""
    offsets: list[int] = []
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            offsets.append(message.offset())
        else:
            errors.append(error)

    producer = Producer({"bootstrap.servers": server.bootstrap, "message.timeout.ms": 3000, "acks": "all"})
    for _ in range(count):
        producer.produce("t", VALUE, partition=partition, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(TIMEOUT) == 0
    return offsets, errors


def test_a_full_disk_refuses_records_and_accepts_them_again_after_space_is_freed(
    server: Server, small_disk: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(TIMEOUT)
    (directory,) = small_disk.glob("t-*")
    full = int(directory.name.rpartition("-")[2])
    other = 1 - full

    acknowledged, errors = produce(server, full, 1000)
    assert acknowledged, "some found room"
    assert errors, "not all did"
    assert produce(server, other, 100) == (list(range(100)), [])
    assert f"log directory {small_disk} is offline" in server.printed()
    assert server.process.poll() is None

    server.kill()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    server.start()
    found = Confluent().consume(server.bootstrap, "t", partition=full, count=len(acknowledged))
    assert [record.offset for record in found] == acknowledged
    more, errors = produce(server, full, 10)
    assert (len(more), errors) == (10, [])
