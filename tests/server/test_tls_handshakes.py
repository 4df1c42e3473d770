"""Handshakes of a TLS listener: what ends them, what they count for, and new certificates under load."""

from __future__ import annotations

import asyncio
import random
import ssl
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.request.context import RequestContext
from odradek.broker.security.tls import listener_tls
from odradek.broker.security.tls.listener_tls import ListenerTls
from odradek.broker.security.tls.settings import ClientAuth, TlsSettings, TlsSettingsError
from odradek.broker.security.tls.stores import Credentials, read_credentials
from odradek.broker.server import tls_handshakes
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.effort import cases, some
from tests.peers.certificates import DAY, Authority
from tests.security.tls.handshakes import client_context
from tests.server.securing import AUTHORITY, connect, secured
from tests.server.serving import METADATA_VERSION, Serve, Serving, default_handlers, framed_request, lines_of
from tests.server.tls_client import TlsClient


async def ask(client: TlsClient) -> Any:
    return await client.ask("Metadata", METADATA_VERSION, MetadataRequest())


async def test_silent_and_slow_clients_are_closed_with_one_line(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_handshakes, "LIMIT_SECONDS", 0.2)
    serving = await serve(tls=secured())
    silent, half_hello, after_hello = [await serving.connect() for _ in range(3)]
    await half_hello.send(b"\x16\x03\x01\x02\x00\x01\x00")
    context, bio = client_context(AUTHORITY), (ssl.MemoryBIO(), ssl.MemoryBIO())
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(*bio, server_hostname="localhost").do_handshake()
    await after_hello.send(bio[1].read())
    assert await silent.is_closed()
    assert await half_hello.is_closed()
    while await after_hello.receive_some(1 << 16):
        pass
    lines = lines_of(caplog)
    assert len(lines) == 1
    assert lines[0].startswith("TLS handshake failed listener=PLAINTEXT peer=127.0.0.1:")
    assert lines[0].endswith('reason="the handshake took longer than 0 s"')


async def test_a_stalled_client_does_not_delay_others(serve: Serve) -> None:
    serving = await serve(tls=secured())
    for _ in range(100):
        await (await serving.connect()).send(b"\x16\x03\x01\x02\x00\x01\x00")
    await ask(await connect(serving))


async def test_plaintext_to_a_tls_listener_is_one_line_however_often(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    serving = await serve(tls=secured())
    for data in (framed_request("Metadata", METADATA_VERSION, MetadataRequest()), b"GET / HTTP/1.1\r\n\r\n", b"\0") * 5:
        client = await serving.connect()
        await client.send(data)
        assert await client.is_closed()
    (line,) = lines_of(caplog)
    assert line.endswith('reason="the client does not speak TLS: its security.protocol must be SSL or SASL_SSL"')
    serving.clock.advance(11_000)
    client = await serving.connect()
    await client.send(b"\0")
    assert await client.is_closed()
    assert lines_of(caplog)[-1].endswith("not_logged=14")


async def test_tls_to_a_listener_without_is_one_line_however_often(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    serving = await serve()
    for _ in range(5):
        with pytest.raises((ssl.SSLError, EOFError, ConnectionResetError)):
            await connect(serving)
    (line,) = lines_of(caplog)
    assert line.startswith("connection closed listener=PLAINTEXT peer=127.0.0.1:")
    assert 'reason="the client speaks TLS, this listener does not' in line


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("threading.Thread.start", RuntimeError("can't start new thread")),
        ("odradek.broker.server.tls_stream.TlsStream.shake_hands", MemoryError("no memory")),
    ],
)
async def test_a_step_that_fails_in_the_broker_closes_only_its_client(
    serve: Serve, caplog: pytest.LogCaptureFixture, broken: str, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    serving = await serve(tls=secured())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broken, fail)
        for _ in range(2):
            client = await serving.connect()
            await client.send(b"\x16\x03\x01\x02\x00\x01\x00")
            assert await client.is_closed()
    (line,) = lines_of(caplog)
    assert f"{type(error).__name__}: {error}" in line
    await ask(await connect(serving))


