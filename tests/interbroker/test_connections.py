from __future__ import annotations

import asyncio
import re

import msgspec
import pytest

from odradek.broker.interbroker.connections import BrokerConnections
from odradek.broker.metadata.values import Listener
from odradek.client.config import Address
from odradek.client.errors import AuthenticationFailedError, BrokerUnreachableError, ClientError, RequestTimeoutError
from odradek.client.security.settings import SecuritySettings
from odradek.protocol.api import by_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.client.scripted_broker import Broker
from tests.client.virtual_time import simulated
from tests.interbroker.place import Place


@simulated
async def test_a_connection_is_reused_for_its_purpose() -> None:
    place = Place()

    first = await place.connections.connection(2, "fetcher-0")
    response = await first.send(MetadataRequest(topics=[]), MetadataResponse)

    assert len(response.brokers) == 3
    assert await place.connections.connection(2, "fetcher-0") is first
    assert await place.connections.connection(2, "fetcher-1") is not first
    assert await place.connections.connection(3, "fetcher-0") is not first
    await place.connections.close()


@simulated
async def test_a_closed_connection_is_replaced() -> None:
    place = Place()
    first = await place.connections.connection(2, "fetcher-0")
    first.close()

    second = await place.connections.connection(2, "fetcher-0")

    assert second is not first
    assert second.is_open
    await place.connections.close()


@simulated
async def test_a_broker_that_comes_back_elsewhere_is_connected_there() -> None:
    place = Place()
    first = await place.connections.connection(2, "fetcher-0")
    place.move(2, to=3)

    second = await place.connections.connection(2, "fetcher-0")

    assert not first.is_open
    assert second.name == f"{place.network.brokers[3].address} (broker 2)"
    await place.connections.close()


@simulated
@pytest.mark.parametrize(("everywhere", "loopback"), [("0.0.0.0", "127.0.0.1"), ("::", "::1")])
async def test_a_worker_that_listens_everywhere_is_reached_at_loopback(everywhere: str, loopback: str) -> None:
    place = Place()
    registered = place.image.brokers[2]
    place.network.aliases[Address(loopback, 9094)] = place.network.brokers[2]
    listeners = [Listener("REPLICATION", "PLAINTEXT", everywhere, 9094)]
    worker = msgspec.structs.replace(registered, listeners=listeners, host="machine")
    place.image = msgspec.structs.replace(place.image, brokers={2: worker})
    of_machine, of_another = (
        BrokerConnections(
            1, "REPLICATION", lambda: place.image, socket_timeout_ms=1000, host=host, network=place.network
        )
        for host in ("machine", "another")
    )

    connection = await of_machine.connection(2, "fetcher-0")

    assert connection.name == f"{Address(loopback, 9094)} (broker 2)"
    for connections in (of_another, place.connections):
        with pytest.raises(BrokerUnreachableError, match=re.escape(str(Address(everywhere, 9094)))):
            await connections.connection(2, "fetcher-0")
    await of_machine.close()


@simulated
async def test_brokers_that_are_not_alive_or_lack_the_listener_are_not_available() -> None:
    place = Place()
    place.image = msgspec.structs.replace(place.image, brokers={2: place.image.brokers[2]})
    elsewhere = BrokerConnections(1, "NONE", lambda: place.image, socket_timeout_ms=1000, network=place.network)

    for connections, node_id in ((place.connections, 3), (elsewhere, 2)):
        with pytest.raises(KafkaError) as caught:
            await connections.connection(node_id, "fetcher-0")
        assert caught.value.code is ErrorCode.BROKER_NOT_AVAILABLE


@simulated
async def test_a_broker_that_refuses_connections_is_unreachable() -> None:
    place = Place()
    place.network.brokers[2].is_up = False

    with pytest.raises(BrokerUnreachableError):
        await place.connections.connection(2, "fetcher-0")


@simulated
async def test_a_broker_that_does_not_respond_closes_the_connection() -> None:
    place = Place()

    async def nothing(*_: object) -> None:
        return None

    connection = await place.connections.connection(2, "fetcher-0")
    place.network.brokers[2].script("Metadata", nothing)

    with pytest.raises(RequestTimeoutError):
        await connection.send(MetadataRequest(topics=[]), MetadataResponse)
    assert not connection.is_open
    await place.connections.close()


@simulated
async def test_closing_fails_what_is_in_flight_and_what_begins_later() -> None:
    place = Place()
    connection = await place.connections.connection(2, "fetcher-0")
    waiting = connection.send(MetadataRequest(topics=[]), MetadataResponse)

    await place.connections.close()

    with pytest.raises(ClientError):
        await waiting
    with pytest.raises(KafkaError):
        await place.connections.connection(2, "fetcher-0")


@simulated
async def test_a_connection_that_opens_during_the_close_is_closed() -> None:
    place = Place()
    connecting = asyncio.ensure_future(place.connections.connection(3, "fetcher-0"))
    await asyncio.sleep(0)

    await place.connections.close()

    with pytest.raises(KafkaError, match="stopping"):
        await connecting


def secured(place: Place) -> BrokerConnections:
    """Connections of a broker that authenticates at the others, as the user `broker`."""
    security = SecuritySettings(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="broker", sasl_password="geheim"
    )
    for broker in place.network.brokers.values():
        broker.versions |= {by_name("SaslHandshake").key: (0, 1), by_name("SaslAuthenticate").key: (0, 2)}
    return BrokerConnections(
        1, "REPLICATION", lambda: place.image, socket_timeout_ms=1000, network=place.network, security=security
    )


async def agree(broker: Broker, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(mechanisms=[request.mechanism])


@simulated
async def test_a_broker_authenticates_at_the_others_before_any_other_request() -> None:
    place = Place()
    connections = secured(place)
    other = place.network.brokers[2]

    async def accept(broker: Broker, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse()

    other.script("SaslHandshake", agree)
    other.script("SaslAuthenticate", accept)
    connection = await connections.connection(2, "fetcher-0")
    await connection.send(MetadataRequest(topics=[]), MetadataResponse)

    [token] = other.received(SaslAuthenticateRequest)
    assert bytes(token.auth_bytes) == b"\0broker\0geheim"
    assert isinstance(other.requests[-1], MetadataRequest)
    await connections.close()


@simulated
async def test_a_broker_that_is_refused_raises_the_words_of_the_other_and_no_secret() -> None:
    place = Place()
    connections = secured(place)

    async def refuse(broker: Broker, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, "Invalid credentials")

    place.network.brokers[3].script("SaslHandshake", agree)
    place.network.brokers[3].script("SaslAuthenticate", refuse)
    with pytest.raises(AuthenticationFailedError, match=r"PLAIN at .* \(broker 3\): .*Invalid cred") as error:
        await connections.connection(3, "fetcher-0")

    assert "geheim" not in str(error.value)
    await connections.close()
