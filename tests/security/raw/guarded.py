"""A broker whose clients must authenticate, and the sessions of correct clients as bytes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

from odradek.broker.broker import Broker
from odradek.broker.clock import SystemClock
from odradek.broker.config.jaas import PLAIN_MODULE
from odradek.broker.config.security_rules import UNSECURED_VALIDATOR
from odradek.broker.server.connections import Connections
from odradek.broker.testing.clock import ManualClock
from odradek.protocol import header
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.sasl.scram import SCRAM_SHA_256, salted_password
from odradek.protocol.sasl.scram_client import ScramClient
from tests.peers.certificates import Authority
from tests.security.tls.handshakes import client_context
from tests.server.serving import Client, framed_request
from tests.server.tls_client import Pieces, TlsClient, whole

AUTHORITY: Final = Authority()
RIGHT: Final = b"\0alice\0secret"
SALT: Final = b"a salt that is known"
SASL_AUTHENTICATE: Final = 36

VERSIONS = framed_request("ApiVersions", 3, ApiVersionsRequest("test", "1.0"))
METADATA = framed_request("Metadata", 9, MetadataRequest([]))

Session = Generator[bytes, bytes, None]
"""The frames of a client with their sizes; it is sent the frame of each answer, without its size."""


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return framed_request("SaslHandshake", version, SaslHandshakeRequest(mechanism))


def authenticate(token: bytes = RIGHT, version: int = 2) -> bytes:
    return framed_request("SaslAuthenticate", version, SaslAuthenticateRequest(token))


def bare(token: bytes = RIGHT) -> bytes:
    return SIZE_PREFIX.pack(len(token)) + token


def plain() -> Session:
    yield VERSIONS
    yield handshake()
    yield authenticate()
    yield METADATA


def plain_in_bare_tokens() -> Session:
    yield VERSIONS
    yield handshake(version=0)
    yield bare()
    yield METADATA


def scram() -> Session:
    client = ScramClient(SCRAM_SHA_256, "bob", "secret", "clientNonce")
    yield VERSIONS
    yield handshake("SCRAM-SHA-256")
    answer = yield authenticate(client.first())
    answer = yield authenticate(client.final(token_in(answer)))
    client.verify(token_in(answer))
    yield METADATA


def token_in(answer: bytes) -> bytes:
    """Return the server's token in a frame with an answer to SaslAuthenticate."""
    response: Any = header.decode_response(SASL_AUTHENTICATE, 2, answer)[1]
    assert response.error_code == 0, response
    return bytes(response.auth_bytes)


async def play(
    client: Client | TlsClient, session: Session, limit: int = 1 << 30, *, requests: int = 10
) -> list[bytes]:
    """Send a session, each frame after the answer to the one before; return the answers.

    It ends after `limit` bytes, or so many requests.
    """
    answers: list[bytes] = []
    frame = next(session)
    while limit > 0 and len(answers) < requests:
        await client.send(frame[:limit])
        if limit < len(frame):
            break
        limit -= len(frame)
        answers.append(await client.receive_frame())
        try:
            frame = session.send(answers[-1])
        except StopIteration:
            break
    return answers


