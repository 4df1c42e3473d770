"""The supervisor of several workers: what it starts, restarts and ends, as its user sees it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

import pytest

from odradek.broker.metadata.store.shared.server import FILE_NAME as SOCKET
from odradek.broker.metadata.store.sqlite import FILE_NAME as METADATA
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.cluster.brokers import ask, wait_until
from tests.peers import odradek
from tests.peers.server import NotStartedError, Server
from tests.workers.machine import Machine, Probe, is_running
from tests.workers.records import create, produce, read

pytestmark = pytest.mark.process

GOLDEN = Path(__file__).resolve().parents[1] / "storage" / "golden_dirs"
CLEAN = ".kafka_cleanshutdown"

NewMachine = Callable[..., Machine]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[NewMachine]:
    machines: list[Machine] = []

    def new(count: int = 2, properties: Mapping[str, str] = {}) -> Machine:
        machines.append(Machine(tmp_path / "machine", count, properties))
        return machines[-1]

    yield new
    for each in machines:
        each.close()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Callable[[Path], Server]]:
    servers: list[Server] = []

    def new(log_dir: Path) -> Server:
        servers.append(odradek.prepare(tmp_path / "alone", {"log.dirs": str(log_dir)}))
        return servers[-1]

    yield new
    for each in servers:
        if each.is_alive:
            each.kill()


def output_of_start(server: Server) -> str:
    """What a server prints that does not start."""
    with pytest.raises(NotStartedError):
        server.start(60)
    assert server.process.returncode == 1
    return server.printed()


def test_each_worker_is_a_broker_and_a_signal_stops_all_of_them(machine: NewMachine) -> None:
    workers = machine(3).start()
    pids = workers.pids()

    port = workers.first_port
    brokers = {1: ("127.0.0.1", port), 1001: ("127.0.0.1", port + 1), 2001: ("127.0.0.1", port + 2)}
    assert [workers.addresses(worker) for worker in range(3)] == [brokers] * 3
    assert workers.server.stop() == 0
    assert not any(map(is_running, pids.values()))
    assert all((workers.log_dir_of(worker) / CLEAN).exists() for worker in range(3))
    assert not (workers.log_dir / SOCKET).exists()
    assert "WARNING" not in workers.server.printed()
    assert "ERROR" not in workers.server.printed()


@pytest.mark.parametrize("worker", [0, 1])
def test_a_killed_worker_is_started_again_and_the_pages_say_so_meanwhile(machine: NewMachine, worker: int) -> None:
    workers = machine().start()
    other = 1 - worker
    killed = workers.pids()[worker]
    assert workers.probe("healthz", other) == Probe(200, "ok\n")
    os.kill(workers.server.process.pid, signal.SIGSTOP)  # so that it is not started again yet
    try:
        os.kill(killed, signal.SIGKILL)
        os.kill(workers.pids()[other], 0)
    finally:
        os.kill(workers.server.process.pid, signal.SIGCONT)

    wait_until(lambda: workers.probe("readyz", other).status == 503, workers.describe)
    wait_until(workers.is_ready, workers.describe)

    assert workers.pids()[worker] != killed
    assert f'worker ended worker={worker} status="killed by SIGKILL"' in workers.server.printed()
    assert workers.probe("healthz", other) == Probe(200, "ok\n")


def test_the_workers_end_with_a_killed_supervisor_and_start_again_with_another(machine: NewMachine) -> None:
    workers = machine().start()
    pids = workers.pids()

    workers.server.kill()

    wait_until(lambda: not any(map(is_running, pids.values())), lambda: str(pids))
    # The first thread of a process may end before the others, which keep its sockets.
    wait_until(lambda: all(map(workers.is_port_free, range(2))), lambda: "a port is in use")
    workers.start()
    assert workers.pids().keys() == pids.keys()


def test_a_worker_whose_port_is_taken_is_tried_again_and_the_others_serve(machine: NewMachine) -> None:
    workers = machine()
    with socket.create_server(("127.0.0.1", workers.first_port + 1)):
        workers.server.start(wait=False)
        wait_until(lambda: workers.server.printed().count("worker ended worker=1") >= 2, workers.server.printed)
        wait_until(
            lambda: workers.probe("readyz") == Probe(503, "not ready: worker 1 does not serve\n"), workers.describe
        )
        assert workers.addresses() == {1: ("127.0.0.1", workers.first_port)}

    workers.wait_until_ready()

    printed = workers.server.printed()
    assert "Address already in use" in printed
    assert "again_in_s=0.1" in printed
    assert "again_in_s=0.2" in printed


def test_it_ends_if_worker_0_cannot_start(machine: NewMachine) -> None:
    workers = machine()
    with socket.create_server(("127.0.0.1", workers.first_port)):
        printed = output_of_start(workers.server)
    assert "Address already in use" in printed
    assert "Traceback" not in printed
    assert workers.is_port_free(1)


def test_it_ends_if_a_worker_must_not_use_its_directory(machine: NewMachine, alone: Callable[[Path], Server]) -> None:
    workers = machine()
    other = alone(workers.log_dir / "worker.1")
    other.start()
    other.stop()

    printed = output_of_start(workers.server)

    assert "worker.1 is of node 1" in printed or "the log directories are of cluster" in printed
    assert "Traceback" not in printed


def test_one_owner_has_the_metadata(machine: NewMachine, alone: Callable[[Path], Server], tmp_path: Path) -> None:
    workers = machine().start()
    with_store = Machine(tmp_path / "other", 2, {"log.dirs": str(workers.log_dir)})

    assert "another process is using the metadata" in output_of_start(with_store.server)
    assert "another broker is using the log directory" in output_of_start(alone(workers.log_dir))

    assert workers.is_ready()
    assert workers.server.stop() == 0


def test_workers_do_not_start_beside_a_broker_alone(machine: NewMachine, alone: Callable[[Path], Server]) -> None:
    workers = machine()
    server = alone(workers.log_dir).start()

    assert "another process is using the metadata" in output_of_start(workers.server)

    assert server.stop() == 0


def test_it_ends_if_the_metadata_store_fails(machine: NewMachine) -> None:
    workers = machine().start()
    with closing(sqlite3.connect(workers.log_dir / METADATA)) as other:
        other.execute("DROP TABLE kv")
    creation = CreateTopicsRequest([CreatableTopic("t", 1, 1, [], [])], timeout_ms=1000)
    with suppress(OSError, EOFError):
        ask("127.0.0.1", workers.first_port, creation, 7)

    assert workers.server.process.wait(60) == 1
    assert 'metadata store failed reason="the metadata store cannot write: no such table' in workers.server.printed()


def test_ctrl_c_stops_all_without_an_error(machine: NewMachine) -> None:
    workers = machine()
    workers.server.start(wait=False)
    wait_until(lambda: len(workers.pids()) == 2, workers.server.printed)  # also while they start

    workers.server.process.send_signal(signal.SIGINT)

    assert workers.server.process.wait(60) == 0
    assert "Traceback" not in workers.server.printed()


def test_worker_0_takes_over_what_a_broker_alone_has_written_and_gives_it_back(
    machine: NewMachine, alone: Callable[[Path], Server], tmp_path: Path
) -> None:
    workers = machine()
    before = alone(workers.log_dir).start()
    produce(before.bootstrap, "old", b"from one process")
    before.stop()

    workers.start()
    assert workers.leaders("old") == [1]
    produce(workers.bootstrap, "old", b"from two")
    assert workers.server.stop() == 0

    after = alone(workers.log_dir).start()
    assert read(after.bootstrap, "old") == [b"from one process", b"from two"]


def test_workers_become_more_and_less_with_their_data(machine: NewMachine, tmp_path: Path) -> None:
    """From 1 to 3, then to 2, as docs/workers.md describes it; not all at once."""
    three = machine(3)
    two, one = (
        Machine(tmp_path / str(count), count, {"log.dirs": str(three.log_dir), "num.partitions": "4"})
        for count in (2, 1)
    )
    try:
        one.start()
        for partition in range(4):
            produce(one.bootstrap, "t", b"from %d" % partition, partition=partition)
        create(one.bootstrap, "single")
        produce(one.bootstrap, "single", b"alone")
        assert one.server.stop() == 0
        for workers, leaders in ((three, [1, 1001, 2001, 1]), (two, [1, 1001, 1, 1001])):
            if workers is two:
                refusal = "worker.2 holds 1 partition, but num.workers = 2, so that no process would serve them"
                assert refusal in output_of_start(two.server)
            spread(workers)
            workers.start()
            wait_until(lambda: workers.leaders("t") == leaders)  # noqa: B023 - each worker hears of the others in turn
            assert read(workers.bootstrap, "t", range(4)) == [b"from %d" % each for each in range(4)]
            assert read(workers.bootstrap, "single") == [b"alone"]
            assert workers.server.stop() == 0
        assert not (three.log_dir / "worker.2").exists()
    finally:
        for each in (one, two):
            each.close()


def spread(workers: Machine) -> None:
    """Run `odradek workers --spread` with the configuration of the workers."""
    *_, config = workers.server.command
    subprocess.run(
        [sys.executable, "-m", "odradek", "workers", "--config", config, "--spread"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip


def test_worker_0_adopts_what_apache_kafka_has_written(machine: NewMachine) -> None:
    workers = machine()
    shutil.copytree(GOLDEN, workers.log_dir)
    workers.start()
    assert "topics adopted from the log directories" in workers.server.printed()
    assert workers.leaders("rolled") == [1]
    assert len(read(workers.bootstrap, "codec-zstd")) > 0


def test_json_lines_have_the_worker(machine: NewMachine) -> None:
    workers = machine(properties={"log.format": "json"}).start()
    assert workers.server.stop() == 0
    lines = [line for line in workers.server.printed().splitlines() if '"event": "started"' in line]
    assert sorted(line.partition('"worker": ')[2][0] for line in lines) == ["0", "1"]


def test_a_mistake_in_the_configuration_is_said_before_anything_starts(tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    server = odradek.prepare(
        tmp_path, {"num.workers": "2", "node.id": "1000", "log.dirs": str(log_dir), "metrics.port": "-1"}
    )
    assert "node.id = 1000: with num.workers = 2 it is below 1000" in output_of_start(server)
    assert not log_dir.exists()
