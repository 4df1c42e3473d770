"""A server of either kind with every kind of secured listener, its authorizer, and a certificate authority.

| listener | how clients connect |
|---|---|
| PLAINTEXT | as User:ANONYMOUS, who may do nothing |
| SSL | with TLS; a client's certificate is its principal, if it has one |
| MTLS | with TLS and a certificate |
| SASL_PLAINTEXT | with a user: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER with unsecured tokens |
| SASL_SSL | the same, with TLS |
| SHORT | as SASL_PLAINTEXT, but without PLAIN; a session ends after 5 seconds |

The properties are the same for both kinds. Tests prepare as the user admin of PLAIN, a super user. Kafka's controller
and broker connect to each other with the broker's certificate, whose subject is a super user, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from odradek.broker.config.jaas import MODULES
from odradek.client import Admin
from tests.peers import apache, odradek
from tests.peers.certificates import DAY, Authority
from tests.peers.server import Server, accepts_at, free_port, write_properties

USERS = {"admin": "admin secret", "alice": "alice secret", "bob": 'bob, "s = secret'}
"""Of PLAIN. Those of SCRAM are made by the test."""
SESSION_MS = 5000

_KINDS = {"odradek": odradek.prepare, "apache": apache.prepare}
_PROTOCOLS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "SHORT": "SASL_PLAINTEXT",
}


class SecuredServer(NamedTuple):
    """The server, the ports of its listeners, and what clients need."""

    server: Server
    ports: dict[str, int]
    authority: Authority
    directory: Path

    def address(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    @property
    def ca(self) -> str:
        return str(self.directory / "ca.pem")

    @property
    def reason_of_unknown_ca(self) -> str:
        """OpenSSL's words for an authority that the client does not trust; our broker sends its certificate, too."""
        if self.server.kind == "apache":
            return "unable to get local issuer certificate"
        return "self-signed certificate in certificate chain"

    def tls(self, **more: Any) -> dict[str, Any]:
        """Settings of our client for the listener SSL."""
        return {"security_protocol": "SSL", "ssl_truststore_location": self.ca} | more

    def sasl(self, mechanism: str = "PLAIN", user: str = "alice", **more: Any) -> dict[str, Any]:
        """Settings of our client for the listener SASL_PLAINTEXT."""
        return {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_username": user,
            "sasl_password": USERS[user],
        } | more

    def admin(self) -> Admin:
        """An admin client of a super user, not started yet."""
        return Admin(self.address("SASL_PLAINTEXT"), **self.sasl(user="admin"))

    def admin_flags(self) -> tuple[str, ...]:
        """The flags of a command, Kafka's or ours, that let it connect as the same user."""
        config = self.directory / "admin.properties"
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{MODULES["PLAIN"]} required username="admin" password="{USERS["admin"]}";',
        }
        write_properties(config, properties)
        return "--bootstrap-server", self.address("SASL_PLAINTEXT"), "--command-config", str(config)


def prepare(kind: str, directory: Path) -> SecuredServer:
    """A broker with these listeners on loopback, not started yet."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = Authority()
    (directory / "ca.pem").write_text(authority.pem)
    broker = authority.issue("broker", names=["localhost"], connects=True, ends=90 * DAY)
    broker.write_pem(directory / "broker.pem")
    ports = {listener: free_port() for listener in ("PLAINTEXT", *_PROTOCOLS)}
    properties = {
        "listeners": _urls(ports),
        "advertised.listeners": _urls(ports),
        "listener.security.protocol.map": _protocols("PLAINTEXT:PLAINTEXT"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "listener.name.ssl.ssl.client.auth": "requested",
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.short.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.short.connections.max.reauth.ms": str(SESSION_MS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:CN=admin;User:CN=broker",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    } | {
        f"listener.name.{listener.lower()}.{mechanism.lower()}.{key}": value
        for listener in ("SASL_PLAINTEXT", "SASL_SSL", "SHORT")
        for mechanism, entries in _mechanisms().items()
        for key, value in entries.items()
    }
    if kind == "apache":
        properties |= _properties_of_kafka(ports)
    escaped = {name: value.replace("\\", "\\\\") for name, value in properties.items()}
    server = _KINDS[kind](directory / kind, escaped, port=ports["PLAINTEXT"])
    is_ready = server.is_ready
    server.is_ready = lambda started: all(map(accepts_at, ports.values())) and is_ready(started)
    return SecuredServer(server, ports, authority, directory)


def _properties_of_kafka(ports: Mapping[str, int]) -> dict[str, str]:
    controller = f"localhost:{free_port()}"
    return {
        "listeners": f"{_urls(ports)},CONTROLLER://{controller}",
        "controller.quorum.voters": f"1@{controller}",
        "listener.security.protocol.map": _protocols("PLAINTEXT:PLAINTEXT,CONTROLLER:SSL"),
        "inter.broker.listener.name": "MTLS",
        "listener.name.controller.ssl.client.auth": "required",
    }


def _urls(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://localhost:{port}" for name, port in ports.items())


def _protocols(others: str) -> str:
    return ",".join([others, *(f"{name}:{protocol}" for name, protocol in _PROTOCOLS.items())])


def _mechanisms() -> dict[str, dict[str, str]]:
    users = " ".join(f'user_{name}="{_escaped(password)}"' for name, password in USERS.items())
    package = "org.apache.kafka.common.security.oauthbearer.internals.unsecured"
    return {
        "PLAIN": {"sasl.jaas.config": f"{MODULES['PLAIN']} required {users};"},
        "SCRAM-SHA-256": {"sasl.jaas.config": f"{MODULES['SCRAM-SHA-256']} required;"},
        "SCRAM-SHA-512": {"sasl.jaas.config": f"{MODULES['SCRAM-SHA-512']} required;"},
        "OAUTHBEARER": {
            "sasl.jaas.config": f"{MODULES['OAUTHBEARER']} required unsecuredLoginStringClaim_sub=broker;",
            "sasl.server.callback.handler.class": f"{package}.OAuthBearerUnsecuredValidatorCallbackHandler",
        },
    }


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
