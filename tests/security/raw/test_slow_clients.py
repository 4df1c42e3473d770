"""Slow and silent clients: others are served meanwhile, and all of the slow ones are closed in their time."""

from __future__ import annotations

import itertools

import pytest

from odradek.broker.server import tls_handshakes
from odradek.broker.server.connections import UNAUTHENTICATED_SECONDS, UNAUTHENTICATED_SHARE
from odradek.protocol.framing import SIZE_PREFIX
from tests.security.raw.guarded import METADATA, Guard, Guarded, plain, play
from tests.server.serving import Client

MANY = 100


async def test_slow_handshakes_of_tls_are_closed_and_others_are_served(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_handshakes, "LIMIT_SECONDS", 1.0)
    guarded = await guard()
    hellos = [await hello(guarded) for _ in range(MANY)]
    started = [await guarded.connect("SECURE") for _ in hellos]
    for number, (client, data) in enumerate(zip(started, hellos, strict=True)):
        await client.send((b"", data[:100], data)[number % 3])  # silent, in the middle, after the ClientHello
    await guarded.until(lambda: guarded.connections.handshakes == MANY)
    sent = 100
    while guarded.connections.handshakes == MANY:
        for client, data in itertools.islice(zip(started, hellos, strict=True), 1, None, 3):
            await client.send(data[sent : sent + 1])
        sent += 1
        served = await (await guarded.tls()).handshake()
        assert len(await play(served, plain())) == 4
        served.client.close()
        assert await guarded.is_serving()
    assert sent > 101
    await guarded.until(lambda: not guarded.connections.handshakes)
    await guarded.alone()


async def hello(guarded: Guarded) -> bytes:
    """Return a ClientHello."""
    made: list[bytes] = []

    class Made(Exception):  # noqa: N818 - not an error
        pass

    def keep(data: bytes) -> None:
        made.append(data)
        raise Made

    tls = await guarded.tls(keep)  # type: ignore[arg-type]
    with pytest.raises(Made):
        await tls.handshake()
    tls.client.close()
    return made[0]


async def unauthenticated(guarded: Guarded, count: int, stream: bytes) -> list[Client]:
    """Open connections that send one byte of a session after the other, and some that send nothing."""
    clients = [await guarded.connect() for _ in range(count)]
    for number, client in enumerate(clients):
        await client.send(stream[: number % len(stream)])
    return clients


async def test_clients_that_do_not_authenticate_in_time_are_closed_and_others_are_served(guarded: Guarded) -> None:
    stream = b"".join(itertools.islice(plain(), 2))
    clients = await unauthenticated(guarded, MANY, stream)
    await guarded.until(lambda: len(guarded.connections) == MANY + 1)
    for second in range(UNAUTHENTICATED_SECONDS):
        for number, client in enumerate(clients):
            position = number % len(stream) + second
            await client.send(stream[position : position + 1])
        assert await guarded.is_serving()
        if second % 10 == 0:
            client = await guarded.connect()
            assert len(await play(client, plain())) == 4
            client.close()
            await guarded.until(lambda: len(guarded.connections) == MANY + 1)
        guarded.let_pass(1 if second < UNAUTHENTICATED_SECONDS - 1 else 0.999)
    assert len(guarded.connections) == MANY + 1

    guarded.let_pass(0.001)

    await guarded.alone()


async def test_requests_that_dribble_are_closed_in_time_and_others_are_served(guarded: Guarded) -> None:
    clients = [await guarded.connect() for _ in range(MANY)]
    for client in clients:
        await play(client, plain())
        await client.send(SIZE_PREFIX.pack(1000) + METADATA[4:])
    await guarded.until(lambda: sum(bool(each.buffered) for each in guarded.connections) == MANY)
    guarded.let_pass(0)
    for _ in range(29):
        guarded.let_pass(1)
        for client in clients:
            await client.send(b"\0")
        assert await guarded.is_serving()
    assert len(guarded.connections) == MANY + 1

    guarded.let_pass(1)

    await guarded.alone()


async def test_silent_clients_that_are_known_may_stay(guarded: Guarded) -> None:
    clients = [await guarded.connect() for _ in range(MANY)]
    for client in clients:
        await play(client, plain())
    guarded.let_pass(300)
    assert len(guarded.connections) == MANY + 1
    for client in clients:
        await client.send(METADATA)
        await client.receive_frame()


@pytest.mark.parametrize("listener", ["CLEAR", "SECURE"])
async def test_unauthenticated_clients_have_a_share_of_the_connections(guard: Guard, listener: str) -> None:
    most = 40
    guarded = await guard(max_connections=str(most))
    share = int(most * UNAUTHENTICATED_SHARE)
    known = [await guarded.connect() for _ in range(5)]
    for client in known:
        await play(client, plain())
    counts = guarded.broker.metrics.listener(listener)
    created = counts.created
    opened: list[Client] = []
    for _ in range(MANY):
        tls = await (await guarded.tls()).handshake() if listener == "SECURE" else None
        opened.append(tls.client if tls is not None else await guarded.connect())
        await guarded.until(lambda: counts.created == created + len(opened))
        assert len(guarded.connections) <= 1 + len(known) + share
        assert await guarded.is_serving()
    assert counts.refused == MANY - share
    for client in known:
        await client.send(METADATA)
        await client.receive_frame()
    client = await guarded.connect()  # takes the place of the oldest
    assert len(await play(client, plain())) == 4
    assert len(guarded.connections) == 1 + len(known) + share


async def test_handshakes_of_tls_count_for_the_share_and_the_oldest_is_closed(guard: Guard) -> None:
    most = 40
    guarded = await guard(max_connections=str(most))
    share, limits = int(most * UNAUTHENTICATED_SHARE), guarded.connections
    waiting = [await guarded.connect() for _ in range(3)]
    await guarded.until(lambda: len(limits) == 1 + len(waiting))
    silent = [await guarded.connect("SECURE") for _ in range(MANY)]
    counts = guarded.broker.metrics.listener("SECURE")
    await guarded.until(lambda: counts.refused + limits.handshakes == MANY)

    assert limits.handshakes == share
    for client in (*waiting, *silent[:-share]):
        assert await client.is_closed()
    served = await (await guarded.tls()).handshake()
    assert len(await play(served, plain())) == 4
    assert limits.handshakes == share - 1  # it took the place of one, and left it
    assert await guarded.is_serving()


async def test_the_time_to_authenticate_begins_with_the_handshake(guarded: Guarded) -> None:
    tls = await guarded.tls()
    await guarded.until(lambda: guarded.connections.handshakes == 1)
    guarded.let_pass(UNAUTHENTICATED_SECONDS - 1)
    await tls.handshake()
    await guarded.until(lambda: len(guarded.connections) == 2)

    guarded.let_pass(1)

    assert len(guarded.connections) == 1
