"""Servers of both kinds with a TLS listener beside a plain one, and the certificates of both sides.

| listener | how clients connect |
|---|---|
| PLAINTEXT | without TLS |
| SECURED | with TLS, and a certificate as `client_auth` says (`ssl.client.auth`) |

The properties are the same for both kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

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
    written = {
        "listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "ssl.client.auth": client_auth,
        "ssl.principal.mapping.rules": RULES,
    }
    if kind == "odradek":
        server = odradek.prepare(directory, {**written, **properties}, port=port)
    else:
        written |= _controller_of_kafka(listeners)
        server = apache.prepare(directory, {**written, **properties}, port=port, options=options)
    return Secured(server, secured_port, authority, directory)


def _controller_of_kafka(listeners: str) -> dict[str, str]:
    controller = f"127.0.0.1:{free_port()}"
    return {
        "listeners": f"{listeners},CONTROLLER://{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@{controller}",
    }
