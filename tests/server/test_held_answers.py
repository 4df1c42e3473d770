"""With many open connections, small answers are held until all readable connections have had their turns."""

from __future__ import annotations

import asyncio

from odradek.broker.server.connections import HOLDING_CONNECTIONS, MOST_HELD
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.server.serving import METADATA_VERSION, Client, Serve, default_handlers, framed_request

GARBAGE = b"\x00\x00\x00\x08" + b"\xff" * 8
MANY = MOST_HELD * 2


def requests(*correlation_ids: int) -> bytes:
    return b"".join(framed_request("Metadata", METADATA_VERSION, MetadataRequest(), each) for each in correlation_ids)


async def connect_all(serve: Serve, count: int) -> list[Client]:
    serving = await serve()
    return [await serving.connect() for _ in range(count)]


async def received(client: Client, count: int) -> list[int]:
    return [(await client.receive_response("Metadata", METADATA_VERSION))[0] for _ in range(count)]


async def test_every_connection_gets_its_answers_in_order(serve: Serve) -> None:
    clients = await connect_all(serve, MANY)

    for first in (1, 100):
        for number, client in enumerate(clients):
            await client.send(requests(first + number, first + number + 1))

        for number, client in enumerate(clients):
            assert await received(client, 2) == [first + number, first + number + 1]


async def test_answers_are_sent_before_an_error_closes_their_connection(serve: Serve) -> None:
    clients = await connect_all(serve, HOLDING_CONNECTIONS + 1)

    for client in clients:
        await client.send(requests(1, 2) + GARBAGE)

    for client in clients:
        assert await received(client, 2) == [1, 2]
        assert await client.is_closed()


async def test_answers_are_sent_before_a_bad_size_closes_their_connection(serve: Serve) -> None:
    clients = await connect_all(serve, HOLDING_CONNECTIONS + 1)

    for client in clients:
        await client.send(requests(1) + b"\xff\xff\xff\xff")

    for client in clients:
        assert await received(client, 1) == [1]
        assert await client.is_closed()


async def test_a_disconnect_before_the_answer_affects_no_other_connection(serve: Serve) -> None:
    *clients, leaving = await connect_all(serve, MANY)

    for client in (leaving, *clients):
        await client.send(requests(1))
    leaving.socket.close()

    for client in clients:
        assert await received(client, 1) == [1]


async def test_a_slow_reader_among_many_connections_is_not_read_from(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Metadata", lambda context, request: MetadataResponse(cluster_id="x" * 30_000))
    serving = await serve(handlers)
    for _ in range(HOLDING_CONNECTIONS):
        await serving.connect()
    await serving.until(lambda: len(serving.connections) == HOLDING_CONNECTIONS)
    others = set(serving.connections)

    client = await serving.connect(receive_buffer=4096)
    sending = asyncio.create_task(client.send(requests(*range(600))))
    await serving.until(lambda: len(serving.connections) > HOLDING_CONNECTIONS)
    [connection] = set(serving.connections) - others

    await serving.until(lambda: not connection.is_reading)
    assert await received(client, 600) == list(range(600))
    await sending
    await serving.until(lambda: connection.is_reading)
