"""Transactions of franz-go and sarama, at each level of `transaction.version`: the Go module in `transactions/`."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.peers import features
from tests.peers.server import Server
from tests.peers.suites import go_modules
from tests.peers.suites.outcomes import Outcomes

_SOURCE = Path(__file__).parent / "transactions"
_LEVELS = (2, 1, 0)
_SECONDS = 300


class GoTransactions:
    name = "go-transactions"
    version = "of franz-go v1.22.2 and sarama v1.61.1"

    def properties(self, port: int) -> Mapping[str, str]:
        return {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}

    def prepare(self, directory: Path, broker: Server) -> None:
        shutil.copytree(_SOURCE, directory)

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        outcomes: Outcomes = {}
        for level in _LEVELS:
            features.set_level(broker, features.TRANSACTION_VERSION, level)
            environment = {"BOOTSTRAP": broker.bootstrap, "LEVEL": str(level)}
            outcomes |= go_modules.run_tests(
                directory, ["."], environment, timeout=_SECONDS, log=log, skip=skip, only=only
            )
        return outcomes
