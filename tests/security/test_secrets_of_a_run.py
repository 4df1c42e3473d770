"""No secret of a broker, of its clients or of their users leaves the place where it belongs.

A broker is run with everything that can print: the trace of all requests, the finest log level, the audit log, the
metrics. Then everything that it has written is searched for every secret that it was told, in every form.
"""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.config.jaas import PLAIN_MODULE
from odradek.client import Admin, ClientError, Producer
from odradek.client.admin.arguments import ConfigChange, ConfigResource
from odradek.client.admin.scram_users import ScramUpsertion
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS, salted_password
from tests.peers import odradek
from tests.peers.certificates import Authority
from tests.peers.server import Server, free_port

SALT = b"a salt that is known"
ADMINISTRATOR, USER, WRONG = "Adm1n-passw0rd", "Us3r-passw0rd", "Wr0ng-passw0rd"
STORE, ALTERED, METRICS = "St0re-passw0rd", "Alt3red-passw0rd", "M3trics-t0ken"
SALTED = salted_password(SCRAM_MECHANISMS["SCRAM-SHA-512"], USER, SALT, 4096)


def forms(secret: bytes) -> set[bytes]:
    """A secret as it is, in base64 and in hexadecimal digits, as Python shows it, and the first half of it."""
    shown = repr(secret)[2:-1].encode()
    return {secret, base64.b64encode(secret).rstrip(b"="), secret.hex().encode(), shown, shown[: len(shown) // 2]}


SECRETS = {
    name: forms(secret)
    for name, secret in {
        "the password of the administrator": ADMINISTRATOR.encode(),
        "the password of a user": USER.encode(),
        "its salted password, which is as good": SALTED,
        "a wrong password": WRONG.encode(),
        "an exchange of PLAIN": f"\0admin\0{ADMINISTRATOR}".encode(),
        "the password of a store": STORE.encode(),
        "a password that a client tried to set": ALTERED.encode(),
        "the token of the metrics": METRICS.encode(),
    }.items()
}


@pytest.fixture
def server(tmp_path: Path) -> Server:
    authority = Authority()
    keystore, token = tmp_path / "broker.p12", tmp_path / "token"
    authority.issue("broker", names=["localhost"]).write_pkcs12(keystore, STORE)
    token.write_text(METRICS)
    for path in (keystore, token):
        path.chmod(0o600)
    port = free_port()
    server = odradek.prepare(
        tmp_path / "broker",
        {
            "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:0",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,SECURE:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'{PLAIN_MODULE} required user_admin="{ADMINISTRATOR}";'
            ),
            "listener.name.secure.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_admin="{ADMINISTRATOR}";',
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(keystore),
            "ssl.keystore.password": STORE,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
            "metrics.token.file": str(token),
            "audit.log.file": str(tmp_path / "audit.log"),
            "log.level": "debug",
            "connection.failed.authentication.delay.ms": "0",
        },
        port=port,
    )
    server.command = [*server.command, "--explain"]
    return server


def login(mechanism: str, name: str, password: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": name,
        "sasl_password": password,
    }


async def page(port: int, token: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /metrics HTTP/1.1\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode())
    read = await reader.read()
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    return read


async def use(server: Server) -> list[bytes]:
    """Do with the broker whatever has to do with a secret; return what clients were told."""
    told: list[bytes] = []
    broker = ConfigResource.broker(1)
    async with Admin(server.bootstrap, **login("PLAIN", "admin", ADMINISTRATOR)) as admin:
        users = await admin.alter_user_scram_credentials([ScramUpsertion("user", USER, salt=SALT)])
        told.append(repr(users).encode())
        users.value("user")
        for name in ("ssl.keystore.password", "listener.name.secure.plain.sasl.jaas.config", "no.such.password"):
            answer = await admin.alter_configs({broker: [ConfigChange(name, ALTERED)]})
            told.append(repr(answer).encode())
            with pytest.raises(ClientError):
                answer.value(broker)
        told.append(repr(await admin.describe_configs([broker])).encode())
    producer = Producer(server.bootstrap, enable_idempotence=False, **login("SCRAM-SHA-512", "user", USER))
    async with producer:
        with pytest.raises(ClientError) as refused:  # no rule allows it
            await producer.send_and_wait("t", b"v")
        told.append(str(refused.value).encode())
    for mechanism, name in (("PLAIN", "admin"), ("PLAIN", "nobody"), ("SCRAM-SHA-512", "user")):
        with pytest.raises(ClientError) as refused:
            async with Admin(server.bootstrap, **login(mechanism, name, WRONG)):
                pass
        told.append(str(refused.value).encode())
    assert server.metrics_port is not None
    told += [await page(server.metrics_port, token) for token in (METRICS, WRONG)]
    assert told[-2].startswith(b"HTTP/1.1 200")
    assert told[-1].startswith(b"HTTP/1.1 401")
    return told


def found(text: bytes) -> list[str]:
    """The secrets that are in a text."""
    return [name for name, shapes in SECRETS.items() if any(shape in text for shape in shapes)]


@pytest.mark.process
def test_nothing_that_is_written_or_told_has_a_secret(server: Server, tmp_path: Path) -> None:
    server.start()
    try:
        told = asyncio.run(use(server))
    finally:
        server.stop()

    printed, audit = server.output.read_bytes(), (tmp_path / "audit.log").read_bytes()
    assert b"AlterUserScramCredentials" in printed  # the trace
    assert re.search(rb"SaslAuthenticate", printed)
    assert re.search(rb"authentication.*failed|failed.*authentication", audit, re.IGNORECASE)
    written = {str(path): path.read_bytes() for path in server.log_dir.rglob("*") if path.is_file()}
    assert any(name.endswith(".db") or "metadata" in name for name in written)
    texts = {"the output": printed, "the audit log": audit, "answers": b"\n".join(told), **written}
    assert {name: secrets for name, text in texts.items() if (secrets := found(text))} == {}


def test_the_search_finds_a_secret_in_each_form() -> None:
    for name, shapes in SECRETS.items():
        for shape in shapes:
            assert name in found(b"before " + shape + b" after")


def test_the_configuration_shows_no_secret(server: Server) -> None:
    config = BrokerConfig.load(server.output.parent / "server.properties")
    assert found(repr(config).encode()) == found(str(config).encode()) == []
