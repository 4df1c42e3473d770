"""Limits of connections: of a listener, of rates, of addresses, of slow and unauthenticated clients."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from odradek.broker.quotas.entities import entity_of
from odradek.broker.request.context import ConnectionContext
from odradek.broker.server import listener
from odradek.broker.server.connection import Connection
from odradek.broker.server.connection_limits import ListenerLimits
from odradek.broker.server.connections import UNAUTHENTICATED_SECONDS
from odradek.broker.server.transport import PlaintextTransport
from odradek.broker.waiting import Timers
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.server.serving import METADATA_VERSION, Client, Serve, Serving, default_handlers, framed_request

A_REQUEST = framed_request("Metadata", METADATA_VERSION, MetadataRequest())
TWO_LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter_broker_listener_name": "INSIDE",
}


class ManualTimers(Timers):
    """Timers that fire when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Any]] = []

    def time(self) -> float:
        return 0.0

    def call_at(self, when: float, callback: Any, /, *args: Any) -> Any:
        raise NotImplementedError

    def call_later(self, delay: float, callback: Any, /, *args: Any) -> ManualTimers:
        self.calls.append((delay, callback))
        return self

    def cancel(self) -> None:
        self.calls.clear()

    def fire(self) -> float:
        """Make the only call that waits, and return for how many seconds it waited."""
        [(delay, callback)] = self.calls
        self.calls.clear()
        callback()
        return delay


async def connect(serving: Serving, name: str) -> Client:
    """Connect to the listener of that name."""
    connecting = socket.socket()
    connecting.setblocking(False)
    client = Client(connecting)
    serving.clients.append(client)
    await asyncio.get_running_loop().sock_connect(connecting, serving.server.addresses[name])
    return client


async def ask(client: Client) -> None:
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())


def limit(serving: Serving, listener: str, limits: ListenerLimits) -> None:
    """Do what a change of the listener's properties does."""
    serving.connections.limits.of_listeners = {listener: limits}
    for notify in serving.connections.on_room:
        notify()


async def test_a_listener_has_a_limit_of_its_own_and_the_other_goes_on(serve: Serve) -> None:
    serving = await serve(**TWO_LISTENERS)
    limit(serving, "OUTSIDE", ListenerLimits(max_connections=1))
    first, waiting, inside = [await connect(serving, name) for name in ("OUTSIDE", "OUTSIDE", "INSIDE")]
    await ask(first)
    await waiting.send(A_REQUEST)
    await ask(inside)
    assert serving.metrics.listener("OUTSIDE").open == 1

    first.close()

    await waiting.receive_frame()


async def test_waiting_clients_of_a_listener_are_accepted_when_its_limit_is_raised(serve: Serve) -> None:
    serving = await serve(**TWO_LISTENERS)
    limit(serving, "OUTSIDE", ListenerLimits(max_connections=1))
    first, waiting = await connect(serving, "OUTSIDE"), await connect(serving, "OUTSIDE")
    await ask(first)
    await waiting.send(A_REQUEST)

    limit(serving, "OUTSIDE", ListenerLimits(max_connections=2))

    await waiting.receive_frame()


async def test_the_listener_of_brokers_gets_in_and_the_longest_idle_client_makes_room(serve: Serve) -> None:
    serving = await serve(max_connections="2", **TWO_LISTENERS)
    idle, active = await connect(serving, "OUTSIDE"), await connect(serving, "OUTSIDE")
    await ask(idle)
    serving.clock.advance(1000)
    await ask(active)
    waiting = await connect(serving, "OUTSIDE")
    await waiting.send(A_REQUEST)

    broker = await connect(serving, "INSIDE")
    await ask(broker)

    assert await idle.is_closed()
    await ask(active)
    assert len(serving.connections) == 2


async def test_brokers_alone_do_not_exceed_the_limit(serve: Serve) -> None:
    serving = await serve(max_connections="1", **TWO_LISTENERS)
    broker, another = await connect(serving, "INSIDE"), await connect(serving, "INSIDE")
    await ask(broker)
    await another.send(A_REQUEST)
    await ask(broker)
    assert len(serving.connections) == 1
    broker.close()
    await another.receive_frame()


async def test_connections_are_accepted_at_a_rate(serve: Serve) -> None:
    serving = await serve()
    serving.set_at_run_time(max_connection_creation_rate="2")  # 20 in the first windows
    serving.connections.timers = timers = ManualTimers()
    clients = [await serving.connect() for _ in range(25)]
    for client in clients:
        await client.send(A_REQUEST)
    await serving.until(lambda: serving.metrics.listener("PLAINTEXT").created == 21)
    await clients[0].receive_frame()
    clients[0].close()  # makes no room: the rate is not one of open connections
    await serving.until(lambda: len(serving.connections) == 20)
    assert serving.metrics.listener("PLAINTEXT").created == 21

    assert timers.fire() == pytest.approx(0.5)
    await serving.until(lambda: serving.metrics.listener("PLAINTEXT").created == 22)
    assert timers.fire() == pytest.approx(1)
    await serving.until(lambda: serving.metrics.listener("PLAINTEXT").created == 23)


async def test_the_rate_of_a_listener_does_not_hold_up_the_other_nor_that_of_the_broker_its_own(serve: Serve) -> None:
    serving = await serve(max_connection_creation_rate="1", quota_window_num="2", **TWO_LISTENERS)
    limit(serving, "INSIDE", ListenerLimits(max_creation_rate=5))
    serving.connections.timers = ManualTimers()
    for name, count in ("OUTSIDE", 2), ("INSIDE", 6):  # the last of each is over its limit
        for _ in range(count):
            last = await connect(serving, name)
            await ask(last)
        await (await connect(serving, name)).send(A_REQUEST)
    for _ in range(100):
        await ask(last)

    assert [serving.metrics.listener(name).created for name in ("OUTSIDE", "INSIDE")] == [2, 6]


