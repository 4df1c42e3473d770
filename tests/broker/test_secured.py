"""A broker with every kind of listener and an authorizer, from its properties to its clients."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import ConfigError
from odradek.broker.config.jaas import PLAIN_MODULE
from odradek.client import Admin, BrokerError, Producer
from odradek.client.admin.arguments import ConfigChange, ConfigResource
from tests.peers.certificates import Authority, write_secret
from tests.wire import Wire

KEYSTORE = "listener.name.mutual.ssl.keystore.location"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def properties(tmp_path: Path, authority: Authority) -> dict[str, str]:
    authority.server().write(tmp_path, "server")
    authority.write(tmp_path, "ca")
    authority.client("alice").write(tmp_path, "alice")
    return {
        "listeners": "MUTUAL://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "MUTUAL:SSL,SECURE:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        KEYSTORE: str(tmp_path / "server.pem"),
        "listener.name.mutual.ssl.truststore.location": str(tmp_path / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_MODULE} required user_admin="secret" user_bob="b";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:alice",
        "connection.failed.authentication.delay.ms": "0",
    }


@pytest.fixture
async def broker(properties: dict[str, str]) -> AsyncIterator[Broker]:
    async with Broker(properties) as started:
        yield started


def address(broker: Broker, listener: str) -> str:
    return f"127.0.0.1:{broker.ports[listener]}"


def login(ca: Path, user: str = "admin", password: str = "secret") -> dict[str, Any]:
    """Settings of our client for the listener SECURE."""
    return {
        "security_protocol": "SASL_SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(ca),
        "sasl_mechanism": "PLAIN",
        "sasl_username": user,
        "sasl_password": password,
    }


async def test_a_certificate_is_a_principal_and_a_password_another(broker: Broker, tmp_path: Path) -> None:
    certificate = {
        "security_protocol": "SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(tmp_path / "ca.pem"),
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(tmp_path / "alice.pem"),
    }
    async with Producer(address(broker, "MUTUAL"), **certificate) as producer:
        await producer.send_and_wait("t", b"v")
        assert {str(each.context.principal) for each in broker.connections} == {"User:alice"}
    async with Admin(address(broker, "SECURE"), **login(tmp_path / "ca.pem", "bob", "b")) as admin:
        assert await admin.list_topics() == {}
    counts = broker.services.metrics.listener("MUTUAL")
    assert counts.authentications > 0
    assert counts.certificate_expiry is not None


async def test_a_client_without_a_certificate_or_without_tls_is_counted(broker: Broker, authority: Authority) -> None:
    context = ssl.create_default_context(cadata=authority.pem)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # with 1.3 the client learns it only when it reads
    with pytest.raises(ssl.SSLError):
        await asyncio.open_connection("127.0.0.1", broker.ports["MUTUAL"], ssl=context, server_hostname="localhost")
    async with Wire("127.0.0.1", broker.ports["MUTUAL"]) as wire:
        wire.writer.write(b"\0\0\0\x10\0\x12\0\0\0\0\0\1\0\0")
        assert await wire.is_closed_by_peer()
    assert broker.services.metrics.listener("MUTUAL").failed_authentications == 2


async def serial(broker: Broker, directory: Path, listener: str) -> int:
    """The serial number of the certificate that a new connection is shown."""
    context = ssl.create_default_context(cafile=directory / "ca.pem")
    context.load_cert_chain(directory / "alice.pem")
    _, writer = await asyncio.open_connection(
        "127.0.0.1", broker.ports[listener], ssl=context, server_hostname="localhost"
    )
    shown = writer.get_extra_info("ssl_object").getpeercert()
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)  # or the next test finds an unclosed transport
    return int(shown["serialNumber"], 16)


async def set_path(admin: Admin, listener: str, path: str, *, validate_only: bool = False) -> None:
    """Set the path of a listener's key store. Raises as the broker answers."""
    resource = ConfigResource.broker(1)
    change = ConfigChange(f"listener.name.{listener}.ssl.keystore.location", path)
    (await admin.alter_configs({resource: [change]}, validate_only=validate_only)).value(resource)


@pytest.mark.parametrize("listener", ["MUTUAL", "SECURE"])  # whose path is of the listener, and of all listeners
async def test_a_keystore_has_been_read_again_when_the_setting_of_its_path_is_answered(
    broker: Broker, properties: dict[str, str], tmp_path: Path, authority: Authority, listener: str
) -> None:
    path = properties["ssl.keystore.location"]
    async with Admin(address(broker, "SECURE"), **login(tmp_path / "ca.pem")) as admin:
        for validate_only in (True, False):
            before = await serial(broker, tmp_path, listener)
            issued = authority.server()
            issued.write(tmp_path, "server")
            await set_path(admin, listener.lower(), path, validate_only=validate_only)
            expected = before if validate_only else issued.certificate.serial_number
            assert await serial(broker, tmp_path, listener) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("half", "ssl.keystore.location has no certificate in PEM"),
        ("missing", "server.pem"),
        ("of somebody else", "the certificate is of CN=elsewhere, the one in use of CN=localhost"),
        ("without a name", "lacks alternative names of the one in use, IPAddress:127.0.0.1"),
    ],
)
async def test_a_path_whose_store_cannot_be_used_is_refused_and_nothing_changes(
    broker: Broker, properties: dict[str, str], tmp_path: Path, authority: Authority, content: str, words: str
) -> None:
    path, before = Path(properties[KEYSTORE]), await serial(broker, tmp_path, "MUTUAL")
    if content == "half":
        write_secret(path, authority.server().key_pem())
    elif content == "missing":
        path.unlink()  # noqa: ASYNC240 - does not block
    else:
        other = {"subject": "elsewhere"} if content == "of somebody else" else {"names": ("localhost",)}
        authority.issue(**other).write(tmp_path, "server")  # type: ignore[arg-type]
    async with Admin(address(broker, "SECURE"), **login(tmp_path / "ca.pem")) as admin:
        for validate_only in (True, False):
            with pytest.raises(BrokerError, match=f"INVALID_REQUEST.*{words}.*listener MUTUAL"):
                await set_path(admin, "mutual", str(path), validate_only=validate_only)
    assert broker.services.metadata.image.broker_configs == {}
    assert await serial(broker, tmp_path, "MUTUAL") == before


async def test_a_keystore_that_others_may_read_is_refused_with_the_listener(properties: dict[str, str]) -> None:
    os.chmod(properties["ssl.keystore.location"], 0o644)  # noqa: PTH101 - does not block
    with pytest.raises(ConfigError, match="listener MUTUAL"):
        await Broker(properties).start()


async def test_clients_are_told_the_addresses_of_their_own_listener(broker: Broker, tmp_path: Path) -> None:
    async with Admin(address(broker, "SECURE"), **login(tmp_path / "ca.pem")) as admin:
        cluster = await admin.describe_cluster()
    assert [each.port for each in cluster.brokers] == [broker.ports["SECURE"]]


async def test_clients_are_told_the_name_of_a_listener_with_tls(properties: dict[str, str], tmp_path: Path) -> None:
    """They compare it with the certificate, which often has no address."""
    properties["listeners"] = "MUTUAL://127.0.0.1:0,SECURE://localhost:0"
    async with Broker(properties) as broker, Admin(address(broker, "SECURE"), **login(tmp_path / "ca.pem")) as admin:
        cluster = await admin.describe_cluster()
        [registered] = broker.services.metadata.image.brokers.values()
    assert [(each.host, each.port) for each in cluster.brokers] == [("localhost", broker.ports["SECURE"])]
    assert [each.host for each in registered.listeners] == ["127.0.0.1", "localhost"]
