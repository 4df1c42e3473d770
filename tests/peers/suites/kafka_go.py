"""kafka-go's suite. It connects to localhost:9092; the copy connects to the broker of this run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from tests.peers.server import Server, free_port
from tests.peers.suites import go_modules
from tests.peers.suites.outcomes import Outcomes
from tests.peers.suites.sources import rewrite

_SECONDS = 1200
# One package at a time; tests inside TestReaderConsumerGroup pass only if they run all at once.
_ARGUMENTS = ("-p=1", "-parallel=16")
_MAX_BYTES = "200000000"


class KafkaGo:
    name = "kafka-go"
    version = "v0.4.51"

    def properties(self, port: int) -> Mapping[str, str]:
        return {
            "advertised.listeners": f"PLAINTEXT://localhost:{port}",
            "message.max.bytes": _MAX_BYTES,
            "socket.request.max.bytes": _MAX_BYTES,
        }

    def prepare(self, directory: Path, broker: Server) -> None:
        go_modules.copy_module("github.com/segmentio/kafka-go", self.version, directory)
        sources = list(directory.rglob("*.go"))
        rewrite(sources, r"\b9092\b", str(broker.port))
        # There is no listener with SASL: an unused port.
        rewrite(sources, r"(localhost|127\.0\.0\.1):9093\b", rf"\1:{free_port()}")

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        environment = {"KAFKA_VERSION": "4.0.0", "KAFKA_SKIP_NETTEST": "1"}
        return go_modules.run_tests(
            directory, ["./..."], environment, timeout=_SECONDS, log=log, arguments=_ARGUMENTS, skip=skip, only=only
        )
