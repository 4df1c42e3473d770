"""sarama's functional suite. It expects five brokers behind toxiproxy, and topics with three replicas.

Here all five proxies lead to one broker, which advertises the address of the first, and topics have one replica. Tests
that need more brokers, or Docker to stop them, are known failures; Docker is not available to them.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.peers.server import Server, free_port
from tests.peers.suites import go_modules
from tests.peers.suites.outcomes import Outcomes
from tests.peers.suites.sources import rewrite
from tests.peers.suites.toxiproxy import proxies

_SECONDS = 1800
_PROXIES = 5


class Sarama:
    name = "sarama"
    version = "v1.61.1"

    def __init__(self) -> None:
        self.first_port = _free_ports(_PROXIES)

    def properties(self, port: int) -> Mapping[str, str]:
        return {
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.first_port}",
            "auto.create.topics.enable": "false",
            "broker.rack": "1",
        }

    def prepare(self, directory: Path, broker: Server) -> None:
        go_modules.copy_module("github.com/IBM/sarama", self.version, directory)
        environment = [directory / "functional_test.go"]
        rewrite(environment, "ReplicationFactor: 3", "ReplicationFactor: 1")
        rewrite(environment, r"\b29090\+i\b", f"{self.first_port - 1}+i")
        programs = directory / "programs"
        programs.mkdir()
        docker = programs / "docker"
        docker.write_text("#!/bin/sh\necho 'there is no Docker in this run' >&2\nexit 1\n")
        docker.chmod(0o755)

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        ports = {f"kafka{number}": self.first_port + number - 1 for number in range(1, _PROXIES + 1)}
        with proxies(broker.bootstrap, ports, log.with_suffix(".toxiproxy.log")) as url:
            environment = {
                "TOXIPROXY_ADDR": url,
                "KAFKA_VERSION": "4.3.1",
                "PATH": f"{directory / 'programs'}{os.pathsep}{os.environ['PATH']}",
            }
            return go_modules.run_tests(
                directory,
                ["."],
                environment,
                timeout=_SECONDS,
                log=log,
                arguments=["-tags=functional"],
                only=set(only or _functional_tests(directory)) - set(skip),
            )


def _functional_tests(directory: Path) -> list[str]:
    """The tests that need a broker; the others have the same build tag."""
    found = []
    for path in sorted(directory.glob("functional_*_test.go")):
        found += re.findall(r"^func (Test\w+)\(t ", path.read_text(), re.MULTILINE)
    return [f"sarama.{name}" for name in found]


def _free_ports(count: int) -> int:
    """Return the first of `count` consecutive free ports."""
    while True:
        first = free_port()
        if all(_is_free(first + offset) for offset in range(1, count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
