"""A connection of a listener with SASL: sessions that end, clients that authenticate again, sizes, delays."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config.jaas import PLAIN_MODULE
from odradek.broker.testing.movable_clock import MovableClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.peers.certificates import Authority
from tests.security.tls.handshakes import client_context
from tests.server.serving import Client, framed_request
from tests.server.tls_client import TlsClient
from tests.wire import Wire

PREFIX = "listener.name.sasl_plaintext."
PROPERTIES = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    f"{PREFIX}plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="a" user_bob="b";',
    f"{PREFIX}plain.connections.max.reauth.ms": "60000",
    "connection.failed.authentication.delay.ms": "0",
}
ALICE, BOB = b"\0alice\0a", b"\0bob\0b"


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
async def broker(clock: MovableClock) -> AsyncIterator[Broker]:
    async with Broker(PROPERTIES, clock=clock) as started:
        yield started


@pytest.fixture
async def wire(broker: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", broker.port) as connected:
        yield connected


async def authenticate(wire: Wire, token: bytes, version: int = 2) -> tuple[int, int]:
    """Return the error and the lifetime."""
    assert (await wire.ask(SaslHandshakeRequest("PLAIN"), 1)).error_code == ErrorCode.NONE
    answer = await wire.ask(SaslAuthenticateRequest(token), version)
    return answer.error_code, answer.session_lifetime_ms


async def is_served(wire: Wire) -> bool:
    return bool((await wire.ask(MetadataRequest(None), 9)).brokers)


async def test_a_session_lasts_for_the_limit_of_the_mechanism(wire: Wire, broker: Broker, clock: MovableClock) -> None:
    assert await authenticate(wire, ALICE) == (0, 60_000)
    assert {str(each.context.principal) for each in broker.connections} == {"User:alice"}
    await clock.advance(seconds=59)
    assert await is_served(wire)
    await clock.advance(seconds=2)
    await wire.send(MetadataRequest(None), 9)
    assert await wire.is_closed_by_peer()
    assert broker.services.metrics.listener("SASL_PLAINTEXT").expired_sessions == 1


async def test_a_client_that_authenticates_again_goes_on(wire: Wire, clock: MovableClock) -> None:
    await authenticate(wire, ALICE)
    for _ in range(3):
        await clock.advance(seconds=59)
        assert await authenticate(wire, ALICE) == (0, 60_000)
    assert await is_served(wire)


async def test_a_client_may_authenticate_again_after_its_session_has_expired(wire: Wire, clock: MovableClock) -> None:
    await authenticate(wire, ALICE)
    await clock.advance(seconds=100)
    assert await authenticate(wire, ALICE) == (0, 60_000)
    assert await is_served(wire)


async def test_a_client_stays_who_it_was(wire: Wire, clock: MovableClock) -> None:
    await authenticate(wire, ALICE)
    await clock.advance(seconds=2)
    await wire.ask(SaslHandshakeRequest("PLAIN"), 1)
    answer = await wire.ask(SaslAuthenticateRequest(BOB), 2)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert await wire.is_closed_by_peer()


async def test_a_wrong_password_later_ends_the_connection(wire: Wire, broker: Broker, clock: MovableClock) -> None:
    await authenticate(wire, ALICE)
    await clock.advance(seconds=2)
    assert await authenticate(wire, b"\0alice\0wrong") == (ErrorCode.SASL_AUTHENTICATION_FAILED, 0)
    assert await wire.is_closed_by_peer()
    counts = broker.services.metrics.listener("SASL_PLAINTEXT")
    assert (counts.authentications, counts.failed_authentications, counts.failed_reauthentications) == (1, 0, 1)


async def test_a_client_may_not_authenticate_again_within_a_second(wire: Wire) -> None:
    await authenticate(wire, ALICE)
    assert (await wire.ask(SaslHandshakeRequest("PLAIN"), 1)).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert await is_served(wire)


async def test_other_requests_are_refused_while_a_client_authenticates_again(wire: Wire, clock: MovableClock) -> None:
    await authenticate(wire, ALICE)
    await clock.advance(seconds=2)
    await wire.ask(SaslHandshakeRequest("PLAIN"), 1)
    await wire.send(MetadataRequest([]), 9)
    await wire.receive(MetadataRequest([]), 9)
    assert await wire.is_closed_by_peer()


async def test_over_tls_no_earlier_answer_is_in_the_record_of_the_handshakes(
    clock: MovableClock, tmp_path: Path
) -> None:
    """Java's client would wait for more from the socket, with the second answer in its buffer."""
    authority = Authority()
    properties = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="a";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.server().write(tmp_path)),
    }
    handshake = SaslHandshakeRequest("PLAIN")
    async with Broker(properties, clock=clock) as broker:
        with socket.socket() as connected:
            client = Client(connected)
            await asyncio.get_running_loop().sock_connect(connected, ("127.0.0.1", broker.port))
            tls = await TlsClient(client, client_context(authority)).handshake()
            await tls.ask("SaslHandshake", 1, handshake)
            assert (await tls.ask("SaslAuthenticate", 2, SaslAuthenticateRequest(ALICE))).error_code == ErrorCode.NONE
            await clock.advance(seconds=2)
            await tls.send(
                framed_request("Metadata", 9, MetadataRequest([])) + framed_request("SaslHandshake", 1, handshake)
            )
            for _ in range(2):
                record = await tls.receive_record()
                assert struct.unpack_from(">i", record)[0] == len(record) - 4
            assert (await tls.ask("SaslAuthenticate", 2, SaslAuthenticateRequest(ALICE))).error_code == ErrorCode.NONE


async def test_a_connection_is_anonymous_until_it_is_known(broker: Broker) -> None:
    async with Wire("127.0.0.1", broker.port) as wire:
        await wire.ask(SaslHandshakeRequest("PLAIN"), 1)
        assert [str(each.context.principal) for each in broker.connections] == ["User:ANONYMOUS"]


async def test_requests_sent_before_the_answer_wait_for_it(wire: Wire) -> None:
    await wire.send(SaslHandshakeRequest("PLAIN"), 1)
    await wire.send(SaslAuthenticateRequest(ALICE), 2)
    await wire.send(MetadataRequest([]), 9)
    await wire.receive(SaslHandshakeRequest(), 1)
    assert (await wire.receive(SaslAuthenticateRequest(), 2)).error_code == ErrorCode.NONE
    await wire.receive(MetadataRequest([]), 9)


async def test_a_failure_is_answered_after_its_delay(clock: MovableClock) -> None:
    properties = {**PROPERTIES, "connection.failed.authentication.delay.ms": 5000}
    async with Broker(properties, clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
        await wire.ask(SaslHandshakeRequest("PLAIN"), 1)
        await wire.send(SaslAuthenticateRequest(b"\0alice\0wrong"), 2)
        async with Wire("127.0.0.1", broker.port) as other:  # others are served meanwhile
            assert await authenticate(other, ALICE) == (0, 60_000)
        await clock.advance(seconds=6)
        assert (await wire.receive(SaslAuthenticateRequest(), 2)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await wire.is_closed_by_peer()


@pytest.mark.parametrize("size", [1, 100, 70_000])
async def test_a_request_over_the_limit_closes_a_connection_that_is_not_authenticated(size: int) -> None:
    properties = {**PROPERTIES, "sasl.server.max.receive.size": size}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await wire.send(SaslHandshakeRequest("PLAIN"), 1)
        await wire.send(SaslAuthenticateRequest(b"x" * size), 2)
        assert len(await wire.reader.read()) < 100  # nothing, or the answer to the handshake
