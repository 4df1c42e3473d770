from __future__ import annotations

import pytest

from odradek.broker.interbroker.leader_connection import TcpLeaderConnection
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.client.scripted_broker import DROP
from tests.client.virtual_time import simulated
from tests.interbroker.place import Place


@simulated
async def test_a_fetch_is_sent_with_the_highest_version_of_both() -> None:
    place = Place()
    seen: list[FetchRequest] = []

    async def answer(_broker: object, request: FetchRequest) -> FetchResponse:
        seen.append(request)
        return FetchResponse(session_id=7)

    place.network.brokers[2].script("Fetch", answer)
    leader = TcpLeaderConnection(place.connections, 2, "fetcher-0")

    response = await leader.fetch(FetchRequest(max_wait_ms=500, min_bytes=1))

    assert response.session_id == 7
    assert seen[0].max_wait_ms == 500
    connection = await place.connections.connection(2, "fetcher-0")
    leader.close()
    assert not connection.is_open


@simulated
async def test_a_leader_without_broker_epochs_is_refused() -> None:
    place = Place()
    place.network.brokers[2].limit("Fetch", 14)

    with pytest.raises(OSError, match="has no Fetch 15, only 14"):
        await TcpLeaderConnection(place.connections, 2, "fetcher-0").fetch(FetchRequest())
    await place.connections.close()


@simulated
async def test_after_a_broken_connection_the_next_fetch_connects_again() -> None:
    place = Place()

    async def drop(*_: object) -> object:
        return DROP

    async def answer(*_: object) -> FetchResponse:
        return FetchResponse(session_id=8)

    place.network.brokers[2].script("Fetch", drop, answer)
    leader = TcpLeaderConnection(place.connections, 2, "fetcher-0")

    with pytest.raises(OSError, match="closed the connection"):
        await leader.fetch(FetchRequest())

    assert (await leader.fetch(FetchRequest())).session_id == 8
    await place.connections.close()


@simulated
async def test_a_leader_that_is_gone_is_an_error() -> None:
    place = Place()
    place.network.brokers[2].is_up = False
    with pytest.raises(OSError, match="refused"):
        await TcpLeaderConnection(place.connections, 2, "fetcher-0").fetch(FetchRequest())
    with pytest.raises(OSError, match="broker 9 is not alive"):
        await TcpLeaderConnection(place.connections, 9, "fetcher-0").fetch(FetchRequest())
