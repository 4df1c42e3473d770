"""Our broker, started as users do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.peers.server import TOPIC_DEFAULTS, Server, accepts_connections, free_port, write_properties


def prepare(directory: Path, properties: Mapping[str, str] = {}, *, port: int | None = None) -> Server:
    """A broker on a free port with its log under `directory`, not started yet. It serves as soon as it listens."""
    port = port or free_port()
    properties = dict(properties)
    metrics_port = int(properties.setdefault("metrics.port", str(free_port())))
    written = {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(directory / "log"),
        "group.initial.rebalance.delay.ms": "0",
    }
    directory.mkdir(parents=True, exist_ok=True)
    write_properties(directory / "server.properties", written | TOPIC_DEFAULTS | properties)
    return Server(
        kind="odradek",
        command=[sys.executable, "-m", "odradek.broker", "--config", str(directory / "server.properties")],
        port=port,
        metrics_port=metrics_port,
        log_dir=directory / "log",
        output=directory / "output.log",
        is_ready=accepts_connections,
    )
