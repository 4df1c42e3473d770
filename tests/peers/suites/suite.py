"""One suite: its source, the broker that it expects, and its command."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from tests.peers.server import Server
from tests.peers.suites.outcomes import Outcomes


class Suite(Protocol):
    """A suite of one client, in one version."""

    name: str
    version: str

    def properties(self, port: int) -> Mapping[str, str]:
        """Return the properties that the broker on `port` needs in addition to those of `tests.peers.odradek`."""

    def prepare(self, directory: Path, broker: Server) -> None:
        """Fetch the suite, and copy it to `directory`, changed so that it finds `broker`."""

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        """Run all tests except `skip`, or `only` those named; append the output to `log`."""
