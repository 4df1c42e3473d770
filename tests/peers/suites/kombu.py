"""The tests of kombu's transport for Kafka, which Celery uses. They connect to localhost:9092; the copy connects to the
broker of this run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from tests.peers import environments
from tests.peers.server import Server
from tests.peers.suites import python_packages
from tests.peers.suites.outcomes import Outcomes
from tests.peers.suites.sources import rewrite

_SECONDS = 900
_SECONDS_A_TEST = 120
_TESTS = "t/integration/test_kafka.py"


class Kombu:
    name = "kombu"
    version = "5.7.0"

    def __init__(self) -> None:
        self._root = Path()

    def properties(self, port: int) -> Mapping[str, str]:
        return {"advertised.listeners": f"PLAINTEXT://localhost:{port}"}

    def prepare(self, directory: Path, broker: Server) -> None:
        self._root = python_packages.unpack("kombu", self.version, directory)
        rewrite([self._root / _TESTS], r"\b9092\b", str(broker.port))

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        # The tests are marked to be run again if they fail, which this plugin does; ours is not importable there.
        python = environments.python(f"kombu=={self.version}", "pytest-rerunfailures")
        return python_packages.run_tests(
            self._root, _TESTS, {}, timeout=_SECONDS, test_timeout=_SECONDS_A_TEST, log=log,
            python=python, arguments=["-p", "no:odradek.testing.plugin"], skip=skip, only=only,
        )  # fmt: skip
