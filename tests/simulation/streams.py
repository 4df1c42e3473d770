"""TCP connections in memory: the client's side of asyncio, and the broker's seam `server.transport`.

```
SimulatedNetwork.connect ── SYN ──► SimulatedListener ── accept ──► SocketTransport ─► broker's Connection
        ▲                                                                 │
ClientTransport ◄──────────────── two pipes, one each way ────────────────┘
```

| event | the other side sees |
|---|---|
| `close`, `abort` | the end of the stream, after everything that was sent before |
| the process dies | a reset, at once or after a cut |
| the machine loses power | nothing; a reset for what it sends after the machine is on again |
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any
from zlib import crc32

from odradek.broker.config.endpoints import Endpoint
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.context import ConnectionContext
from odradek.broker.server.connections import Connections
from odradek.client.config import Address
from tests.simulation.hosts import Host
from tests.simulation.network import Network
from tests.simulation.node_loop import NodeLoop

_END = None
"""What a pipe delivers when its sender has closed."""


def reset_connections(loop: NodeLoop) -> None:
    """Do what the kernel does when a process dies: tell the other sides of its connections."""
    for pipe in loop.pipes:
        pipe.send(_END)


class Pipe:
    """One direction of a connection, in order. `receive` is called on the loop of the receiver with each part."""

    def __init__(self, network: Network, sender: Host, receiver: Host) -> None:
        self.way = (sender.name, receiver.name)
        self.loop: NodeLoop | None = receiver.loop  # the process that holds the receiving end
        self.receive: Callable[[bytes | None], None] | None = None
        self.back: Pipe | None = None
        self._network = network
        self._receiver = receiver
        self._last = 0.0
        self._waiting: deque[bytes | None] = deque()
        assert sender.loop is not None
        sender.loop.pipes.append(self)

    def send(self, part: bytes | None) -> None:
        network = self._network
        self._waiting.append(part)
        self._last = max(self._last, network.world.now + network.delay(self.way))
        network.at(self._last, self._due)

    def _due(self) -> None:
        """Deliver the first part that waits; each call belongs to one part."""
        if self._network.is_cut(self.way):
            self._network.hold(self.way, self._due)
            return
        part = self._waiting.popleft()
        network, loop, receiver = self._network, self.loop, self._receiver
        network.delivered += 1
        if loop is not None and not loop.is_dead:
            if self.receive is not None:
                network.world.note(f"{self.way[0]}>{self.way[1]} {_summary(part)}")
                loop.call_soon(self.receive, part)
        elif part is not _END and receiver.is_on and self.back is not None:
            self.back.send(_END)  # the kernel of the receiver does not know this connection


def _summary(part: bytes | None) -> str:
    return "end" if part is None else f"{len(part)} {crc32(part):08x}"


class ClientTransport(asyncio.Transport):
    """The side that connected: what the client's `Connection` writes to."""

    def __init__(self, loop: NodeLoop, out: Pipe, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self._loop = loop
        self._out = out
        self._protocol = protocol
        self._is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_closed and not self._loop.is_dead:
            self._out.send(bytes(data))

    def abort(self) -> None:
        self._close()

    def close(self) -> None:
        self._close()

    def is_closing(self) -> bool:
        return self._is_closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def received(self, part: bytes | None) -> None:
        """Handle what the pipe from the broker delivers."""
        if self._is_closed:
            return
        if part is None:
            self._close()
            return
        position = 0
        while position < len(part) and not self._is_closed:
            room = memoryview(self._protocol.get_buffer(-1))
            count = min(len(room), len(part) - position)
            room[:count] = part[position : position + count]
            self._protocol.buffer_updated(count)
            position += count

    def _close(self) -> None:
        if not self._is_closed and not self._loop.is_dead:
            self._is_closed = True
            self._out.send(_END)
            self._loop.call_soon(self._protocol.connection_lost, None)


class SocketTransport:
    """The side that accepted: a `broker.server.transport.Transport`."""

    def __init__(self, loop: NodeLoop, out: Pipe, descriptor: int) -> None:
        self._loop = loop
        self._out = out
        self._descriptor = descriptor
        self._received = bytearray()
        self._has_ended = False
        self._is_closed = False
        loop.attach(descriptor, self)

    def received(self, part: bytes | None) -> None:
        """Handle what the pipe from the client delivers."""
        if self._is_closed:
            return
        if part is None:
            self._has_ended = True
        else:
            self._received += part
        self._loop.poll(self._descriptor)

    def has_data(self) -> bool:
        return bool(self._received) or self._has_ended

    def recv_into(self, room: memoryview) -> int:
        received = self._received
        if not received:
            if self._has_ended:
                return 0
            raise BlockingIOError
        count = min(len(room), len(received))
        room[:count] = received[:count]
        del received[:count]
        return count

    def send(self, data: bytes | bytearray | memoryview) -> int:
        if not self._loop.is_dead:
            self._out.send(bytes(data))
        return len(data)

    def send_more(self, data: bytes | bytearray | memoryview) -> int:
        return self.send(data)

    def send_file(self, file: int, position: int, count: int) -> int:
        raise NotImplementedError(f"{count} bytes at {position} of {file}: responses must be below the limit of slices")

    def has_pending(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if not self._is_closed and not self._loop.is_dead:
            self._is_closed = True
            self._loop.detach(self._descriptor)
            self._out.send(_END)

    def end_sending(self) -> None:
        return None

    def reset(self) -> None:
        self.close()


class SimulatedListener:
    """One listener of a broker, in place of `broker.server.listener.Listener`."""

    def __init__(
        self, network: Network, host: Host, endpoint: Endpoint, connections: Connections, metrics: Metrics, tls: None
    ) -> None:
        self.name = endpoint.name
        self.address = (endpoint.host, endpoint.port)
        self.is_bound = False
        self.host = host
        self.loop = host.loop
        self._network = network
        self._connections = connections
        self._listens = False
        self._accepts = False
        self._backlog: list[tuple[SocketTransport, ConnectionContext]] = []
        metrics.listener(endpoint.name)

    @property
    def is_open(self) -> bool:
        """Whether the kernel accepts connections for it."""
        return self._listens and self.loop is not None and not self.loop.is_dead

    async def bind(self) -> None:
        self.is_bound = True

    def listen(self) -> None:
        self._listens = True
        self._network.listeners[self.address] = self

    def start(self) -> None:
        self.listen()
        self._accepts = True
        for transport, context in self._backlog:
            self._connections.open(transport, context)
        self._backlog.clear()

    def stop(self) -> None:
        self._listens = self._accepts = self.is_bound = False
        for transport, _ in self._backlog:
            transport.close()
        self._backlog.clear()

    def accept(self, client: Host, into: Pipe, out: Pipe, number: int) -> None:
        """Serve a connection of `client`; parts that arrive before the process accepts it wait in its loop."""
        assert self.loop is not None
        transport = SocketTransport(self.loop, out, number)
        into.receive = transport.received
        context = ConnectionContext(self.name, self.address, (client.name, number))
        self.loop.call_soon(self._open, transport, context)

    def _open(self, transport: SocketTransport, context: ConnectionContext) -> None:
        if self._accepts:
            self._connections.open(transport, context)
        elif self._listens:
            self._backlog.append((transport, context))
        else:
            transport.close()


class SimulatedNetwork:
    """The client's `Network` for the process on one host."""

    def __init__(self, network: Network, hosts: dict[str, Host], host: Host) -> None:
        self._network = network
        self._hosts = hosts
        self._host = host

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        host, network = self._host, self._network
        loop, server = host.loop, self._hosts[address.host]
        assert loop is not None
        connected: asyncio.Future[Pipe] = loop.create_future()
        network.at(
            network.world.now + network.delay((host.name, server.name)),
            partial(_knock, network, host, server, (address.host, address.port), loop, connected),
        )
        out = await connected
        assert out.back is not None
        transport = ClientTransport(loop, out, protocol)
        out.back.receive = transport.received
        protocol.connection_made(transport)
        return transport


def _knock(
    network: Network,
    client: Host,
    server: Host,
    address: tuple[str, int],
    loop: NodeLoop,
    connected: asyncio.Future[Pipe],
) -> None:
    """Deliver a request for a connection to the machine of the server."""
    way = (client.name, server.name)
    if network.is_cut(way):
        network.hold(way, partial(_knock, network, client, server, address, loop, connected))
        return
    if not server.is_on or loop.is_dead:
        return
    listener = network.listeners.get(address)
    out = None
    if listener is not None and listener.is_open:
        out, back = Pipe(network, client, server), Pipe(network, server, client)
        out.back, back.back = back, out
        back.loop = loop
        listener.accept(client, out, back, next(network.descriptors))
    network.at(
        network.world.now + network.delay((server.name, client.name)),
        partial(_answer, network, way, loop, connected, out),
    )


def _answer(
    network: Network, way: tuple[str, str], loop: NodeLoop, connected: asyncio.Future[Pipe], out: Pipe | None
) -> None:
    """Deliver the answer of the server's machine: a connection, or a refusal."""
    back = (way[1], way[0])
    if network.is_cut(back):
        network.hold(back, partial(_answer, network, way, loop, connected, out))
    elif not loop.is_dead:
        loop.call_soon(_connected, connected, out)


def _connected(connected: asyncio.Future[Pipe], out: Pipe | None) -> None:
    if connected.done():  # the client has given up
        if out is not None:
            out.send(_END)
    elif out is None:
        connected.set_exception(ConnectionRefusedError(111, "Connection refused"))
    else:
        connected.set_result(out)
