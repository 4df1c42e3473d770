from __future__ import annotations

import asyncio
import os
import resource
import socket

import pytest

from odradek.broker.server import listener
from odradek.protocol.messages.metadata import MetadataRequest
from tests.server.serving import METADATA_VERSION, Serve


async def test_connections_over_the_limit_wait_until_one_is_closed(serve: Serve) -> None:
    serving = await serve(max_connections="2")
    first, second, third = [await serving.connect() for _ in range(3)]
    await first.ask("Metadata", METADATA_VERSION, MetadataRequest())
    await second.ask("Metadata", METADATA_VERSION, MetadataRequest())
    await third.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    assert len(serving.connections) == 2
    first.close()
    await third.receive_frame()
    assert len(serving.connections) == 2


async def test_descriptors_limit_the_connections_below_the_property(serve: Serve) -> None:
    serving = await serve(most_connections=2)
    first, second, third = [await serving.connect() for _ in range(3)]
    await first.ask("Metadata", METADATA_VERSION, MetadataRequest())
    await second.ask("Metadata", METADATA_VERSION, MetadataRequest())
    await third.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    serving.set_at_run_time(max_connections="100")
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(serving.connections) == 2
    first.close()
    await third.receive_frame()
    assert len(serving.connections) == 2


async def test_waiting_clients_are_accepted_when_the_limit_is_raised(serve: Serve) -> None:
    serving = await serve(max_connections="1")
    first, second = [await serving.connect() for _ in range(2)]
    await first.ask("Metadata", METADATA_VERSION, MetadataRequest())
    await second.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    serving.set_at_run_time(max_connections="2")
    await second.receive_frame()


async def test_one_line_is_logged_when_accepting_pauses_and_one_when_it_resumes(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines() -> list[str]:
        return [
            record.getMessage().partition(" listener")[0] for record in caplog.records if "accept" in record.msg.name
        ]

    caplog.set_level("INFO")
    monkeypatch.setattr(listener, "SETTLING_SECONDS", 3600)
    serving = await serve(max_connections="2")
    clients = [await serving.connect() for _ in range(8)]
    for client in clients[:6]:  # each makes room for another one
        await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
        client.close()
    await serving.until(lambda: serving.metrics.listener("PLAINTEXT").created == 8)
    assert lines() == ["accepting paused"]
    monkeypatch.setattr(listener, "SETTLING_SECONDS", 0.05)
    clients[6].close()
    await serving.until(lambda: lines() == ["accepting paused", "accepting resumed"])


async def test_the_connections_of_one_address_are_limited(serve: Serve) -> None:
    serving = await serve(max_connections_per_ip="2", max_connections_per_ip_overrides="127.0.0.5:1, [::1]:9")
    clients = [await serving.connect(source="127.0.0.4") for _ in range(2)]
    for client in clients:
        await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert await (await serving.connect(source="127.0.0.4")).is_closed()
    other = await serving.connect(source="127.0.0.5")
    await other.ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert await (await serving.connect(source="127.0.0.5")).is_closed()
    clients[0].close()
    await serving.until(lambda: len(serving.connections) == 2)
    again = await serving.connect(source="127.0.0.4")
    await again.ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert serving.metrics.listener("PLAINTEXT").refused == 2


async def test_accepted_connections_are_kept_alive_and_send_at_once(serve: Serve) -> None:
    serving = await serve()
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    (connection,) = serving.connections
    with socket.socket(fileno=os.dup(connection.fileno())) as accepted:
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="the system has no choice of congestion controls")
async def test_connections_of_this_machine_are_not_paced(serve: Serve) -> None:
    serving = await serve()
    local = await serving.connect()
    other = await serving.connect(source="127.0.0.5")  # another address stands for another machine
    for client in (local, other):
        await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    controls = {}
    for connection in serving.connections:
        with socket.socket(fileno=os.dup(connection.fileno())) as accepted:
            control = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        controls[connection.context.peer_address[0]] = control.rstrip(b"\0")
    with socket.socket() as unused:
        default = unused.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
    assert controls == {"127.0.0.1": b"reno", "127.0.0.5": default}


