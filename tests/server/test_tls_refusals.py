"""The end of a TLS handshake that is refused: the client reads why, and its socket does not stay for long."""

from __future__ import annotations

import contextlib
import ssl

import pytest

from odradek.broker.security.tls.settings import ClientAuth
from odradek.broker.server import tls_handshakes
from odradek.broker.server.tls_handshakes import MOST_DRAINED
from tests.security.tls.handshakes import client_context
from tests.server.securing import AUTHORITY, secured
from tests.server.serving import Serve, Serving, lines_of
from tests.server.tls_client import TlsClient


async def refused(serving: Serving, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> TlsClient:
    """Connect without the certificate that is required. In TLS 1.3 the client learns of that later."""
    context = client_context(AUTHORITY)
    context.maximum_version = version
    return await TlsClient(await serving.connect(), context).handshake()


async def test_the_alert_arrives_although_the_client_has_sent_requests(serve: Serve) -> None:
    serving = await serve(tls=secured(client_auth=ClientAuth.REQUIRED))
    for size in (0, 1, 100, 5000, 100_000):
        client = await refused(serving)
        await client.send(bytes(size))
        with pytest.raises(ssl.SSLError) as error:
            await client.receive_exactly(1)
        assert error.value.reason == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
        client.client.close()
    await serving.until(lambda: not serving.connections.handshakes)


async def test_requests_that_are_sent_after_the_alert_do_not_reset_it(serve: Serve) -> None:
    serving = await serve(tls=secured(client_auth=ClientAuth.REQUIRED))
    client = await refused(serving)
    await client.client.receive_some(1)  # the first byte of the alert
    for _ in range(5):
        await client.send(bytes(1000))
    while await client.client.receive_some(1 << 16):
        pass  # the end of the stream, and no reset
    assert serving.connections.handshakes == 1
    client.client.close()
    await serving.until(lambda: not serving.connections.handshakes)


async def test_a_client_of_tls_1_2_reads_the_alert(serve: Serve) -> None:
    serving = await serve(tls=secured(client_auth=ClientAuth.REQUIRED))
    with pytest.raises(ssl.SSLError) as error:
        await refused(serving, ssl.TLSVersion.TLSv1_2)
    assert error.value.reason == "SSLV3_ALERT_HANDSHAKE_FAILURE"


async def test_a_refused_client_that_goes_on_sending_is_closed(serve: Serve) -> None:
    serving = await serve(tls=secured(client_auth=ClientAuth.REQUIRED))
    client = await refused(serving)
    with contextlib.suppress(ConnectionError):
        while serving.connections.handshakes:
            await client.send(bytes(MOST_DRAINED // 4))
    await serving.until(lambda: not serving.connections.handshakes)


async def test_a_refused_client_that_stays_is_closed_at_the_limit_of_the_handshake(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_handshakes, "LIMIT_SECONDS", 0.3)
    serving = await serve(tls=secured(client_auth=ClientAuth.REQUIRED))
    staying = [await refused(serving) for _ in range(3)]
    await serving.until(lambda: not serving.connections.handshakes)
    [line] = lines_of(caplog)
    assert "peer did not return a certificate" in line
    for client in staying:
        client.client.close()


async def test_a_stop_closes_refused_clients(serve: Serve) -> None:
    serving = await serve(tls=secured(client_auth=ClientAuth.REQUIRED))
    client = await refused(serving)
    while await client.client.receive_some(1 << 16):
        pass
    serving.server.stop_accepting()
    assert serving.connections.handshakes == 0
