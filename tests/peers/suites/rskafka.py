"""rskafka's integration tests: produce, fetch, administer; records from and to librdkafka and Java."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from odradek.broker.config.jaas import MODULES
from tests.peers.server import Server, free_port
from tests.peers.suites import crates
from tests.peers.suites.outcomes import Outcomes

_SECONDS = 600
_TARGETS = ("client", "consumer", "produce_consume", "producer")


class Rskafka:
    name = "rskafka"
    version = "0.6.0"

    def __init__(self) -> None:
        self._sasl_port = free_port()

    def properties(self, port: int) -> Mapping[str, str]:
        return {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{self._sasl_port}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'{MODULES["PLAIN"]} required user_admin="admin-secret";'
            ),
            "auto.create.topics.enable": "false",
        }

    def prepare(self, directory: Path, broker: Server) -> None:
        # Compilers of 2026 refuse the release 2.2.0 of rsasl.
        crates.copy_crate(self.name, self.version, directory, update=["rsasl"])

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        environment = {
            "TEST_INTEGRATION": "1",
            "TEST_BROKER_IMPL": "kafka",
            "KAFKA_CONNECT": broker.bootstrap,
            "KAFKA_SASL_CONNECT": f"127.0.0.1:{self._sasl_port}",
        }
        if shutil.which("java") is not None:
            environment["TEST_JAVA_INTEROPT"] = "1"
        return crates.run_tests(directory, _TARGETS, environment, timeout=_SECONDS, log=log, skip=skip, only=only)
