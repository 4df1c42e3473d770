"""What clients may do while they authenticate, step by step, and what the server answers: for any Kafka.

A server has a listener with SASL_PLAINTEXT, the mechanism PLAIN, and the user alice with the password secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.schema import Message
from tests.wire import Wire

CLOSED = "closed"
RIGHT = b"\0alice\0secret"
WRONG = b"\0alice\0wrong"
_PATIENCE_SECONDS = 10.0


class Ask(NamedTuple):
    """A request."""

    request: Message
    version: int


class Bare(NamedTuple):
    """A token without a request around it, which SaslHandshake 0 announces."""

    token: bytes


class Announce(NamedTuple):
    """The size of a frame that does not follow."""

    size: int


Step = Ask | Bare | Announce


def versions(version: int = 3, software: str = "test") -> Ask:
    return Ask(ApiVersionsRequest(software, "1.0"), version)


def handshake(mechanism: str = "PLAIN", version: int = 1) -> Ask:
    return Ask(SaslHandshakeRequest(mechanism), version)


def authenticate(token: bytes = RIGHT, version: int = 2) -> Ask:
    return Ask(SaslAuthenticateRequest(token), version)


def metadata() -> Ask:
    return Ask(MetadataRequest([MetadataRequestTopic(name="nothing")], allow_auto_topic_creation=False), 9)


SCRIPTS: dict[str, Sequence[Step]] = {
    "the usual order": [versions(), handshake(), authenticate(), metadata()],
    "without ApiVersions": [handshake(), authenticate(version=0), metadata()],
    "with version 1": [handshake(), authenticate(version=1), metadata()],
    "with bare tokens": [handshake(version=0), Bare(RIGHT), metadata()],
    "a wrong password": [handshake(), authenticate(WRONG), metadata()],
    "an unknown user": [handshake(), authenticate(b"\0nobody\0secret"), metadata()],
    "another authorization id": [handshake(), authenticate(b"bob\0alice\0secret"), metadata()],
    "the same authorization id": [handshake(), authenticate(b"alice\0alice\0secret"), metadata()],
    "an empty token": [handshake(), authenticate(b""), metadata()],
    "a token of two parts": [handshake(), authenticate(b"alice\0secret"), metadata()],
    "a token that is not UTF-8": [handshake(), authenticate(b"\0\xff\0secret"), metadata()],
    "a wrong password in a bare token": [handshake(version=0), Bare(WRONG), metadata()],
    "a mechanism that is not enabled": [handshake("OAUTHBEARER"), handshake()],
    "a mechanism that is not enabled, version 0": [handshake("GSSAPI", 0), handshake()],
    "no mechanism": [handshake(""), handshake()],
    "a request before the handshake": [metadata()],
    "a request after ApiVersions": [versions(), metadata()],
    "acks=0 before the handshake": [Ask(ProduceRequest(acks=0), 9)],
    "ApiVersions twice": [versions(), versions(), handshake()],
    "ApiVersions after an invalid one": [versions(software="-"), versions(), handshake()],
    "ApiVersions twice after success": [handshake(), authenticate(), versions(), versions(), metadata()],
    "a token before the handshake": [authenticate()],
    "a request after the handshake": [handshake(), metadata(), authenticate()],
    "ApiVersions after the handshake": [handshake(), versions(), authenticate()],
    "a bare token before the handshake": [Bare(RIGHT)],
    "a bare token after SaslHandshake 1": [handshake(), Bare(RIGHT)],
    "an empty bare token": [handshake(version=0), Bare(b"")],
    "a request in place of a bare token": [handshake(version=0), authenticate()],
    "a second handshake": [handshake(), handshake(), authenticate()],
    "a token after success": [handshake(), authenticate(), authenticate(), metadata()],
    "authentication again, too early": [handshake(), authenticate(), handshake(), metadata()],
    "ApiVersions of an unknown version": [versions(4), handshake(), authenticate(), metadata()],
    "the largest bare token": [handshake(version=0), Bare(b"\0alice\0" + b"s" * (512 * 1024 - 7))],
    "a larger bare token": [handshake(version=0), Bare(b"\0alice\0" + b"s" * (512 * 1024 - 6))],
    "a large token": [handshake(), authenticate(b"\0alice\0" + b"s" * 1_000_000)],
    "a frame of 2 GiB": [Announce(0x7FFF_FFFF)],
    "a frame of 2 GiB after the handshake": [handshake(), Announce(0x7FFF_FFFF)],
    "a frame of 50 MiB": [Announce(50 << 20)],
    "a frame of 2 GiB after success": [handshake(), authenticate(), Announce(0x7FFF_FFFF)],
    "a negative frame": [Announce(-1)],
    "a negative frame after success": [handshake(), authenticate(), Announce(-1)],
    "an empty frame": [Announce(0)],
    "an empty frame after success": [handshake(), authenticate(), Announce(0)],
}


async def play(host: str, port: int, steps: Sequence[Step]) -> list[Any]:
    """Return what the server answers to each step, until it closes the connection."""
    seen: list[Any] = []
    async with Wire(host, port) as wire:
        for step in steps:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    seen.append(await _take(wire, step))
            except (asyncio.IncompleteReadError, ConnectionError):
                seen.append(CLOSED)
            if seen[-1] == CLOSED:
                break
    return seen


async def _take(wire: Wire, step: Step) -> Any:
    if isinstance(step, Ask):
        return _seen(await wire.ask(step.request, step.version))
    data = SIZE_PREFIX.pack(step.size) + bytes(8) if isinstance(step, Announce) else _framed(step.token)
    wire.writer.write(data)
    await wire.writer.drain()
    (size,) = SIZE_PREFIX.unpack(await wire.reader.readexactly(SIZE_PREFIX.size))
    return await wire.reader.readexactly(size)


def _framed(token: bytes) -> bytes:
    return SIZE_PREFIX.pack(len(token)) + token


def _seen(response: Any) -> dict[str, Any]:
    """Return what the client may rely on in a response."""
    fields = {"error_code", "error_message", "mechanisms", "auth_bytes"}
    found = {name: getattr(response, name) for name in fields if hasattr(response, name)}
    return {**found, "kind": type(response).__name__}
