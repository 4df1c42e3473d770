"""watermill-kafka's suite: watermill's tests of a publisher and a subscriber, on topics of 50 partitions, by sarama."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from tests.peers.server import Server
from tests.peers.suites import go_modules
from tests.peers.suites.outcomes import Outcomes

_SECONDS = 1500


class WatermillKafka:
    name = "watermill-kafka"
    version = "v3.1.2"

    def properties(self, port: int) -> Mapping[str, str]:
        return {}

    def prepare(self, directory: Path, broker: Server) -> None:
        go_modules.copy_module("github.com/ThreeDotsLabs/watermill-kafka/v3", self.version, directory)

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        environment = {"WATERMILL_TEST_KAFKA_BROKERS": broker.bootstrap}
        return go_modules.run_tests(directory, ["./..."], environment, timeout=_SECONDS, log=log, skip=skip, only=only)
