"""Servers of both kinds with a TLS listener beside a plain one, and the certificates of both sides.

Our broker is `python -m tests.peers.secured DIRECTORY CLIENT_AUTH`. Its configuration has both listeners, PLAINTEXT and
SECURED; TLS of the second is put together here, of the files in the directory, so that it needs no properties:
`server.pem` (key and chain) and `ca.pem`. Apache Kafka reads the same files by its properties.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from odradek.broker.__main__ import run
from odradek.broker.broker import Broker
from odradek.broker.clock import SystemClock
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoints import Endpoint
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.security.tls.listener_tls import ListenerTls
from odradek.broker.security.tls.settings import ClientAuth, TlsSettings
from odradek.broker.server.connections import Connections
from odradek.broker.server.listener import Listener
from odradek.broker.startup.machine import Machine
from odradek.broker.structured_logging import configure
from tests.peers import apache, odradek
from tests.peers.certificates import Authority, Kind
from tests.peers.server import Server, free_port

RULES = "RULE:^CN=(alice|localhost)$/$1/"


class Secured(NamedTuple):
    """The process, with its ports, and the files that clients need."""

    server: Server
    port: int
    authority: Authority
    directory: Path

    @property
    def bootstrap(self) -> str:
        """The address of the TLS listener."""
        return f"127.0.0.1:{self.port}"

    @property
    def ca(self) -> Path:
        return self.directory / "ca.pem"


def prepare(
    kind: str,
    directory: Path,
    properties: Mapping[str, str] = {},
    *,
    client_auth: str = "none",
    key: Kind = "ecdsa",
    options: Sequence[str] = apache.OPTIONS,
) -> Secured:
    """Write certificates and the configuration of a server that is not started yet; `options` are of Java."""
    authority = Authority(kind=key)
    directory.mkdir(parents=True, exist_ok=True)
    authority.write(directory)
    authority.server(key).write(directory)
    authority.client("alice", key).write(directory, "client")
    port, secured_port = free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},SECURED://127.0.0.1:{secured_port}"
    if kind == "odradek":
        protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:PLAINTEXT"}
        server = odradek.prepare(directory, {"listeners": listeners, **protocols, **properties}, port=port)
        server = replace(server, command=[sys.executable, "-m", "tests.peers.secured", str(directory), client_auth])
    else:
        written = _properties_of_kafka(directory, listeners, client_auth)
        server = apache.prepare(directory, {**written, **properties}, port=port, options=options)
    return Secured(server, secured_port, authority, directory)


def _properties_of_kafka(directory: Path, listeners: str, client_auth: str) -> dict[str, str]:
    controller_port = free_port()
    return {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "ssl.client.auth": client_auth,
        "ssl.principal.mapping.rules": RULES,
    }


def main(directory: Path, client_auth: str) -> int:
    settings = TlsSettings(
        keystore_type="PEM",
        keystore_location=str(directory / "server.pem"),
        truststore_type="PEM",
        truststore_location=str(directory / "ca.pem"),
        client_auth=ClientAuth(client_auth),
        principal_mapping_rules=RULES,
    )
    secured = ListenerTls("SECURED", settings, SystemClock())

    def listener(endpoint: Endpoint, connections: Connections, metrics: Metrics, tls: ListenerTls | None) -> Listener:
        return Listener(endpoint, connections, metrics, secured if endpoint.name == "SECURED" else tls)

    config = BrokerConfig.load(str(directory / "server.properties"), {})
    configure(config.log_level)
    return run(Broker(config, machine=Machine(new_listener=listener)))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
