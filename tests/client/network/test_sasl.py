"""Authentication of a connection: what is sent, what refusals say, and sessions that end."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from typing import Any

import pytest

from odradek.client import (
    Admin,
    AuthenticationFailedError,
    ConfigurationError,
    ConnectionLostError,
    UnsupportedVersionError,
)
from odradek.client.config import Address
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.connections import authenticator_of
from odradek.client.network.sasl import Authenticator
from odradek.client.security.settings import SecuritySettings
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.sasl.scram import SCRAM_SHA_256, ScramCredential, is_proof, server_signature
from odradek.protocol.sasl.scram_messages import ClientFinal, ClientFirst, ServerFinal, ServerFirst, auth_message
from tests.client.provoked_errors import provokes
from tests.client.scripted_broker import DROP, Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate
from tests.client.virtual_time import simulated

BROKER = Address("broker1", 9092)


def settings(mechanism: str = "PLAIN", **more: Any) -> SecuritySettings:
    user = {} if mechanism == "OAUTHBEARER" else {"sasl_username": "alice", "sasl_password": "geheim"}
    return SecuritySettings(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, **(user | more))


def authenticator(mechanism: str = "PLAIN", **more: Any) -> Authenticator:
    made = authenticator_of(settings(mechanism, **more))
    assert made is not None
    return made


def with_sasl(network: ScriptedNetwork) -> Broker:
    broker = network.brokers[1]
    broker.versions |= {17: (0, 1), 36: (0, 2)}
    return broker


async def connect(network: ScriptedNetwork, authenticates: Authenticator) -> Connection:
    return await open_connection(
        network, BROKER, str(BROKER), client_id="t", connect_timeout=1, request_timeout=5, authenticator=authenticates
    )


async def agree(broker: Broker, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(mechanisms=[request.mechanism])


def say(token: bytes = b"", lifetime_ms: int = 0, error: int = 0, message: str | None = None) -> Any:
    async def answer(broker: Broker, request: Any) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(error, message, token, lifetime_ms)

    return answer


@simulated
async def test_plain_sends_user_and_password_before_any_other_request() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)
    broker.script("SaslAuthenticate", say())
    connection = await connect(network, authenticator())
    kinds = [type(request) for request in broker.requests]
    assert kinds == [ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest]
    assert broker.requests[1].mechanism == "PLAIN"
    assert bytes(broker.requests[2].auth_bytes) == b"\0alice\0geheim"
    connection.close()


@simulated
async def test_every_connection_of_a_client_is_authenticated() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree, agree)
    broker.script("SaslAuthenticate", say(), say())
    used = settings()
    async with Admin(
        network.bootstrap,
        network=network,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=used.sasl_username,
        sasl_password=used.sasl_password,
    ):
        assert [bytes(one.auth_bytes) for one in broker.received(SaslAuthenticateRequest)] == [b"\0alice\0geheim"]


@simulated
async def test_a_broker_without_the_mechanism_names_those_that_it_has() -> None:
    network = ScriptedNetwork()

    async def refuse(broker: Broker, request: Any) -> SaslHandshakeResponse:
        return SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["SCRAM-SHA-256", "OAUTHBEARER"])

    with_sasl(network).script("SaslHandshake", refuse)
    with pytest.raises(AuthenticationFailedError) as raised:
        await connect(network, authenticator())
    assert str(raised.value) == (
        "authenticate as alice with PLAIN at broker1:9092: the broker has not enabled this mechanism; it offers "
        "SCRAM-SHA-256, OAUTHBEARER. Set sasl_mechanism to one that it offers"
    )
    assert not raised.value.retriable


@simulated
async def test_a_listener_without_sasl_says_so() -> None:
    network = ScriptedNetwork()

    async def refuse(broker: Broker, request: Any) -> SaslHandshakeResponse:
        return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)

    with_sasl(network).script("SaslHandshake", refuse)
    with pytest.raises(AuthenticationFailedError, match=r"does not use SASL\. Set security_protocol to PLAINTEXT"):
        await connect(network, authenticator())


@simulated
async def test_a_broker_without_sasl_at_all() -> None:
    with pytest.raises(UnsupportedVersionError, match="send SaslHandshake at broker1:9092"):
        await connect(ScriptedNetwork(), authenticator())


@provokes(AuthenticationFailedError)
@simulated
async def test_a_refusal_has_the_message_of_the_broker_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)
    broker.script("SaslAuthenticate", say(error=ErrorCode.SASL_AUTHENTICATION_FAILED, message="Invalid password"))
    with caplog.at_level(logging.DEBUG), pytest.raises(AuthenticationFailedError) as raised:
        await connect(network, authenticator())
    assert str(raised.value) == (
        "authenticate as alice with PLAIN at broker1:9092: the broker refused: Invalid password. Check user and "
        "password, and that the broker has this user for this mechanism"
    )
    assert "geheim" not in caplog.text + str(raised.value) + repr(raised.value)


@simulated
async def test_a_broker_that_closes_instead_of_answering() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)

    async def close(broker: Broker, request: Any) -> object:
        return DROP

    broker.script("SaslAuthenticate", close)
    with pytest.raises(ConnectionLostError, match="The broker may have refused the credentials"):
        await connect(network, authenticator())


@simulated
async def test_without_sasl_a_connection_that_is_closed_at_once_hints_at_it() -> None:
    network = ScriptedNetwork()

    async def close(broker: Broker, request: Any) -> object:
        return DROP

    network.brokers[1].script("Metadata", close)
    connection = await open_connection(
        network, BROKER, str(BROKER), client_id="t", connect_timeout=1, request_timeout=5
    )
    with pytest.raises(ConnectionLostError, match="If this listener demands authentication, set security_protocol"):
        await connection.send(MetadataRequest([]), MetadataResponse)


# SCRAM and OAUTHBEARER.


def scram_server(password: str, stored: str, iterations: int = 4096) -> list[Any]:
    """Both answers of a server that has the user's credential, made of `stored`, but signs as with `password`."""
    salt = b"salt"
    of_user = ScramCredential.from_password(SCRAM_SHA_256, stored, salt, iterations)
    signing = ScramCredential.from_password(SCRAM_SHA_256, password, salt, iterations)
    exchange: list[Any] = []

    async def first(broker: Broker, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        client = ClientFirst.decode(bytes(request.auth_bytes))
        server = ServerFirst(client.nonce + "server", salt, iterations)
        exchange[:] = [client, server]
        return SaslAuthenticateResponse(auth_bytes=server.encode())

    async def final(broker: Broker, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        client = ClientFinal.decode(bytes(request.auth_bytes))
        signed = auth_message(*exchange, client)
        if not is_proof(SCRAM_SHA_256, of_user, signed, client.proof):
            return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, "Invalid proof")
        signature = server_signature(SCRAM_SHA_256, signing.server_key, signed)
        return SaslAuthenticateResponse(auth_bytes=ServerFinal(signature).encode())

    return [first, final]


async def test_scram_proves_the_password_to_each_other() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)
    broker.script("SaslAuthenticate", *scram_server("geheim", "geheim"))
    connection = await connect(network, authenticator("SCRAM-SHA-256"))
    assert connection.is_open
    connection.close()