async def test_an_address_over_its_quota_is_closed_later_and_the_others_are_served(serve: Serve) -> None:
    serving = await serve()
    serving.connections.timers = timers = ManualTimers()
    quotas = {entity_of([("ip", "127.0.0.4")]): {"connection_creation_rate": 1.0}}
    serving.connections.limits.address_rates.set(quotas)
    for _ in range(10):
        await ask(await serving.connect(source="127.0.0.4"))

    refused = await serving.connect(source="127.0.0.4")
    await refused.send(A_REQUEST)
    await ask(await serving.connect(source="127.0.0.5"))

    await serving.until(lambda: serving.metrics.listener("PLAINTEXT").refused == 1)
    assert timers.fire() == 1
    assert await refused.is_closed()
    assert len(serving.connections) == 11


async def test_few_refused_connections_are_kept_open(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_THROTTLED", 3)
    serving = await serve()
    quotas = {entity_of([("ip", None)]): {"connection_creation_rate": 1.0}}
    serving.connections.limits.address_rates.set(quotas)
    clients = [await serving.connect() for _ in range(14)]
    await serving.until(lambda: serving.metrics.listener("PLAINTEXT").refused == 4)

    assert await clients[13].is_closed()

    serving.server.stop_accepting()
    for client in clients[10:13]:
        assert await client.is_closed()


async def test_the_default_limit_of_an_address_does_not_hold_for_loopback(serve: Serve) -> None:
    serving = await serve()
    limits = serving.connections.limits
    for host, count in ("127.0.0.1", 600), ("::1", 600), ("192.0.2.7", 500):
        for _ in range(count):
            limits.opened(ConnectionContext("PLAINTEXT", ("h", 1), (host, 2)))

    assert limits.allows("127.0.0.1")
    assert limits.allows("::1")
    assert not limits.allows("192.0.2.7")
    serving.set_at_run_time(max_connections_per_ip="501")
    assert not limits.allows("127.0.0.1")
    assert limits.allows("192.0.2.7")


async def test_a_slow_request_closes_its_connection_and_no_other(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = default_handlers()
    serving = await serve(handlers, socket_request_receive_timeout_ms="30000")
    slow, active, silent = [await serving.connect() for _ in range(3)]
    await slow.send(A_REQUEST[:10])
    await active.send(A_REQUEST + A_REQUEST[:10])
    await active.receive_frame()
    for _ in range(6):
        serving.server.tick()
        serving.clock.advance(5000)
        await slow.send(b"\0")
        await active.send(A_REQUEST[10:] + A_REQUEST[:10])
        await active.receive_frame()
    assert len(serving.connections) == 3

    serving.server.tick()

    assert await slow.is_closed()
    assert len(serving.connections) == 2
    assert serving.metrics.listener("PLAINTEXT").idle == 1
    await ask(silent)


async def test_a_request_behind_one_that_is_executed_is_not_slow(serve: Serve) -> None:
    answer: asyncio.Future[MetadataResponse] = asyncio.get_running_loop().create_future()
    handlers = default_handlers()
    handlers.on("Metadata", lambda context, request: answer)
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send(A_REQUEST + A_REQUEST[:10])
    await serving.until(lambda: any(each.buffered for each in serving.connections))
    for _ in range(20):
        serving.server.tick()
        serving.clock.advance(5000)

    answer.set_result(MetadataResponse())

    await client.receive_frame()
    await client.send(A_REQUEST[10:])
    await client.receive_frame()


async def test_a_moved_clock_makes_no_request_slow(serve: Serve) -> None:
    serving = await serve()
    client = await serving.connect()
    await client.send(A_REQUEST[:10])
    await serving.until(lambda: any(each.buffered for each in serving.connections))
    serving.server.tick()

    serving.clock.advance(3_600_000)
    serving.server.clock_moved(3600)
    serving.server.tick()

    await client.send(A_REQUEST[10:])
    await client.receive_frame()


class Unauthenticated:
    """Connections of a server that are opened as a listener with authentication does."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.others: list[socket.socket] = []

    def open(self) -> Connection:
        ours, other = socket.socketpair()
        self.others.append(other)
        context = ConnectionContext("SASL", ("h", 1), ("192.0.2.7", 2), is_authenticated=False)
        return self.serving.connections.open(PlaintextTransport(ours), context)

    def close(self) -> None:
        for other in self.others:
            other.close()


async def test_unauthenticated_connections_take_a_share_and_the_oldest_is_closed(serve: Serve) -> None:
    serving = await serve(max_connections="8")
    of = Unauthenticated(serving)
    first, second = of.open(), of.open()
    serving.connections.record_authenticated(first)
    third, fourth = of.open(), of.open()

    assert second.context.is_disconnected
    assert [each.context.is_disconnected for each in (first, third, fourth)] == [False] * 3
    assert first.context.is_authenticated
    assert serving.metrics.listener("SASL").refused == 1
    of.close()


async def test_a_client_has_some_time_to_authenticate(serve: Serve) -> None:
    serving = await serve()
    of = Unauthenticated(serving)
    silent, known = of.open(), of.open()
    serving.connections.record_authenticated(known)
    serving.clock.advance(UNAUTHENTICATED_SECONDS * 1000 - 1)
    serving.server.tick()
    assert len(serving.connections) == 2

    serving.clock.advance(1)
    serving.server.tick()

    assert [each.context.is_disconnected for each in (silent, known)] == [True, False]
    of.close()
