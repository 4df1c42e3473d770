"""Requests of which a part has arrived: what happens to the part, whatever the client or others do next."""

from __future__ import annotations

import pytest

from odradek.protocol.framing import ReceiveArena
from odradek.protocol.messages.metadata import MetadataRequest
from tests.server.securing import connect, secured
from tests.server.serving import METADATA_VERSION, Serve, framed_request

A_REQUEST = framed_request("Metadata", METADATA_VERSION, MetadataRequest())


@pytest.mark.parametrize("count", [1, 4, 5, len(A_REQUEST) - 1, len(A_REQUEST) + 1])
async def test_a_reset_behind_a_part_of_a_request_closes_the_connection_at_once(serve: Serve, count: int) -> None:
    """uvloop reports both together, once."""
    serving = await serve()
    for _ in range(10):
        client = await serving.connect()
        await client.send((A_REQUEST * 2)[:count])
        client.reset()
    await serving.until(lambda: serving.metrics.listener("PLAINTEXT").created == 10 and not len(serving.connections))


async def test_a_reset_behind_a_part_of_a_request_in_tls_closes_the_connection_at_once(serve: Serve) -> None:
    serving = await serve(tls=secured())
    for count in range(1, len(A_REQUEST)):
        client = await connect(serving)
        await client.send(A_REQUEST[:count])
        client.client.reset()
    await serving.until(lambda: not len(serving.connections) and not serving.connections.handshakes)


async def test_a_part_of_a_request_at_the_end_of_a_full_buffer_is_not_overwritten_by_another_client(
    serve: Serve,
) -> None:
    """The next attempt to receive finds nothing: the part must not stay in the buffer that all share."""
    serving = await serve()
    size = 30 * len(A_REQUEST) + 20
    serving.connections.arena = ReceiveArena(size, serving.connections.arena.memory)
    first, second = await serving.connect(), await serving.connect()
    await serving.until(lambda: len(serving.connections) == 2)
    stream = A_REQUEST * 31
    await first.send(stream[:size])
    for _ in range(30):
        await first.receive_frame()
    other = framed_request("Metadata", METADATA_VERSION, MetadataRequest(), correlation_id=2)
    await second.send(other + other[:-1])
    await second.receive_frame()
    await first.send(stream[size:])
    assert (await first.receive_response("Metadata", METADATA_VERSION))[0] == 1
    await second.send(other[-1:])
    assert (await second.receive_response("Metadata", METADATA_VERSION))[0] == 2
