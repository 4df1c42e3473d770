"""One connection: negotiation of versions, requests in flight, and all ways in which it closes."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from odradek.client import (
    BrokerUnreachableError,
    ClosedError,
    ConnectionLostError,
    NotKafkaError,
    Producer,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from odradek.client.config import Address, AdminConfig
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.connections import Connections
from odradek.client.network.transport import TcpNetwork
from odradek.protocol.api import by_name
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.client.scripted_broker import Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, drop_unread, now
from tests.client.virtual_time import simulated
from tests.tcp_server import tcp_server

SCRIPTED = Address("broker1", 9092)
METADATA = by_name("Metadata").key


async def connect(network: Any, address: Address = SCRIPTED, seconds: float = 1) -> Connection:
    return await open_connection(
        network, address, str(address), client_id="tests", connect_timeout=seconds, request_timeout=10
    )


class Breaking(ScriptedNetwork):
    """Makes a connection, and then fails."""

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        self.made = await super().connect(address, protocol)
        raise OSError(22, "Invalid argument")


@simulated
async def test_a_connection_that_fails_when_it_is_made_leaves_no_transport() -> None:
    network = Breaking()
    with pytest.raises(BrokerUnreachableError, match="Invalid argument"):
        await connect(network)
    assert network.made.is_closing()


@simulated
async def test_a_connection_opened_during_close_is_closed() -> None:
    config = AdminConfig(bootstrap_servers=(SCRIPTED,), default_api_timeout_ms=1000)
    connections = Connections(config, ScriptedNetwork())
    connection = await connections.open_address(SCRIPTED)
    await connections.close()
    with pytest.raises(ClosedError):
        connections.adopt(1, connection)
    assert not connection.is_open
    with pytest.raises(ClosedError):
        await connections.open_address(SCRIPTED)


# Versions.


@simulated
async def test_the_highest_common_version_is_used() -> None:
    network = ScriptedNetwork()
    network.brokers[1].limit("Metadata", 8)
    connection = await connect(network)
    assert connection.versions.highest(METADATA) == 8
    assert connection.versions.highest(METADATA, at_most=5) == 5
    connection.close()


@pytest.mark.parametrize("newest", [0, 1, 2, 3])
@simulated
async def test_api_versions_falls_back_to_the_version_of_the_broker(newest: int) -> None:
    network = ScriptedNetwork()
    network.brokers[1].limit("ApiVersions", newest)
    connection = await connect(network)
    [request] = network.brokers[1].received(ApiVersionsRequest)
    assert request.client_software_name == ("odradek" if newest == 3 else "")
    assert connection.versions.highest(METADATA) == by_name("Metadata").max_version
    connection.close()


@simulated
async def test_the_error_for_a_missing_api_names_both_sides() -> None:
    network = ScriptedNetwork()
    connection = await connect(network)
    with pytest.raises(UnsupportedVersionError) as raised:
        connection.send(CreateTopicsRequest(), CreateTopicsResponse)
    assert str(raised.value) == (
        "send CreateTopics at broker1:9092: this call needs 2 to 7, the broker does not serve it. "
        "Upgrade the older side"
    )
    network.brokers[1].versions[METADATA] = (20, 30)
    other = await connect(network)
    with pytest.raises(UnsupportedVersionError, match="this call needs 0 to 13, the broker serves 20 to 30"):
        other.versions.highest(METADATA)
    connection.close()
    other.close()


# In flight.


@simulated
async def test_responses_are_matched_to_their_requests() -> None:
    network = ScriptedNetwork(piece_size=3)
    for name in ("a", "b", "c"):
        network.create(name)
    connection = await connect(network)
    sent = [connection.send(MetadataRequest([MetadataRequestTopic(name=name)]), MetadataResponse) for name in "abc"]
    assert connection.in_flight == 3
    assert [answer.topics[0].name for answer in await asyncio.gather(*sent)] == ["a", "b", "c"]
    assert connection.in_flight == 0
    connection.close()


@simulated
async def test_a_cancelled_request_does_not_affect_later_ones() -> None:
    network = ScriptedNetwork()
    connection = await connect(network)
    first = connection.send(MetadataRequest([]), MetadataResponse)
    second = connection.send(MetadataRequest([]), MetadataResponse)
    first.cancel()
    assert (await second).cluster_id == "scripted"
    connection.close()


@simulated
async def test_a_request_timeout_closes_the_connection() -> None:
    network = ScriptedNetwork()
    network.brokers[1].script("Metadata", Gate())
    connection = await connect(network)
    impatient = connection.send(MetadataRequest([]), MetadataResponse, timeout=2)
    behind = connection.send(MetadataRequest([]), MetadataResponse)
    for future in (impatient, behind):
        with pytest.raises(RequestTimeoutError, match="send Metadata at broker1:9092: no response within 2000 ms"):
            await future
    assert now() == pytest.approx(2)
    assert not connection.is_open


@simulated
async def test_requests_in_flight_fail_when_the_broker_closes_the_connection() -> None:
    network = ScriptedNetwork()
    network.brokers[1].script("Metadata", drop_unread)
    connection = await connect(network)
    ended = []
    connection.on_close = lambda: ended.append(connection.in_flight)
    sent = [connection.send(MetadataRequest([]), MetadataResponse) for _ in range(3)]
    for answer in sent:
        with pytest.raises(
            ConnectionLostError, match="send Metadata at broker1:9092: the broker closed the connection"
        ):
            await answer
    assert ended == [0]
    with pytest.raises(ConnectionLostError):
        await connection.send(MetadataRequest([]), MetadataResponse)


@simulated
async def test_after_close_nothing_is_sent() -> None:
    network = ScriptedNetwork()
    connection = await connect(network)
    waiting = connection.send(MetadataRequest([]), MetadataResponse)
    connection.close()
    connection.close()
    await connection.wait_closed()
    for answer in (waiting, connection.send(MetadataRequest([]), MetadataResponse)):
        with pytest.raises(ClosedError):
            await answer
    with pytest.raises(ClosedError):
        connection.send_without_response(MetadataRequest([]))


# Peers of another protocol.


def says(data: bytes) -> Any:
    async def answer(broker: Broker, request: Any) -> None:
        for transport in tuple(broker.transports):
            transport.send(data)

    return answer


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "frame size 1213486160 is over the limit"),
        (b"\xff\xff\xff\xff", "frame size -1 is negative"),
        (b"\0\0\0\x02ab", "a frame of 2 bytes"),
        (b"\0\0\0\x04\0\0\0\x63", "a response to request 99, which is not in flight"),
        (b"\0\0\0\x06\0\0\0\x01\0\0", "malformed"),
    ],
)
@simulated
async def test_bytes_of_another_protocol_are_a_not_kafka_error(data: bytes, words: str) -> None:
    network = ScriptedNetwork()
    network.brokers[1].script("ApiVersions", says(data))
    with pytest.raises(NotKafkaError, match=words) as raised:
        await connect(network)
    assert str(raised.value).endswith("and is it a plaintext one? With TLS, set security_protocol to SSL")
    assert not network.brokers[1].transports


@simulated
async def test_a_silent_peer_is_a_timeout() -> None:
    network = ScriptedNetwork()
    network.brokers[1].script("ApiVersions", Gate())
    with pytest.raises(
        RequestTimeoutError, match=r"send ApiVersions .*no response within 1000 ms. .*a plaintext one\?"
    ):
        await connect(network)
    assert not network.brokers[1].transports


# The real network.


async def test_a_port_without_a_listener() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = Address(*unused.getsockname())
        with pytest.raises(BrokerUnreachableError, match=f"connect at {address}: connection refused. Is a broker"):
            await connect(TcpNetwork(), address)


async def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(
        BrokerUnreachableError, match=r"connect at no-such-host.invalid:9092: the name cannot be resolved"
    ):
        await connect(TcpNetwork(), Address("no-such-host.invalid", 9092), seconds=30)


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..b", "\ud800"])
async def test_a_name_that_dns_cannot_have(host: str) -> None:
    with pytest.raises(BrokerUnreachableError, match=r"the name cannot be resolved \(it is not the name") as raised:
        await connect(TcpNetwork(), Address(host, 9092), seconds=30)
    assert raised.value.is_unknown_host


async def test_a_request_fails_if_its_response_cannot_be_decoded_for_any_reason(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise IndexError("a fault of the decoder")

    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    host, _, port = bootstrap.rpartition(":")
    connection = await connect(TcpNetwork(), Address(host, int(port)))
    monkeypatch.setattr("odradek.client.network.connection.decode_response", fail)
    for request in [connection.send(MetadataRequest([]), MetadataResponse) for _ in range(2)]:
        with pytest.raises(ConnectionLostError, match="a fault of the decoder"):
            await request
    assert connection.in_flight == 0
    assert [str(error) for error in reported] == ["a fault of the decoder"]


async def test_a_web_server() -> None:
    async def web_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with tcp_server(web_server) as port:
        with pytest.raises(NotKafkaError, match=rf"read a response at 127.0.0.1:{port}: frame size .* over the limit"):
            async with Producer(f"127.0.0.1:{port}"):
                pass


async def test_a_server_that_accepts_and_closes() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.close()
        await writer.wait_closed()

    async with tcp_server(hang_up) as port:
        address = Address("127.0.0.1", port)
        with pytest.raises(
            ConnectionLostError, match=r"send ApiVersions at .*: the broker closed the connection. Is this"
        ):
            await connect(TcpNetwork(), address)
