"""TLS of the client, against servers of Python's ssl: what is verified, and what the errors say."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.client import AuthenticationFailedError, ConfigurationError, ConnectionLostError, TlsError
from odradek.client.config import Address
from odradek.client.network.connection import open_connection
from odradek.client.network.tls import Tls, make_context, peer_certificate
from odradek.client.network.transport import TcpNetwork, connect
from odradek.client.security.certificate import names_of, summary_of
from odradek.client.security.settings import SecuritySettings
from tests.client.provoked_errors import provokes
from tests.peers.certificates import DAY, Authority, Issued
from tests.tcp_server import tcp_server

AUTHORITY = Authority()
BROKER = AUTHORITY.issue("broker", names=["localhost", "broker.example"])


class Received(asyncio.BufferedProtocol):
    """The client's side: what arrives, and how the connection ends."""

    def __init__(self) -> None:
        self.buffer = bytearray(64)
        self.data = b""
        self.transport: asyncio.Transport | None = None
        self.arrived = asyncio.Event()
        self.ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self.buffer[:nbytes]
        self.arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(exc)


def server_context(tmp_path: Path, issued: Issued = BROKER) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.write_pem(tmp_path / "broker.pem"))
    return context


@asynccontextmanager
async def refusing(context: ssl.SSLContext) -> AsyncIterator[Address]:
    """A server that shakes hands with two clients and sends its alerts, which asyncio's does not."""

    def serve(listening: socket.socket) -> None:
        for _ in range(2):
            accepted, _ = listening.accept()
            tls = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
            with contextlib.suppress(OSError):
                tls.do_handshake()
            with socket.socket(fileno=tls.detach()) as raw, contextlib.suppress(OSError):
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(1 << 16):
                    pass  # closing with something unread would discard the alert

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        address = Address("localhost", listening.getsockname()[1])
        try:
            yield address
        finally:
            for _ in range(2):  # so that the thread ends
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", address.port)).close()
            await asyncio.to_thread(thread.join)


