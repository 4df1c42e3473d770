"""The broker as a process: how it ends, and what it refuses to start on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.peers import odradek
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.server import NotStartedError, Server

Start = Callable[..., Server]


@pytest.fixture(autouse=True)
def _ours_alone(kind: str) -> None:
    if kind != "odradek":
        pytest.skip("about our process")


def test_sigterm_ends_it_soon_and_cleanly_while_a_client_waits(start_server: Start) -> None:
    server = start_server()
    Confluent().produce(server.bootstrap, "t", [Outgoing(None, b"v")])

    def stop() -> None:
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 20, "a parked fetch does not hold it up"
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


def refusal(directory: Path, properties: dict[str, str]) -> str:
    """What a broker with these properties says when it refuses to start."""
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
