"""Several workers of one machine as members of a cluster on etcd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.peers import etcd, odradek
from tests.peers.server import NotStartedError, Server
from tests.workers.machine import Machine
from tests.workers.records import create, produce, read

pytestmark = etcd.MARKS

NewMachine = Callable[[str, int], Machine]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with etcd.running(1) as members:
        yield members.endpoints[0].split("://")[-1]


@pytest.fixture
def machine(endpoint: str, tmp_path: Path) -> Iterator[NewMachine]:
    machines: list[Machine] = []

    def new(name: str, node_id: int) -> Machine:
        properties = {
            "metadata.etcd.endpoints": endpoint,
            "metadata.etcd.namespace": tmp_path.name,
            "node.id": str(node_id),
            "broker.session.timeout.ms": "2000",
        }
        machines.append(Machine(tmp_path / name, 2, properties))
        return machines[-1]

    yield new
    for each in machines:
        each.close()


def refusal(server: Server) -> str:
    with pytest.raises(NotStartedError):
        server.start(60)
    assert server.process.returncode == 1
    return server.printed()


def test_every_worker_is_a_member(machine: NewMachine) -> None:
    first = machine("first", 1).start()
    second = machine("second", 2).start()
    create(first.bootstrap, "t", 4)

    assert first.leaders("t") == second.leaders("t") == [1, 2, 1001, 1002]
    assert not (first.log_dir / "odradek-metadata.sqlite").exists()
    for partition in range(4):
        produce(second.bootstrap, "t", b"%d" % partition, partition=partition)
    first.kill(1)
    assert read(first.bootstrap, "t", range(4)) == [b"0", b"1", b"2", b"3"]
    assert first.server.stop() == second.server.stop() == 0


def test_a_node_id_that_is_taken_is_refused(machine: NewMachine, endpoint: str, tmp_path: Path) -> None:
    properties = {
        "metadata.etcd.endpoints": endpoint,
        "metadata.etcd.namespace": tmp_path.name,
        "node.id": "1001",
        "broker.session.timeout.ms": "60000",  # it lives, however busy the machine is
    }
    alone = odradek.prepare(tmp_path / "alone", properties).start()
    try:
        printed = refusal(machine("machine", 1).server)
        assert "node.id 1001 is in use by another broker, which is alive" in printed
        assert "Traceback" not in printed
    finally:
        alone.stop()