async def test_a_client_is_served_although_the_system_refuses_the_congestion_control(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "LOCAL_CONGESTION_CONTROL", b"no-such-control")
    serving = await serve()
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())


async def test_accepting_continues_after_descriptors_were_exhausted(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    serving = await serve()
    first = await serving.connect()
    await first.ask("Metadata", METADATA_VERSION, MetadataRequest())
    waiting = [socket.socket() for _ in range(20)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.dup(0)
    os.close(spare)  # the lowest free descriptor: nothing may be opened from here on
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))

    def is_paused() -> bool:
        return any("accepting paused" in record.getMessage() for record in caplog.records)

    def created() -> int:
        return serving.metrics.listener("PLAINTEXT").created

    def is_decided() -> bool:
        return is_paused() or created() > accepted

    accepted = 1
    try:
        for each in waiting:
            each.setblocking(False)
            await asyncio.get_running_loop().sock_connect(each, serving.server.listeners[0].address)
            await serving.until(is_decided)
            if is_paused():
                break
            accepted += 1  # what an earlier test left open was closed just now
        assert is_paused()
        assert created() == accepted
        await first.ask("Metadata", METADATA_VERSION, MetadataRequest())
        first.close()  # makes room at once
        await serving.until(lambda: created() == accepted + 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in waiting:
            each.close()


async def test_several_listeners_each_have_their_name(serve: Serve) -> None:
    serving = await serve(
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://localhost:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    )
    addresses = serving.server.addresses
    assert set(addresses) == {"INSIDE", "OUTSIDE"}
    assert addresses["INSIDE"] != addresses["OUTSIDE"]
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert serving.metrics.listener("INSIDE").open == 1
    assert serving.metrics.listener("OUTSIDE").open == 0


async def test_ipv6(serve: Serve) -> None:
    serving = await serve(listeners="PLAINTEXT://[::1]:0")
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    (connection,) = serving.connections
    assert connection.context.local_address == serving.server.listeners[0].address
    assert connection.context.local_address[0] == "::1"


async def test_without_a_host_both_ip_versions_are_served(serve: Serve) -> None:
    serving = await serve(listeners="PLAINTEXT://:0")
    port = serving.server.listeners[0].port
    for host in ("127.0.0.1", "::1"):
        connected = socket.create_connection((host, port))
        await serving.until(lambda: len(serving.connections) == 1)
        (connection,) = serving.connections
        assert connection.context.local_address == (host, port)
        assert connection.context.peer_address == connected.getsockname()[:2]
        connected.close()
        await serving.until(lambda: len(serving.connections) == 0)


async def test_a_port_in_use_is_an_error_that_names_the_endpoint(serve: Serve) -> None:
    serving = await serve()
    port = serving.server.listeners[0].port
    with pytest.raises(
        OSError, match=rf"cannot listen on PLAINTEXT://127.0.0.1:{port} \(listeners\): Address already in use"
    ):
        await serve(listeners=f"PLAINTEXT://127.0.0.1:{port}")


async def test_accepted_sockets_have_the_configured_options(serve: Serve) -> None:
    serving = await serve(socket_receive_buffer_bytes="50000", socket_send_buffer_bytes="60000")
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    (connection,) = serving.connections
    accepted = socket.socket(fileno=os.dup(connection.fileno()))
    try:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 50000  # Linux doubles it
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 60000
    finally:
        accepted.close()


async def test_connections_are_counted(serve: Serve) -> None:
    serving = await serve()
    client, other = await serving.connect(), await serving.connect()
    await serving.until(lambda: len(serving.connections) == 2)
    client.close()
    await serving.until(lambda: len(serving.connections) == 1)
    counted = serving.metrics.listener("PLAINTEXT")
    assert (counted.created, counted.closed, counted.open) == (2, 1, 1)
    await other.ask("Metadata", METADATA_VERSION, MetadataRequest())


async def test_between_bind_and_start_the_port_is_known_and_clients_are_refused(serve: Serve) -> None:
    serving = await serve(start=False)
    await serving.server.bind()
    port = serving.server.listeners[0].port
    assert port > 0
    with pytest.raises(ConnectionRefusedError):
        await serving.connect()
    await serving.server.start()
    assert serving.server.listeners[0].port == port
    client = await serving.connect()
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
