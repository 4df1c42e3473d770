"""The attacker of `waiting`, a process of its own: it keeps some requests unanswered; if it is closed, it reconnects.

Also how it and its victim connect to each kind of listener.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import socket
import ssl
from pathlib import Path
from typing import NamedTuple, Protocol

from odradek.broker.config.jaas import MODULES
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.fuzz.worst_requests import Worst, framed
from tests.peers.certificates import Authority

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")
_USER, _PASSWORD = "worst", "secret"


class Event(Protocol):
    """Tells the attacker to stop."""

    def is_set(self) -> bool: ...


class Endpoint(NamedTuple):
    """A listener, and the certificate of the authority that a client trusts."""

    listener: str
    host: str
    port: int
    ca: Path

    @property
    def tls(self) -> ssl.SSLContext | None:
        if self.listener != "SSL":
            return None
        context = ssl.create_default_context(cafile=str(self.ca))
        context.check_hostname = False
        return context

    @property
    def greetings(self) -> list[bytes]:
        """The frames that authenticate a client; each is answered before the next."""
        if self.listener != "SASL_PLAINTEXT":
            return []
        proof = b"\0".join((b"", _USER.encode(), _PASSWORD.encode()))
        return [framed(SaslHandshakeRequest("PLAIN"), 1), framed(SaslAuthenticateRequest(proof), 2)]

    def connect(self, timeout: float) -> socket.socket:
        """Connect a blocking socket, and authenticate."""
        connected = socket.create_connection((self.host, self.port), timeout=timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is not None:
            connected = self.tls.wrap_socket(connected)
        for frame in self.greetings:
            connected.sendall(frame)
            receive(connected)
        return connected


def properties(ports: dict[str, int], directory: Path) -> dict[str, str]:
    """The properties of a broker with these listeners, whose certificate and authority are written to `directory`."""
    authority = Authority()
    (directory / "ca.pem").write_text(authority.pem)
    authority.server().write_pem(directory / "broker.pem")
    jaas = f'{MODULES["PLAIN"]} required user_{_USER}="{_PASSWORD}";'
    return {
        "listeners": ",".join(f"{listener}://127.0.0.1:{port}" for listener, port in ports.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "delegation.token.secret.key": "secret",
    }


def receive(peer: socket.socket) -> bytes:
    """Receive one frame. Raises EOFError."""
    (size,) = SIZE_PREFIX.unpack(_exactly(peer, 4))
    return _exactly(peer, size)


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = peer.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def attack(
    endpoint: Endpoint,
    worst: Worst,
    size: int,
    pipelined: int,
    stop: Event,
    counts: multiprocessing.Queue[tuple[int, int]],
) -> None:
    """Send one kind of request until `stop` is set, then report how often it was answered, and closed."""
    counts.put(asyncio.run(Attacker(endpoint, worst, size, pipelined).run(stop)))


class Attacker:
    """One client with `pipelined` unanswered requests of a kind."""

    def __init__(self, endpoint: Endpoint, worst: Worst, size: int, pipelined: int) -> None:
        self._endpoint = endpoint
        self._worst = worst
        self._frame = worst.frame(size)
        self._pipelined = pipelined
        self.answered = 0
        self.closed = 0

    async def run(self, stop: Event) -> tuple[int, int]:
        """Return the numbers of answers and of closed connections, once `stop` is set."""
        while not stop.is_set():
            with contextlib.suppress(OSError, EOFError):
                await self._connection(stop)
        return self.answered, self.closed

    async def _connection(self, stop: Event) -> None:
        endpoint = self._endpoint
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=endpoint.tls)
        try:
            for frame in endpoint.greetings:
                await self._ask(reader, writer, frame)
            answer = await self._ask(reader, writer, self._frame)
            self.answered += 1
            following = iter(lambda: self._frame, None) if self._worst.follow is None else self._worst.follow(answer)
            for _ in range(self._pipelined):
                writer.write(next(following))
            while not stop.is_set():
                await self._receive(reader)
                self.answered += 1
                writer.write(next(following))
        except (ConnectionError, EOFError):
            self.closed += 1
        finally:
            writer.transport.abort()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes) -> bytes:
        writer.write(frame)
        return await self._receive(reader)

    @staticmethod
    async def _receive(reader: asyncio.StreamReader) -> bytes:
        (size,) = SIZE_PREFIX.unpack(await reader.readexactly(SIZE_PREFIX.size))
        return await reader.readexactly(size)
