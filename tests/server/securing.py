"""What the tests of TLS listeners share: an authority, the settings of a listener, and its clients."""

from __future__ import annotations

from typing import Any

from odradek.broker.clock import SystemClock
from odradek.broker.security.tls.listener_tls import ListenerTls
from odradek.broker.security.tls.settings import ClientAuth, TlsSettings
from tests.peers.certificates import Authority, Issued
from tests.security.tls.handshakes import client_context
from tests.server.serving import Serving
from tests.server.tls_client import Pieces, TlsClient, whole

AUTHORITY = Authority()


def secured(issued: Issued | None = None, client_auth: ClientAuth = ClientAuth.NONE, **others: Any) -> ListenerTls:
    """TLS for the listener of `serve`, by default with a good certificate and clients without one."""
    issued = issued or AUTHORITY.server()
    settings = TlsSettings(
        keystore_type="PEM",
        keystore_key=issued.key_pem(),
        keystore_certificate_chain=issued.chain_pem,
        truststore_type="PEM",
        truststore_certificates=AUTHORITY.pem,
        client_auth=client_auth,
        **others,
    )
    return ListenerTls("PLAINTEXT", settings, SystemClock())


async def connect(
    serving: Serving,
    issued: Issued | None = None,
    *,
    pieces: Pieces = whole,
    receive_buffer: int | None = None,
    authority: Authority = AUTHORITY,
) -> TlsClient:
    """Connect and shake hands."""
    client = await serving.connect(receive_buffer=receive_buffer)
    return await TlsClient(client, client_context(authority, issued), pieces).handshake()
