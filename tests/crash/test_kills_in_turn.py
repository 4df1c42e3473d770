"""One log directory used by Apache Kafka and Odradek alternately, each killed while clients produce."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from tests.crash.kill_nine import PROPERTIES, kill_and_check
from tests.peers import apache, odradek
from tests.peers.server import Server

pytestmark = [pytest.mark.crash, pytest.mark.java, pytest.mark.timeout(300)]

Kind = tuple[str, Sequence[str], Callable[[Server], bool]]


@dataclass
class InTurn(Server):
    """A server of alternating kind: each start uses the next."""

    kinds: Iterator[Kind] = field(default_factory=lambda: iter(()))

    def start(self, timeout: float = 100, *, wait: bool = True) -> Server:
        self.kind, self.command, self.is_ready = next(self.kinds)
        return super().start(timeout, wait=wait)


def test_acknowledged_records_of_a_killed_server_are_served_by_the_other(tmp_path: Path) -> None:
    kafka = apache.prepare(tmp_path / "kafka", PROPERTIES)
    ours = odradek.prepare(tmp_path / "ours", {**PROPERTIES, "log.dirs": str(kafka.log_dir)}, port=kafka.port)
    kinds = cycle((each.kind, each.command, each.is_ready) for each in (kafka, ours))
    server = InTurn("", (), kafka.port, kafka.log_dir, tmp_path / "output.log", kafka.is_ready, kinds=kinds)
    server.start()
    try:
        records = kill_and_check(server, 3, random.Random(3))
    finally:
        server.kill()
    assert min(records.values()) > 100
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