async def test_a_server_that_cannot_prove_that_it_knows_the_user_is_refused_by_us() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)
    broker.script("SaslAuthenticate", *scram_server("other", "geheim"))
    with pytest.raises(
        AuthenticationFailedError, match=r"with SCRAM-SHA-256 .*: this client refused the broker: .*sign"
    ):
        await connect(network, authenticator("SCRAM-SHA-256"))


@pytest.mark.parametrize("iterations", [1, 2_000_000_000])
async def test_a_server_decides_neither_to_weaken_nor_to_occupy_us(iterations: int) -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)

    async def first(broker: Broker, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        nonce = ClientFirst.decode(bytes(request.auth_bytes)).nonce
        return SaslAuthenticateResponse(auth_bytes=ServerFirst(nonce + "s", b"salt", iterations).encode())

    broker.script("SaslAuthenticate", first)
    with pytest.raises(AuthenticationFailedError, match=f"this client refused the broker: .*{iterations} iteration"):
        await connect(network, authenticator("SCRAM-SHA-256"))


async def test_a_refused_token_is_acknowledged_and_reported() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)
    broker.script(
        "SaslAuthenticate",
        say(b'{"status":"insufficient_scope","scope":"kafka"}'),
        say(error=ErrorCode.SASL_AUTHENTICATION_FAILED, message="No"),
    )
    with pytest.raises(AuthenticationFailedError) as raised:
        await connect(
            network, authenticator("OAUTHBEARER", sasl_oauth_token_provider=lambda: ("geheim", time.time() + 9))
        )
    first, second = [bytes(request.auth_bytes) for request in broker.received(SaslAuthenticateRequest)]
    assert first == b"n,,\x01auth=Bearer geheim\x01\x01"
    assert second == b"\x01"
    assert (
        "with OAUTHBEARER at broker1:9092: the broker refused: No (insufficient_scope, it wants the scope kafka). "
        in (str(raised.value))
    )
    assert "geheim" not in str(raised.value)


