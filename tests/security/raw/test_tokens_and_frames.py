"""Large tokens, and frames that are announced and never come: they are refused before memory is allocated for them."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from resource import getpagesize
from typing import Any

import pytest

from odradek.protocol import header
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.handlers.requests import batch
from tests.security.raw.guarded import (
    SASL_AUTHENTICATE,
    Guard,
    Guarded,
    authenticate,
    bare,
    frames_in,
    handshake,
    plain,
    play,
    rest_of,
)
from tests.server.serving import Client
from tests.server.tls_client import TlsClient

KIBIBYTE, MEBIBYTE = 1 << 10, 1 << 20
LIMIT = 512 * KIBIBYTE
SIZES = [LIMIT - 1, LIMIT, LIMIT + 1, 8 * MEBIBYTE]
STARTS = {
    "PLAIN": b"\0alice\0",
    "SCRAM-SHA-256": b"n,,n=alice,r=",
    "OAUTHBEARER": b"n,,\x01auth=Bearer ",
}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


async def chosen(guarded: Guarded, mechanism: str, version: int) -> Client:
    """Connect and choose a mechanism."""
    client = await guarded.connect()
    await client.send(handshake(mechanism, version))
    await client.receive_frame()
    return client


def token_of(mechanism: str, size: int) -> bytes:
    return STARTS[mechanism].ljust(size, b"s")


@pytest.mark.parametrize("mechanism", STARTS)
@pytest.mark.parametrize("size", SIZES)
async def test_a_large_token_is_refused(guarded: Guarded, mechanism: str, size: int) -> None:
    around = len(authenticate(bytes(size))) - len(bare(bytes(size)))
    for frame, version in (
        (authenticate(token_of(mechanism, size - around)), 1),
        (bare(token_of(mechanism, size)), 0),
    ):
        assert len(frame) == SIZE_PREFIX.size + size
        client = await chosen(guarded, mechanism, version)
        before = guarded.connections.arena.memory.held
        sending = asyncio.ensure_future(client.send(frame))
        try:
            received = await rest_of(client)
        except ConnectionError:
            received = b""
        await asyncio.gather(sending, return_exceptions=True)
        if size <= LIMIT and version == 1:  # the frame is received, and what it says is wrong
            [answer] = frames_in(received)
            response: Any = header.decode_response(SASL_AUTHENTICATE, 2, answer)[1]
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        else:
            assert received == b""
        assert guarded.connections.arena.memory.held - before <= 2 * LIMIT
        client.close()
    await guarded.alone()


@pytest.mark.parametrize("size", [LIMIT + 1, 8 * MEBIBYTE, 100 * MEBIBYTE])
async def test_a_frame_over_the_limit_is_refused_when_it_is_announced(guarded: Guarded, size: int) -> None:
    for version, start in ((1, authenticate()[4:10]), (0, b"\0alice")):
        client = await chosen(guarded, "PLAIN", version)
        await client.send(SIZE_PREFIX.pack(size) + start)
        assert await client.is_closed()
    client = await guarded.connect()
    await client.send(SIZE_PREFIX.pack(size) + handshake()[4:10])
    assert await client.is_closed()
    await guarded.alone()


async def test_a_client_that_is_known_may_send_large_requests(guard: Guard) -> None:
    guarded = await guard(message_max_bytes=str(16 * MEBIBYTE))
    for client in (await guarded.connect(), await (await guarded.tls()).handshake()):
        await play(client, plain())
        name = type(client).__name__
        await client.ask("CreateTopics", 7, CreateTopicsRequest([CreatableTopic(name, 1, 1)], 60_000))
        for expected, size in enumerate((100, LIMIT + 1, 8 * MEBIBYTE)):
            partition = PartitionProduceData(0, batch(bytes(size)))
            request = ProduceRequest(None, -1, 30_000, [TopicProduceData(name, partition_data=[partition])])
            [topic] = (await client.ask("Produce", 9, request)).responses
            [answer] = topic.partition_responses
            assert (answer.error_code, answer.base_offset) == (0, expected)


INVALID = [0x7FFF_FFFF, 100 * MEBIBYTE + 1, 0, 1, -1, -(1 << 31)]


async def opened(guarded: Guarded, secure: bool) -> Client | TlsClient:
    return await (await guarded.tls()).handshake() if secure else await guarded.connect()


@pytest.mark.parametrize("secure", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("size", INVALID)
async def test_an_invalid_size_closes_the_connection_at_any_time(guarded: Guarded, size: int, secure: bool) -> None:
    for before in range(5):  # requests of a correct session
        client = await opened(guarded, secure)
        await play(client, plain(), requests=before)
        await client.send(SIZE_PREFIX.pack(size) + bytes(max(0, min(size, 1))))
        with pytest.raises((EOFError, OSError)):
            await client.receive_exactly(1)
        connected = client.client if isinstance(client, TlsClient) else client
        connected.close()
    await guarded.alone()


@pytest.mark.parametrize("secure", [False, True], ids=["clear", "tls"])
async def test_two_hundred_announcements_of_two_gibibytes_cost_no_memory(guarded: Guarded, secure: bool) -> None:
    clients = [await opened(guarded, secure) for _ in range(200)]
    await guarded.until(lambda: len(guarded.connections) == 201)
    before = resident_bytes()
    for client in clients:
        await client.send(SIZE_PREFIX.pack(0x7FFF_FFFF) + handshake()[4:])
    await guarded.until(lambda: len(guarded.connections) == 1)
    assert resident_bytes() - before < 32 * MEBIBYTE
    await guarded.alone()


async def test_two_hundred_large_requests_that_do_not_come_cost_little(guarded: Guarded) -> None:
    """Of known clients, which may send 100 MiB; and of unknown ones, which may send 512 KiB."""
    known, unknown = [[await guarded.connect() for _ in range(200)] for _ in range(2)]
    for client in known:
        await play(client, plain())
    before = resident_bytes()
    for size, clients, start in ((100 * MEBIBYTE, known, b"\0\0\0\x09"), (LIMIT, unknown, handshake()[4:8])):
        for client in clients:
            await client.send(SIZE_PREFIX.pack(size) + start)
    await guarded.until(lambda: sum(each.buffered == 8 for each in guarded.connections) == 400)
    assert resident_bytes() - before < 32 * MEBIBYTE
    assert await guarded.is_serving()
    for client in itertools.chain(known, unknown):
        client.reset()
    await guarded.alone()