class Guarded:
    """A running broker with the listeners CLEAR (SASL_PLAINTEXT) and SECURE (SASL_SSL), and all its clients.

    Its clock stands still. `witness` is an authenticated connection that is served in between.
    """

    def __init__(self, **properties: str) -> None:
        self.clock = ManualClock(SystemClock().time_ms())
        server = AUTHORITY.server()
        self.broker = Broker(
            {
                "listeners": "CLEAR://127.0.0.1:0,SECURE://127.0.0.1:0",
                "listener.security.protocol.map": "CLEAR:SASL_PLAINTEXT,SECURE:SASL_SSL",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
                **{
                    f"listener.name.{name}.{key}": value
                    for name in ("clear", "secure")
                    for key, value in {
                        "plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="secret";',
                        "oauthbearer.sasl.server.callback.handler.class": UNSECURED_VALIDATOR,
                    }.items()
                },
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": server.key_pem(),
                "ssl.keystore.certificate.chain": server.chain_pem,
                "connection.failed.authentication.delay.ms": "0",
                **{name.replace("_", "."): value for name, value in properties.items()},
            },
            clock=self.clock,
        )
        self.clients: list[Client] = []

    async def start(self) -> None:
        await self.broker.start()
        self.witness = await self.connect()
        await play(self.witness, plain())
        salted = salted_password(SCRAM_SHA_256, "secret", SALT, 4096)
        upsertion = ScramCredentialUpsertion("bob", SCRAM_SHA_256.id, 4096, SALT, salted)
        answer = await self.witness.ask(
            "AlterUserScramCredentials", 0, AlterUserScramCredentialsRequest([], [upsertion])
        )
        assert answer.results[0].error_code == 0

    @property
    def connections(self) -> Connections:
        return self.broker.connections

    async def connect(self, listener: str = "CLEAR") -> Client:
        connecting = socket.socket()
        connecting.setblocking(False)
        client = Client(connecting)
        self.clients.append(client)
        address = ("127.0.0.1", self.broker.ports[listener])
        await asyncio.get_running_loop().sock_connect(connecting, address)
        return client

    async def tls(
        self,
        pieces: Pieces = whole,
        version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        kind: type[TlsClient] = TlsClient,
        session: ssl.SSLSession | None = None,
        context: ssl.SSLContext | None = None,
    ) -> TlsClient:
        """Connect to the listener SECURE, and do not shake hands yet."""
        context = context or tls_context(version)
        return kind(await self.connect("SECURE"), context, pieces, session=session)

    async def is_serving(self) -> bool:
        """Whether the witness is answered."""
        return bool((await self.witness.ask("Metadata", 9, MetadataRequest([]))).brokers)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Run the event loop until a condition holds, for at most 20 s."""
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - conditions of any kind, and nothing is slept through
                await asyncio.sleep(0)

    async def is_empty(self) -> None:
        """Wait until no connection is left."""
        await self.until(lambda: not len(self.connections) and not self.connections.handshakes)

    async def alone(self, others: int = 0) -> None:
        """Wait until the witness and `others` are the only connections; the witness and a new client are served."""
        await self.until(lambda: len(self.connections) == 1 + others and not self.connections.handshakes)
        assert await self.is_serving()
        client = await self.connect()
        assert len(await play(client, plain())) == 4
        client.close()
        await self.until(lambda: len(self.connections) == 1 + others)

    def let_pass(self, seconds: float) -> None:
        """Move the clock, and close what is late, as the broker does every few seconds."""
        self.clock.advance(int(seconds * 1000))
        self.connections.close_idle()


Guard = Callable[..., Awaitable[Guarded]]
"""The fixture that starts brokers with further properties."""


def tls_context(version: ssl.TLSVersion) -> ssl.SSLContext:
    """A client's context for this version of TLS only."""
    context = client_context(AUTHORITY)
    context.minimum_version = context.maximum_version = version
    return context


def half_close(client: Client) -> None:
    client.socket.shutdown(socket.SHUT_WR)


async def rest_of(client: Client) -> bytes:
    """Return all that the broker sends until it closes the connection."""
    received = bytearray()
    while piece := await client.receive_some(1 << 16):
        received += piece
    return bytes(received)


def frames_in(data: bytes) -> list[bytes]:
    """Split whole frames; fails if the last one is not whole."""
    found, position = [], 0
    while position < len(data):
        (size,) = SIZE_PREFIX.unpack_from(data, position)
        found.append(data[position + 4 : position + 4 + size])
        position += 4 + size
    assert position == len(data)
    return found


def end(client: Client, number: int) -> None:
    """Close a connection in one of two ways, by turns."""
    (client.close, client.reset)[number % 2]()


def sizes_of(frames: Sequence[bytes]) -> list[int]:
    """The positions at which the frames end in their stream."""
    ends, position = [], 0
    for frame in frames:
        position += len(frame)
        ends.append(position)
    return ends


def open_sockets() -> int:
    """Return how many sockets this process has; files are not counted, because threads open them when they like."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += str(link.readlink()).startswith("socket:")
    return found
