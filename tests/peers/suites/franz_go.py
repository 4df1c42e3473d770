"""franz-go's suite: produce, consume and groups of all balancers and both protocols, with verification."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from tests.peers.server import Server
from tests.peers.suites import go_modules
from tests.peers.suites.outcomes import Outcomes

_SECONDS = 1500


class FranzGo:
    name = "franz-go"
    version = "v1.22.2"

    def properties(self, port: int) -> Mapping[str, str]:
        return {}

    def prepare(self, directory: Path, broker: Server) -> None:
        go_modules.copy_module("github.com/twmb/franz-go", self.version, directory)

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        environment = {
            "KGO_SEEDS": broker.bootstrap,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": "100000",
            "KGO_TEST_STABLE_FETCH": "true",
            "KGO_LOG_LEVEL": "none",
        }
        return go_modules.run_tests(
            directory, ["./pkg/..."], environment, timeout=_SECONDS, log=log, skip=skip, only=only
        )
