"""Handshakes in memory, between a context of the broker and one of a test's client."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from tests.peers.certificates import Authority, Issued


class Outcome(NamedTuple):
    """A finished handshake. `peer` is the client's certificate as the server sees it, in DER."""

    version: str | None
    suite: str
    peer: bytes | None


def client_context(authority: Authority, issued: Issued | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem)
    if issued is not None:
        load_chain(context, issued)
    return context


def load_chain(context: ssl.SSLContext, issued: Issued) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as directory:
        context.load_cert_chain(issued.write(Path(directory), "client"))


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> Outcome:
    """Shake hands and exchange a byte each way. Raises the `ssl.SSLError` of the side that fails first."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    connecting = client.wrap_bio(to_client, to_server, server_hostname=host)
    is_done = {serving: False, connecting: False}
    while not all(is_done.values()):
        for side in (connecting, serving):
            if not is_done[side]:
                try:
                    side.do_handshake()
                    is_done[side] = True
                except ssl.SSLWantReadError:
                    pass
    connecting.write(b"?")
    assert serving.read(1) == b"?"
    serving.write(b"!")
    assert connecting.read(1) == b"!"
    suite = serving.cipher()
    assert suite is not None
    return Outcome(serving.version(), suite[0], serving.getpeercert(binary_form=True))
