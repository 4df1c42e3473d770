"""Toxiproxy: proxies whose connections can be cut by HTTP; sarama's suite connects to its brokers through them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.peers.server import Server, accepts_connections, free_port
from tests.peers.suites import go_modules

_MODULE = "github.com/Shopify/toxiproxy/v2/cmd/server"
_VERSION = "v2.5.0"


@contextmanager
def proxies(upstream: str, ports: dict[str, int], output: Path) -> Iterator[str]:
    """Run proxies to `upstream`, by name and port; yield the URL of their API."""
    server = go_modules.install(_MODULE, _VERSION) / "server"
    port = free_port()
    process = Server(
        kind="toxiproxy",
        command=[str(server), "-host", "127.0.0.1", "-port", str(port)],
        port=port,
        log_dir=output.parent,
        output=output,
        is_ready=accepts_connections,
    ).start()
    try:
        url = f"http://127.0.0.1:{port}"
        for name, listening in ports.items():
            body = json.dumps({"name": name, "listen": f"127.0.0.1:{listening}", "upstream": upstream})
            urllib.request.urlopen(f"{url}/proxies", body.encode(), timeout=10).close()
        yield url
    finally:
        process.kill()
