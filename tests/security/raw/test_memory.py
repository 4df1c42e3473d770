"""Thousands of connections that break off, dribble or send garbage: afterwards memory and sockets are as before."""

from __future__ import annotations

import gc
import logging
import random
import ssl
from collections.abc import Awaitable, Callable

import pytest

from odradek.protocol.framing import SIZE_PREFIX
from tests.effort import cases
from tests.security.raw.guarded import (
    METADATA,
    Guard,
    Guarded,
    authenticate,
    bare,
    end,
    handshake,
    open_sockets,
    plain,
    play,
    scram,
    tls_context,
)
from tests.security.raw.test_tokens_and_frames import MEBIBYTE, resident_bytes
from tests.server.serving import Client

ROUND = 3000
CONTEXTS = [tls_context(version) for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)]

Attack = Callable[[Guarded, random.Random], Awaitable[Client]]


async def a_prefix(guarded: Guarded, source: random.Random) -> Client:
    client = await guarded.connect()
    await play(client, source.choice([plain, scram])(), source.randrange(400))
    return client


async def a_prefix_of_a_handshake(guarded: Guarded, source: random.Random) -> Client:
    tls = await guarded.tls(lambda data: iter([data[: source.randrange(len(data))]]), context=source.choice(CONTEXTS))
    try:
        tls.tls.do_handshake()
    except ssl.SSLWantReadError:
        await tls.flush()
    return tls.client


async def any_order(guarded: Guarded, source: random.Random) -> Client:
    client = await guarded.connect()
    frames = [METADATA, handshake(), handshake("GSSAPI", 0), handshake(version=0), authenticate(), bare(), *plain()]
    await client.send(b"".join(source.choices(frames, k=source.randrange(1, 8))))
    return client


async def a_large_token(guarded: Guarded, source: random.Random) -> Client:
    client = await guarded.connect()
    token = bytes(source.choice([1000, 500_000, 1_000_000]))
    try:
        await client.send(handshake() + authenticate(token)[: source.randrange(1 << 20)])
    except ConnectionError:
        pass  # the broker has refused it
    return client


async def an_announcement(guarded: Guarded, source: random.Random) -> Client:
    client = await guarded.connect()
    await client.send(SIZE_PREFIX.pack(source.choice([0x7FFF_FFFF, -1, 0, 500_000])) + handshake()[4:])
    return client


async def garbage_in_tls(guarded: Guarded, source: random.Random) -> Client:
    tls = await (await guarded.tls(context=source.choice(CONTEXTS))).handshake()
    await play(tls, plain(), requests=source.randrange(5))
    await tls.client.send(source.randbytes(source.randrange(1, 300)))
    return tls.client


async def silence(guarded: Guarded, source: random.Random) -> Client:
    return await guarded.connect(source.choice(["CLEAR", "SECURE"]))


ATTACKS: list[Attack] = [
    a_prefix,
    a_prefix_of_a_handshake,
    any_order,
    a_large_token,
    an_announcement,
    garbage_in_tls,
    silence,
]


async def attack(guarded: Guarded, source: random.Random, count: int) -> None:
    """Make connections, of which up to 50 are open at a time."""
    waiting: list[Client] = []
    for number in range(count):
        waiting.append(await source.choice(ATTACKS)(guarded, source))
        if len(waiting) > 50:
            end(waiting.pop(source.randrange(len(waiting))), number)
        if number % 200 == 0:
            assert await guarded.is_serving()
    for client in waiting:
        client.close()
    guarded.clients.clear()
    await guarded.alone()
    guarded.clients.append(guarded.witness)


@pytest.mark.slow
async def test_nothing_is_left_of_thousands_of_connections(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)  # the fixture keeps every line, which is memory, too
    guarded = await guard(max_connections="400")
    source = random.Random(5)
    await attack(guarded, source, ROUND // 3)
    gc.collect()
    memory, sockets = resident_bytes(), open_sockets()
    await attack(guarded, source, cases(ROUND))
    gc.collect()
    assert resident_bytes() - memory < 16 * MEBIBYTE  # 6 KiB a connection would be more
    assert open_sockets() <= sockets
    assert not guarded.connections.arena.memory.is_full
    unknown = [await guarded.connect() for _ in range(100)]  # a quarter of the most: no share is lost
    refused = guarded.broker.metrics.listener("CLEAR").refused
    await guarded.until(lambda: len(guarded.connections) == 101)
    assert guarded.broker.metrics.listener("CLEAR").refused == refused
    for client in unknown:
        assert len(await play(client, plain())) == 4