async def test_a_port_scan_is_no_line(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    serving = await serve(tls=secured())
    for end in ("close", "reset"):
        client = await serving.connect()
        getattr(client, end)()
    await ask(await connect(serving))
    assert lines_of(caplog) == []


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        ("none", "peer did not return a certificate"),
        ("expired", "the client's certificate is not valid: certificate has expired"),
        ("other", "the client's certificate is not valid: "),
        ("unmapped", "no rule of ssl.principal.mapping.rules applies to the certificate of CN=bob"),
    ],
)
async def test_a_client_certificate_that_is_refused_is_one_line_with_the_reason(
    serve: Serve, caplog: pytest.LogCaptureFixture, client: str, reason: str
) -> None:
    issued = {
        "none": None,
        "expired": AUTHORITY.expired(client=True),
        "other": Authority("other").client(),
        "unmapped": AUTHORITY.client("bob"),
    }[client]
    rules = "RULE:^CN=(alice)$/$1/"
    serving = await serve(tls=secured(client_auth=ClientAuth.REQUIRED, principal_mapping_rules=rules))
    with pytest.raises((ssl.SSLError, EOFError, ConnectionResetError)):
        await ask(await connect(serving, issued))
    await serving.until(lambda: bool(lines_of(caplog)))  # the client may have the alert before
    (line,) = lines_of(caplog)
    assert reason in line
    await ask(await connect(serving, AUTHORITY.client("alice")))


