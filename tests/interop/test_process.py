"""The broker as a process: its end, and errors at its start."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.peers import odradek
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.server import NotStartedError, Server

Start = Callable[..., Server]


@pytest.fixture(autouse=True)
def _ours_alone(kind: str) -> None:
    if kind != "odradek":
        pytest.skip("about our process")


def test_sigterm_ends_the_process_cleanly_while_a_client_waits(start_server: Start) -> None:
    server = start_server()
    Confluent().produce(server.bootstrap, "t", [Outgoing(None, b"v")])

    def stop() -> None:
        assert server.stop() == 0, "a parked fetch does not hold it up"
        server.start()
        Confluent().produce(server.bootstrap, "t", [Outgoing(None, b"after")])

    received = Confluent().consume(server.bootstrap, "t", count=2, once_positioned=stop)
    assert [record.value for record in received] == [b"v", b"after"]


def test_a_restart_keeps_topics_records_and_their_ids(start_server: Start) -> None:
    server = start_server()
    Confluent().produce(server.bootstrap, "kept", [Outgoing(b"k", b"v")] * 10, idempotent=True)
    metadata = (server.log_dir / "kept-0" / "partition.metadata").read_bytes()
    assert server.stop() == 0
    assert (server.log_dir / ".kafka_cleanshutdown").exists()
    server.start()
    assert len(Confluent().consume(server.bootstrap, "kept", count=10)) == 10
    assert (server.log_dir / "kept-0" / "partition.metadata").read_bytes() == metadata


@pytest.fixture
def with_few_descriptors(tmp_path: Path) -> Iterator[Server]:
    server = odradek.prepare(tmp_path / "few", {"num.partitions": "40"})
    server.command = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *server.command]
    yield server.start()
    server.kill()


def page(server: Server, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}{path}", timeout=30) as response:
        return bytes(response.read())


def wait_for(server: Server, line: str) -> None:
    deadline = time.monotonic() + 30
    while line not in server.printed():
        assert time.monotonic() < deadline, server.printed()


def test_more_idle_connections_than_descriptors_do_not_affect_served_clients(with_few_descriptors: Server) -> None:
    server = with_few_descriptors
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": server.bootstrap})

    def produce(count: int) -> None:
        for number in range(count):
            producer.produce(
                "t", b"%d" % number, partition=number % 40, on_delivery=lambda error, _: error and failed.append(error)
            )
        assert producer.flush(30) == 0

    Confluent().produce(server.bootstrap, "t", [Outgoing(None, b"makes the topic")])
    produce(40)
    with ExitStack() as stack:
        for _ in range(600):
            idle = stack.enter_context(socket.socket())
            idle.setblocking(False)
            idle.connect_ex(("127.0.0.1", server.port))
        wait_for(server, "accepting paused")
        produce(2_000)
        assert page(server, "/healthz") == b"ok\n"
        assert b"kafka_server" in page(server, "/metrics")
    wait_for(server, "accepting resumed")
    Confluent().produce(server.bootstrap, "t", [Outgoing(None, b"after")])
    assert (failed, server.printed().count("accepting paused")) == ([], 1)
    assert server.stop() == 0
    assert (server.log_dir / ".kafka_cleanshutdown").exists()


def refusal(directory: Path, properties: dict[str, str]) -> str:
    """The error of a broker with these properties at its start."""
    server = odradek.prepare(directory, properties)
    with pytest.raises(NotStartedError) as refused:
        server.start()
    assert server.process.returncode != 0
    assert "Traceback" not in server.printed(), server.printed()
    return str(refused.value)


def test_a_second_broker_on_the_same_directory_is_refused(start_server: Start, tmp_path: Path) -> None:
    running = start_server()
    assert str(running.log_dir) in refusal(tmp_path / "second", {"log.dirs": str(running.log_dir)})


def test_another_nodes_directory_is_refused_with_both_ids(start_server: Start, tmp_path: Path) -> None:
    server = start_server()
    server.stop()
    said = refusal(tmp_path / "other", {"log.dirs": str(server.log_dir), "node.id": "42"})
    assert "42" in said
    assert "1" in said.replace("42", "")


def test_an_unknown_property_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    assert "message.max.bytes" in refusal(tmp_path, {"mesage.max.bytes": "1"})


def test_a_taken_port_is_named(start_server: Start, tmp_path: Path) -> None:
    running = start_server()
    said = refusal(tmp_path / "second", {"listeners": f"PLAINTEXT://127.0.0.1:{running.port}"})
    assert str(running.port) in said
