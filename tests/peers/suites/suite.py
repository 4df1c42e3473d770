"""One suite: how it gets here, what broker it expects, how it is run."""

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
        """Return the properties that the broker on `port` needs beside those of `tests.peers.odradek`."""

    def prepare(self, directory: Path, broker: Server) -> None:
        """Fetch the suite, and copy it to `directory`, changed so that it finds `broker`."""

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        """Run all tests but `skip`, or `only` those named; append what there is to read about it to `log`."""