async def test_a_client_that_does_not_trust_the_certificate_is_one_line(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    serving = await serve(tls=secured(AUTHORITY.wrong_host()))
    tls = TlsClient(await serving.connect(), client_context(AUTHORITY))
    with pytest.raises(ssl.SSLCertVerificationError):
        await tls.handshake()
    await tls.flush()  # the alert
    await serving.until(lambda: bool(lines_of(caplog)))
    (line,) = lines_of(caplog)
    assert "the client refuses the connection" in line


async def test_silent_clients_take_a_quarter_of_a_listener_without_sasl(serve: Serve) -> None:
    serving = await serve(tls=secured(), max_connections="20")
    known = await connect(serving)
    await ask(known)  # for the broker, too, its handshake is over
    silent = [await serving.connect() for _ in range(30)]
    refused = serving.metrics.listener("PLAINTEXT")
    await serving.until(lambda: refused.refused + serving.connections.handshakes == len(silent))

    assert serving.connections.handshakes == 5
    for client in silent[:-5]:
        assert await client.is_closed()
    await ask(await connect(serving))
    await ask(known)


async def test_handshakes_count_as_connections(serve: Serve) -> None:
    serving = await serve(tls=secured(), max_connections="8")
    silent = await serving.connect()
    for _ in range(7):
        await ask(await connect(serving))
    waiting = await serving.connect()
    late = asyncio.ensure_future(TlsClient(waiting, client_context(AUTHORITY)).handshake())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not late.done()
    silent.close()
    await ask(await late)


async def test_handshakes_count_for_their_address(serve: Serve) -> None:
    serving = await serve(tls=secured(), max_connections_per_ip="1")
    silent = await serving.connect()
    refused = await serving.connect()
    assert await refused.is_closed()
    silent.close()
    await serving.until(lambda: serving.connections.limits.allows("127.0.0.1"))
    await ask(await connect(serving))


async def test_a_stop_closes_unfinished_handshakes(serve: Serve) -> None:
    serving = await serve(tls=secured(), max_connections="8")
    silent, other = await serving.connect(), await serving.connect()
    await serving.until(lambda: serving.connections.handshakes == 2)
    await other.send(b"\x16\x03")
    for _ in range(10):
        await asyncio.sleep(0)
    serving.server.stop_accepting()
    assert await silent.is_closed()
    assert await other.is_closed()
    assert serving.connections.handshakes == 0


async def test_a_resumed_session_has_its_principal_until_the_certificate_expires(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """OpenSSL does not examine the certificate of a resumed session again."""
    handlers, principals = default_handlers(), []

    def handle(context: RequestContext, request: object) -> MetadataResponse:
        principals.append(str(context.connection.principal))
        return MetadataResponse()

    handlers.on("Metadata", handle)
    clock = ManualClock(SystemClock().time_ms())
    tls = ListenerTls("PLAINTEXT", secured(client_auth=ClientAuth.REQUIRED).settings, clock)
    serving = await serve(handlers, tls=tls, clock=clock)
    context = client_context(AUTHORITY, AUTHORITY.client("alice"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    first = await TlsClient(await serving.connect(), context).handshake()
    await ask(first)
    session = first.tls.session
    second = await TlsClient(await serving.connect(), context, session=session).handshake()
    await ask(second)
    assert second.tls.session_reused
    assert principals == ["User:CN=alice", "User:CN=alice"]
    clock.advance(31 * 24 * 3600 * 1000)
    with pytest.raises((ssl.SSLError, EOFError, ConnectionResetError)):
        await ask(await TlsClient(await serving.connect(), context, session=session).handshake())
    assert "the client's certificate has expired since its session began" in lines_of(caplog)[-1]


async def test_every_prefix_of_a_handshake_and_any_garbage_end_in_a_closed_connection(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    serving = await serve(tls=secured())
    made = ssl.MemoryBIO()
    connecting = client_context(AUTHORITY).wrap_bio(ssl.MemoryBIO(), made, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        connecting.do_handshake()
    hello, source = made.read(), random.Random(3)
    for end in some(range(1, len(hello))):
        client = await serving.connect()
        await client.send(hello[:end])
        client.close()
    for _ in range(cases(200)):
        client = await serving.connect()
        spoilt = bytearray(hello)
        for _ in range(source.randrange(1, 10)):
            spoilt[source.randrange(1, len(spoilt))] = source.randrange(256)
        await client.send(bytes(spoilt))
        client.close()
    await ask(await connect(serving))
    await serving.until(lambda: len(serving.connections) == 1 and not serving.connections.handshakes)
    lines = lines_of(caplog)
    assert len(lines) == len({line.partition("reason=")[2] for line in lines})  # one of each kind
    assert not [record for record in caplog.records if record.exc_info]


def keystore(directory: Path, **others: Any) -> TlsSettings:
    return TlsSettings(keystore_type="PEM", keystore_location=str(directory / "server.pem"), **others)


async def serial_of(serving: Serving) -> int:
    """The serial number of the certificate that a new client is shown."""
    from cryptography import x509

    client = await connect(serving)
    await ask(client)
    shown = client.tls.getpeercert(binary_form=True)
    assert shown is not None
    client.client.close()
    return x509.load_der_x509_certificate(shown).serial_number


async def test_a_keystore_that_is_replaced_under_load_costs_no_connection(serve: Serve, tmp_path: Path) -> None:
    AUTHORITY.server().write(tmp_path)
    tls = ListenerTls("PLAINTEXT", keystore(tmp_path), SystemClock())
    serving = await serve(tls=tls)
    clients = [await connect(serving) for _ in range(4)]
    is_over, answered = False, [0] * len(clients)

    async def load(number: int) -> None:
        while not is_over:
            await ask(clients[number])
            answered[number] += 1

    async def connecting() -> None:
        while not is_over:
            client = await connect(serving)
            await ask(client)
            client.client.close()

    tasks = [asyncio.ensure_future(load(number)) for number in range(len(clients))]
    tasks.append(asyncio.ensure_future(connecting()))
    for kind in ("rsa", "ecdsa", "rsa"):
        before = list(answered)
        issued = AUTHORITY.server(kind)  # type: ignore[arg-type]
        issued.write(tmp_path)
        serving.server.tick()
        context = tls.context
        await serving.until(lambda context=context: tls.context is not context)
        assert await serial_of(serving) == issued.certificate.serial_number
        await serving.until(lambda before=before: all(now > then for now, then in zip(answered, before, strict=True)))
    is_over = True
    await asyncio.gather(*tasks)
    for client in clients:
        await ask(client)


async def test_a_keystore_that_cannot_be_used_leaves_the_old_one_and_one_line(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    issued = AUTHORITY.server()
    path = issued.write(tmp_path)
    tls = ListenerTls("PLAINTEXT", keystore(tmp_path), SystemClock())
    serving = await serve(tls=tls)
    path.write_text("half a fi")
    for _ in range(3):
        await asyncio.to_thread(tls.check_files)
    (line,) = lines_of(caplog)
    assert line.startswith('TLS certificate not loaded, the old one stays listener=PLAINTEXT reason="ssl.keystore.loc')
    assert await serial_of(serving) == issued.certificate.serial_number
    path.unlink()
    for _ in range(3):
        tls.check_files()
    assert len(lines_of(caplog)) == 2
    again = AUTHORITY.server()
    again.write(tmp_path)
    tls.check_files()
    assert await serial_of(serving) == again.certificate.serial_number


def test_a_certificate_of_somebody_else_is_refused_unless_that_is_allowed(tmp_path: Path) -> None:
    AUTHORITY.server().write(tmp_path)
    tls = ListenerTls("L", keystore(tmp_path), SystemClock())
    AUTHORITY.issue("somebody").write(tmp_path)
    with pytest.raises(TlsSettingsError, match=r"is of CN=somebody, the one in use of CN=localhost: set ssl.allow.dn"):
        tls.reload()
    tls.reload(keystore(tmp_path, allow_dn_changes=True))
    AUTHORITY.issue("somebody", names=("localhost", "new.example")).write(tmp_path)
    with pytest.raises(TlsSettingsError, match=r"lacks alternative names of the one in use, IPAddress:127.0.0.1: set"):
        tls.reload()
    AUTHORITY.issue("somebody", names=("localhost", "127.0.0.1", "new.example")).write(tmp_path)
    tls.reload()  # more names are no change, as in Kafka
    AUTHORITY.issue("somebody", names=()).write(tmp_path)
    tls.reload(keystore(tmp_path, allow_san_changes=True))


def test_an_expired_certificate_is_served_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    AUTHORITY.expired().write(tmp_path)
    ListenerTls("L", keystore(tmp_path), SystemClock())
    assert lines_of(caplog) == ['TLS certificate has expired listener=L certificate="CN=localhost"']


async def test_the_metric_is_the_first_expiry_of_the_chain(serve: Serve, tmp_path: Path) -> None:
    issued = AUTHORITY.issue(ends=7 * DAY)
    issued.write(tmp_path)
    serving = await serve(tls=ListenerTls("PLAINTEXT", keystore(tmp_path), SystemClock()))
    listener = serving.metrics.listener("PLAINTEXT")
    assert listener.certificate_expiry == issued.certificate.not_valid_after_utc.timestamp()
    again = AUTHORITY.issue(ends=9 * DAY)
    again.write(tmp_path)
    serving.server.tick()
    expiry = again.certificate.not_valid_after_utc.timestamp()
    await serving.until(lambda: bool(serving.server.tick() or listener.certificate_expiry == expiry))


def test_a_file_that_is_completed_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AUTHORITY.server().write(tmp_path)
    tls = ListenerTls("L", keystore(tmp_path), SystemClock())
    issued = AUTHORITY.issue(ends=9 * DAY)
    (tmp_path / "server.pem").write_text(issued.key_pem())

    def read(settings: TlsSettings) -> Credentials:
        try:
            return read_credentials(settings)
        finally:
            (tmp_path / "server.pem").write_text(issued.key_pem() + issued.chain_pem)

    monkeypatch.setattr(listener_tls, "read_credentials", read)
    for _ in range(2):
        tls.check_files()
    assert tls.certificate_expiry_timestamp == issued.certificate.not_valid_after_utc.timestamp()
