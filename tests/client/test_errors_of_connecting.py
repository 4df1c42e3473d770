"""Errors of connecting, provoked by ports that no broker of Kafka answers on."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.client import (
    Admin,
    BootstrapError,
    NotKafkaError,
    Producer,
    TransportError,
    UnsupportedVersionError,
)
from odradek.protocol.header import decode_request_header, encode_response
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from tests.client.provoked_errors import listening, provokes


@pytest.fixture
def unused_port() -> Iterator[int]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but not listening
        yield unused.getsockname()[1]


async def find(bootstrap: str) -> None:
    async with Producer(bootstrap, connect_timeout_ms=500):
        pass


# No broker.


@provokes(BootstrapError)
async def test_a_wrong_port(unused_port: int) -> None:
    with pytest.raises(BootstrapError) as raised:
        await find(f"127.0.0.1:{unused_port}")
    assert str(raised.value) == (
        f"find the cluster: 127.0.0.1:{unused_port}: connection refused. "
        "Check the bootstrap servers, and advertised.listeners of the brokers"
    )


async def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(
        BootstrapError, match=r"find the cluster: no-such-host\.invalid:9092: the name cannot be resolved"
    ):
        await find("no-such-host.invalid:9092")


async def test_an_unreachable_advertised_address(unused_port: int) -> None:
    async with Broker({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{unused_port}"}) as broker:
        with pytest.raises(BootstrapError) as raised:
            await find(broker.bootstrap)
    assert str(raised.value) == (
        f"find the cluster: 127.0.0.1:{unused_port} (broker 1): connection refused. "
        "Check the bootstrap servers, and advertised.listeners of the brokers"
    )


async def test_plaintext_to_a_port_of_tls() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(say_nothing, ssl=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as address:
        with pytest.raises(TransportError) as raised:  # it closes, perhaps after a TLS alert
            await find(address)
    assert address in str(raised.value)
    assert str(raised.value).endswith("and is it a plaintext one? With TLS, set security_protocol to SSL")


@provokes(NotKafkaError)
async def test_a_web_server() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    async with listening(answer) as address:
        with pytest.raises(NotKafkaError, match=rf"read a response at {address}: .*\(an HTTP server\?\)\. Is this"):
            await find(address)


async def test_a_silent_port() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(say_nothing) as address:
        with pytest.raises(
            BootstrapError, match=f"find the cluster: {address}: no response within 500 ms. Is this the port"
        ):
            await find(address)


@provokes(UnsupportedVersionError)
async def test_a_broker_that_is_too_old() -> None:
    """It serves ApiVersions and Metadata only."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("sockname")
        while size := await reader.read(4):
            frame = await reader.readexactly(*struct.unpack(">i", size))
            header, _ = decode_request_header(frame)
            said: Any = ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4), ApiVersion(3, 0, 5)])
            if header.api_key == 3:
                said = MetadataResponse(brokers=[MetadataResponseBroker(4, host, port)], controller_id=4)
            body = encode_response(header.api_key, header.api_version, header.correlation_id, said)
            writer.write(struct.pack(">i", len(body)) + body)

    async with listening(answer) as address, Admin(address) as admin:
        with pytest.raises(UnsupportedVersionError) as raised:
            (await admin.create_partitions({"t": 3})).value("t")
    assert str(raised.value) == (
        f"send CreatePartitions at {address} (broker 4): this call needs 0 to 3, the broker does not serve it. "
        "Upgrade the older side"
    )