async def test_extensions_are_sent_beside_the_token() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)
    broker.script("SaslAuthenticate", say())
    jaas = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        "unsecuredLoginStringClaim_sub=alice extension_team=blue;"
    )
    connection = await connect(network, authenticator("OAUTHBEARER", sasl_jaas_config=jaas))
    [request] = broker.received(SaslAuthenticateRequest)
    token, _, rest = bytes(request.auth_bytes).removeprefix(b"n,,\x01auth=Bearer ").partition(b"\x01")
    assert rest == b"team=blue\x01\x01"
    assert b'"sub": "alice"' in base64.urlsafe_b64decode(token.split(b".")[1] + b"==")
    connection.close()


async def test_a_token_that_no_message_can_have_is_a_mistake_of_the_settings() -> None:
    network = ScriptedNetwork()
    with_sasl(network).script("SaslHandshake", agree)
    with pytest.raises(ConfigurationError, match=r"authenticate: a bearer token has letters"):
        await connect(network, authenticator("OAUTHBEARER", sasl_oauth_token_provider=lambda: ("a b", time.time() + 9)))


# Sessions that end (KIP-368).


def ask(connection: Connection) -> asyncio.Future[MetadataResponse]:
    return connection.send(MetadataRequest([]), MetadataResponse)


@simulated
async def test_a_session_is_renewed_before_the_next_request_and_others_wait_in_order() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    reached, opened = asyncio.Event(), asyncio.Event()

    async def agree_late(broker: Broker, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        reached.set()
        await opened.wait()
        return await agree(broker, request)

    broker.script("SaslHandshake", agree, agree_late)
    broker.script("SaslAuthenticate", say(lifetime_ms=10_000), say(lifetime_ms=10_000))
    connection = await connect(network, authenticator())
    await asyncio.sleep(8.4)
    await ask(connection)
    assert len(broker.received(SaslHandshakeRequest)) == 1  # less than 85 % of the lifetime are over
    await asyncio.sleep(1.2)
    sent = [ask(connection) for _ in range(3)]
    await reached.wait()
    assert len(broker.received(MetadataRequest)) == 1
    opened.set()
    await asyncio.gather(*sent)
    kinds = [type(request) for request in broker.requests[4:]]
    assert kinds == [SaslHandshakeRequest, SaslAuthenticateRequest, *3 * [MetadataRequest]]
    await ask(connection)  # of the new session
    assert len(broker.received(SaslHandshakeRequest)) == 2
    connection.close()


@simulated
async def test_a_request_from_before_is_answered_before() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    gate = Gate()
    broker.script("SaslHandshake", agree, agree)
    broker.script("SaslAuthenticate", say(lifetime_ms=2000), say(lifetime_ms=2000))
    connection = await connect(network, authenticator())
    broker.script("Metadata", gate)
    early = ask(connection)
    await asyncio.sleep(1.95)
    late = ask(connection)
    await asyncio.sleep(0.5)
    assert len(broker.received(SaslHandshakeRequest)) == 1  # the broker is still with the first request
    gate.open()
    assert (await early).cluster_id == "scripted"
    assert (await late).cluster_id == "scripted"
    assert connection.is_open
    connection.close()


@simulated
async def test_a_session_without_an_end_is_not_renewed() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree)
    broker.script("SaslAuthenticate", say())
    connection = await connect(network, authenticator())
    await asyncio.sleep(100_000)
    await ask(connection)
    connection.close()


@simulated
async def test_a_session_that_cannot_be_renewed_ends_the_connection_and_what_waits_for_it() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    broker.script("SaslHandshake", agree, agree)
    broker.script("SaslAuthenticate", say(lifetime_ms=1000), say(error=58, message="Password has changed"))
    connection = await connect(network, authenticator())
    await asyncio.sleep(1)
    sent = [ask(connection) for _ in range(2)]
    for failed in await asyncio.gather(*sent, return_exceptions=True):
        assert isinstance(failed, AuthenticationFailedError)
        assert "at broker1:9092: the broker refused: Password has changed" in str(failed)
    assert not connection.is_open
    assert broker.received(MetadataRequest) == []


@simulated
async def test_a_connection_that_is_closed_while_it_renews_its_session_ends_cleanly() -> None:
    network = ScriptedNetwork()
    broker = with_sasl(network)
    gate = Gate()
    broker.script("SaslHandshake", agree, gate)
    broker.script("SaslAuthenticate", say(lifetime_ms=1000))
    connection = await connect(network, authenticator())
    await asyncio.sleep(1)
    waiting = ask(connection)
    await gate.reached.wait()
    connection.close()
    await connection.wait_closed()
    with pytest.raises(Exception, match="it was closed"):
        await waiting