@asynccontextmanager
async def serving(context: ssl.SSLContext | None) -> AsyncIterator[Address]:
    """A server that greets, and closes when the client does."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"hello")
            await reader.read()
        except OSError:
            pass
        finally:
            writer.close()

    async with tcp_server(greet, ssl=context) as port:
        yield Address("localhost", port)


def settings(**more: Any) -> SecuritySettings:
    return SecuritySettings(**({"security_protocol": "SSL", "ssl_truststore_certificates": AUTHORITY.pem} | more))


async def greeted(address: Address, used: SecuritySettings, server_name: str | None = None) -> bytes:
    protocol = Received()
    network = TcpNetwork(used, server_name)
    await connect(network, address, protocol, str(address), 5)
    await asyncio.wait({asyncio.ensure_future(protocol.arrived.wait()), protocol.ended}, return_when="FIRST_COMPLETED")
    assert protocol.transport is not None
    protocol.transport.abort()  # from Python 3.12 on, a server waits for its connections
    return protocol.data


async def refused(address: Address, kind: type[Exception], words: str, **more: Any) -> None:
    with pytest.raises(kind, match=re.escape(words)) as raised:
        await connect(TcpNetwork(settings(**more)), address, Received(), "the broker", 5)
    assert "connect at the broker: " in str(raised.value)


async def test_a_trusted_broker_is_connected_to(tmp_path: Path) -> None:
    async with serving(server_context(tmp_path)) as address:
        assert await greeted(address, settings()) == b"hello"


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_the_version_can_be_chosen(tmp_path: Path, version: str) -> None:
    context = server_context(tmp_path)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version.replace(".", "_")]
    async with serving(context) as address:
        assert await greeted(address, settings(ssl_enabled_protocols=[version])) == b"hello"
    other = "TLSv1.3" if version == "TLSv1.2" else "TLSv1.2"
    async with refusing(context) as address:
        await refused(address, TlsError, "Compare ssl_enabled_protocols here", ssl_enabled_protocols=[other])


async def test_names_can_be_left_unverified_but_not_the_rest(tmp_path: Path) -> None:
    async with serving(server_context(tmp_path)) as address:
        by_ip = Address("127.0.0.1", address.port)
        assert await greeted(by_ip, settings(ssl_endpoint_identification_algorithm="")) == b"hello"
        unknown = Authority("other").pem
        used = {"ssl_endpoint_identification_algorithm": "", "ssl_truststore_certificates": unknown}
        await refused(by_ip, TlsError, "the broker's certificate is not trusted", **used)


@provokes(TlsError)
async def test_the_error_for_a_wrong_name_has_the_names_of_the_certificate(tmp_path: Path) -> None:
    async with serving(server_context(tmp_path)) as address:
        await refused(
            Address("127.0.0.1", address.port),
            TlsError,
            "the broker's certificate is not for 127.0.0.1, but for localhost, broker.example. Connect to one of its",
        )
        assert await greeted(Address("127.0.0.1", address.port), settings(), "broker.example") == b"hello"


async def test_a_certificate_without_names_counts_by_its_common_name(tmp_path: Path) -> None:
    async with serving(server_context(tmp_path, AUTHORITY.issue("elsewhere", names=()))) as address:
        await refused(address, TlsError, "not for localhost, but for elsewhere")


async def test_an_unknown_authority_and_an_expired_certificate_have_their_cures(tmp_path: Path) -> None:
    async with serving(server_context(tmp_path)) as address:
        words = (
            "not trusted (unable to get local issuer certificate). Set ssl_truststore_location to a file with the CA"
        )
        await refused(address, TlsError, words, ssl_truststore_certificates=None)
        await refused(address, TlsError, "Add the CA of the broker", ssl_truststore_certificates=Authority("other").pem)
    async with serving(
        server_context(tmp_path, AUTHORITY.issue("broker", names=["localhost"], starts=-3 * DAY, ends=-DAY))
    ) as address:
        await refused(address, TlsError, "(certificate has expired). Ask for a new certificate of the broker")


async def test_a_peer_in_plain_text(tmp_path: Path) -> None:
    async with serving(None) as address:
        await refused(address, TlsError, "the peer does not speak TLS")

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)  # as Kafka does with a ClientHello that it takes for a size
        writer.close()

    async with tcp_server(close) as port:
        address = Address("localhost", port)
        await refused(
            address, ConnectionLostError, "the peer ended the TLS handshake. Is this the port of a TLS listener?"
        )


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_client_shows_its_certificate(tmp_path: Path, version: str) -> None:
    context = server_context(tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=AUTHORITY.pem)
    store = AUTHORITY.client("client").write_pkcs12(tmp_path / "client.p12", "pa55")
    key = {"ssl_keystore_location": str(store), "ssl_keystore_password": "pa55", "ssl_enabled_protocols": [version]}
    async with serving(context) as address:
        assert await greeted(address, settings(**key)) == b"hello"


async def test_a_broker_that_does_not_trust_us_is_named_as_the_one_who_refuses(tmp_path: Path) -> None:
    context = server_context(tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=AUTHORITY.pem)
    store = Authority("other").client("client").write_pem(tmp_path / "client.pem")
    async with refusing(context) as address:
        words = "the broker refused TLS (tlsv1 alert unknown ca). Set ssl_keystore_location to this client's key and a "
        used = {"ssl_keystore_location": str(store), "ssl_enabled_protocols": ["TLSv1.2"]}
        await refused(address, AuthenticationFailedError, words, **used)
    async with refusing(context) as address:
        used = {"ssl_enabled_protocols": ["TLSv1.2"]}
        await refused(address, TlsError, "The broker may want a certificate of this client", **used)


async def test_with_tls_1_3_the_refusal_arrives_after_the_handshake(tmp_path: Path) -> None:
    context = server_context(tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    async with refusing(context) as address:
        with pytest.raises(AuthenticationFailedError) as raised:
            await open_connection(
                TcpNetwork(settings()), address, "the broker", client_id="t", connect_timeout=5, request_timeout=5
            )
    assert str(raised.value).startswith("send ApiVersions at the broker: the broker refused TLS (tlsv13 alert cert")


async def test_a_store_that_cannot_be_read_is_a_mistake_of_the_settings(tmp_path: Path) -> None:
    async with serving(server_context(tmp_path)) as address:
        network = TcpNetwork(settings(ssl_keystore_location=str(tmp_path / "none.pem")))
        with pytest.raises(ConfigurationError, match=r"none\.pem cannot be read"):
            await connect(network, address, Received(), "the broker", 5)


def test_a_key_that_does_not_fit_its_certificate(tmp_path: Path) -> None:
    one, other = AUTHORITY.client("one"), AUTHORITY.issue("other", names=())
    with pytest.raises(TlsError, match="key and certificate do not fit"):
        make_context(settings(ssl_keystore_key=one.key_pem(), ssl_keystore_certificate_chain=other.chain_pem))


def test_a_context_follows_its_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trusted, key = tmp_path / "ca.pem", tmp_path / "client.pem"
    trusted.write_text(AUTHORITY.pem)
    AUTHORITY.client("one").write_pem(key)
    used = settings(
        ssl_truststore_certificates=None, ssl_truststore_location=str(trusted), ssl_keystore_location=str(key)
    )
    tls = Tls(used)
    first = tls.context
    assert tls.context is first
    key.write_text("not finished")
    with caplog.at_level(logging.WARNING):
        assert tls.context is first
        assert tls.context is first
    assert caplog.text.count("the client goes on with the key and trust store from before") == 1
    AUTHORITY.client("two").write_pem(key)
    second = tls.context
    assert second is not first
    trusted.write_text(AUTHORITY.pem * 2)
    third = tls.context
    assert third is not second
    trusted.unlink()
    assert tls.context is third


def test_the_key_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one = AUTHORITY.client("one")
    make_context(settings(ssl_keystore_key=one.key_pem(), ssl_keystore_certificate_chain=one.chain_pem))
    assert list(tmp_path.iterdir()) == []


async def test_the_certificate_of_a_peer_can_be_looked_at_without_trust(tmp_path: Path) -> None:
    async with serving(server_context(tmp_path)) as address:
        der = await peer_certificate(address, 5)
    assert der is not None
    summary = summary_of(der)
    assert (summary.subject, summary.issuer) == ("CN=broker", "CN=Test CA")
    assert summary.names == ("localhost", "broker.example")
    assert summary.not_before < summary.not_after
    async with serving(None) as address:
        assert await peer_certificate(address, 5) is None
    assert names_of(b"no certificate") == ()
