"""A real Apache Kafka with every kind of secured listener, its authorizer, and a certificate authority.

| listener | how clients connect |
|---|---|
| PLAINTEXT | as User:ANONYMOUS, a super user, so that the test can prepare |
| SSL | with TLS; a client's certificate is its principal, if it has one |
| MTLS | with TLS and a certificate |
| SASL_PLAINTEXT | with a user: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER with unsecured tokens |
| SASL_SSL | the same, with TLS |
| SHORT | as SASL_PLAINTEXT, but without PLAIN; a session ends after 5 seconds |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tests.peers import apache
from tests.peers.server import Server, free_port
from tests.peers.stores import Authority

USERS = {"admin": "admin secret", "alice": "alice secret", "bob": 'bob, "s = secret'}
"""Of PLAIN. Those of SCRAM are made by the test."""
SESSION_MS = 5000

_PROTOCOLS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "SHORT": "SASL_PLAINTEXT",
}


class SecuredKafka(NamedTuple):
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


def prepare(directory: Path) -> SecuredKafka:
    """A broker with these listeners on loopback, not started yet."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = Authority()
    (directory / "ca.pem").write_text(authority.pem)
    authority.issue("broker", ["localhost"]).write_pem(directory / "broker.pem")
    ports = {listener: free_port() for listener in ("PLAINTEXT", "CONTROLLER", *_PROTOCOLS)}
    listeners = {name: f"{name}://localhost:{port}" for name, port in ports.items() if name != "CONTROLLER"}
    properties = {
        "listeners": ",".join([*listeners.values(), f"CONTROLLER://127.0.0.1:{ports['CONTROLLER']}"]),
        "advertised.listeners": ",".join(listeners.values()),
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "listener.security.protocol.map": ",".join(
            ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *(f"{name}:{kind}" for name, kind in _PROTOCOLS.items())]
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "listener.name.ssl.ssl.client.auth": "requested",
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.short.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.short.connections.max.reauth.ms": str(SESSION_MS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin;User:CN=admin",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    } | {
        f"listener.name.{listener.lower()}.{mechanism.lower()}.{key}": value
        for listener in ("SASL_PLAINTEXT", "SASL_SSL", "SHORT")
        for mechanism, entries in _mechanisms().items()
        for key, value in entries.items()
    }
    escaped = {name: value.replace("\\", "\\\\") for name, value in properties.items()}
    server = apache.prepare(directory / "kafka", escaped, port=ports["PLAINTEXT"])
    return SecuredKafka(server, ports, authority, directory)


def _mechanisms() -> dict[str, dict[str, str]]:
    package = "org.apache.kafka.common.security"
    users = " ".join(f'user_{name}="{_escaped(password)}"' for name, password in USERS.items())
    scram = {"sasl.jaas.config": f"{package}.scram.ScramLoginModule required;"}
    unsecured = f"{package}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    claim = "unsecuredLoginStringClaim_sub"
    return {
        "PLAIN": {"sasl.jaas.config": f"{package}.plain.PlainLoginModule required {users};"},
        "SCRAM-SHA-256": scram,
        "SCRAM-SHA-512": scram,
        "OAUTHBEARER": {
            "sasl.jaas.config": f"{package}.oauthbearer.OAuthBearerLoginModule required {claim}=broker;",
            "sasl.server.callback.handler.class": unsecured,
        },
    }


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
