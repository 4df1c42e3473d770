"""Several workers of one machine under their supervisor, started as users do, to ask and to kill."""

from __future__ import annotations

import os
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.messages.metadata import MetadataRequest
from tests.cluster.brokers import ask, wait_until
from tests.peers import odradek
from tests.peers.server import Server, consecutive_ports

_STATE = 0
"""A field of /proc/<pid>/stat after the name of the program."""


class Probe(NamedTuple):
    status: int
    text: str


class Machine:
    """`count` workers with their supervisor, `server`; `start` returns when all serve."""

    def __init__(self, directory: Path, count: int, properties: Mapping[str, str] = {}) -> None:
        self.count = count
        self.first_port = consecutive_ports(count)
        self.server: Server = odradek.prepare(
            directory,
            {"num.workers": str(count), "metrics.port": str(consecutive_ports(count)), **properties},
            port=self.first_port,
        )
        self.server.is_ready = lambda _: self.is_ready()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.first_port + worker}" for worker in range(self.count))

    @property
    def log_dir(self) -> Path:
        return self.server.log_dir

    def log_dir_of(self, worker: int) -> Path:
        return self.log_dir / f"worker.{worker}" if worker else self.log_dir

    def start(self) -> Machine:
        self.server.start()
        return self

    def close(self) -> None:
        """Kill the supervisor, if it runs, and wait for the end of its workers."""
        if self.server.is_alive:
            pids = self.pids()
            self.server.kill()
            wait_until(lambda: not any(map(is_running, pids.values())), lambda: f"the end of {pids}")

    def is_ready(self) -> bool:
        return all(self.probe("readyz", worker) == Probe(200, "ready\n") for worker in range(self.count))

    def wait_until_ready(self) -> None:
        wait_until(self.is_ready, self.describe)

    def describe(self) -> str:
        return str([self.probe("readyz", worker) for worker in range(self.count)])

    def probe(self, page: str, worker: int = 0) -> Probe:
        """The answer of a worker's HTTP port; status 0: none."""
        assert self.server.metrics_port is not None
        url = f"http://127.0.0.1:{self.server.metrics_port + worker}/{page}"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return Probe(response.status, response.read().decode())
        except urllib.error.HTTPError as error:
            return Probe(error.code, error.read().decode())
        except OSError as error:
            return Probe(0, str(error))

    def pids(self) -> dict[int, int]:
        """The process ids of the workers that run, by number, as the supervisor has logged them."""
        begun = re.findall(r"worker begins worker=(\d+) pid=(\d+)", self.server.printed())
        found = {int(worker): int(pid) for worker, pid in begun}
        return {worker: pid for worker, pid in found.items() if is_running(pid)}

    def kill(self, worker: int) -> None:
        """SIGKILL one worker, and return when its supervisor has started another one that serves."""
        dead = self.pids()[worker]
        os.kill(dead, signal.SIGKILL)
        wait_until(lambda: self.pids().get(worker, dead) != dead, lambda: f"another worker {worker}")
        self.wait_until_ready()

    def addresses(self, worker: int = 0) -> dict[int, tuple[str, int]]:
        """The addresses of the brokers by node id, as a worker tells them to clients."""
        response = ask("127.0.0.1", self.first_port + worker, MetadataRequest(topics=[]), 12)
        return {each.node_id: (each.host, each.port) for each in response.brokers}

    def leaders(self, topic: str) -> list[int]:
        """The leaders of a topic's partitions, -1: none."""
        response = ask("127.0.0.1", self.first_port, MetadataRequest(topics=None), 12)
        [found] = [each for each in response.topics if each.name == topic]
        return [each.leader_id for each in sorted(found.partitions, key=lambda each: each.partition_index)]

    def is_port_free(self, worker: int) -> bool:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.first_port + worker))
            except OSError:
                return False
        return True


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        return _stat(pid)[_STATE] != "Z"
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
