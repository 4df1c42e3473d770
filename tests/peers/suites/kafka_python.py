"""kafka-python's integration tests, which come in its source distribution."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from tests.peers.server import Server
from tests.peers.suites import python_packages
from tests.peers.suites.outcomes import Outcomes

_SECONDS = 900
_SECONDS_A_TEST = 120

# The distribution lacks this module: it contains only modules named test*.py.
_SERVICE = '''
class ExternalService:
    """The broker of this run, in place of the suite's own."""

    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


class SpawnedService:
    """Never used, because these tests start no broker."""
'''


class KafkaPython:
    name = "kafka-python"
    version = "3.0.12"

    def __init__(self) -> None:
        self._root = Path()

    def properties(self, port: int) -> Mapping[str, str]:
        return {
            "node.id": "0",
            "num.partitions": "4",
            "group.min.session.timeout.ms": "100",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }

    def prepare(self, directory: Path, broker: Server) -> None:
        self._root = python_packages.unpack("kafka-python", self.version, directory)
        tests = self._root / "test"
        (tests / "__init__.py").touch()
        (tests / "service.py").write_text(_SERVICE)

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        environment = {
            "KAFKA_URI": f"kafka://{broker.bootstrap}",
            "KAFKA_VERSION": "4.3.1",
            "KAFKA_ROOT": str(self._root),
        }
        return python_packages.run_tests(
            self._root, "test/integration", environment, timeout=_SECONDS, test_timeout=_SECONDS_A_TEST, log=log,
            arguments=["-o", "log_level=INFO"], skip=skip, only=only,
        )  # fmt: skip
