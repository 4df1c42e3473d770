"""All connections of a broker, over all its listeners: what they share, how many there may be, and which are idle.

| limit | a connection over it |
|---|---|
| `max.connections`, or what descriptors allow | waits: nothing is accepted until another one is closed |
| `max.connections.per.ip`, with `max.connections.per.ip.overrides` | is closed at once |
| `queued.max.request.bytes` | one that is receiving a large request waits, all but one at a time; see `may_receive` |
| `connections.max.idle.ms` | one that got nothing done for so long is closed; a parked request is not idleness |

Idleness is looked for by one coarse timer (`close_idle`), not by a timer for each connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.clock import Clock
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.rules import connection_overrides
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.context import ConnectionContext
from odradek.broker.request.handler import Result
from odradek.broker.server.connection import Connection
from odradek.broker.server.dispatch import Dispatcher
from odradek.broker.server.flow_control import RunInThread
from odradek.broker.server.routes import Pending
from odradek.broker.server.transport import Transport
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.framing import ReceiveArena
from odradek.protocol.receive_memory import ReceiveMemory

_LOG = StructuredLogger(__name__)


NO_LIMIT: Final = 0x7FFF_FFFF  # of max.connections: Java's Integer.MAX_VALUE
HOLDING_CONNECTIONS = 4
"""With so many open or fewer, answers are sent at once: to wait for others would cost more than it saves."""
STUCK_SECONDS = 30
"""A client has given its request up by then: Kafka's clients have a request.timeout.ms of 30 s."""
MOST_HELD = 16
"""Connections whose answers are held at most, so that the first of them does not wait for long."""


class Connections:
    """The open connections, `most` at most. `on_room` is called when one of them was closed.

    `holds` says whether there are enough of them for `hold`.
    """

    def __init__(
        self,
        config: BrokerConfig,
        dispatcher: Dispatcher,
        metrics: Metrics,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        run_in_thread: RunInThread,
        most: int = NO_LIMIT,
    ) -> None:
        self.most = most  # whatever max.connections says
        self.configure(config)
        self.dispatcher = dispatcher
        self.clock = clock
        self.loop = loop
        self.run_in_thread = run_in_thread
        limit = config.queued_max_request_bytes
        self.arena = ReceiveArena(memory=ReceiveMemory(None if limit < 0 else limit, self._memory_freed_in_thread))
        self.on_room: list[Callable[[], None]] = []
        self.holds = False
        self._held: list[Connection] = []
        self._favoured: Connection | None = None  # the one that may receive although the memory is full
        self._waiting: dict[Connection, None] = {}  # for memory, the longest first
        self._metrics = metrics
        self._connections: set[Connection] = set()
        self._by_host: Counter[str] = Counter()
        self._abandoned: set[asyncio.Future[Result]] = set()

    def configure(self, config: BrokerConfig) -> None:
        """Let the limits of `config` hold from now on; connections that are open already stay."""
        self.config = config
        self._limit = min(config.max_connections, self.most)
        # Differs from Kafka: host names are not resolved, only addresses count, because resolving would block the loop.
        self._limits = {
            host.strip("[]"): limit
            for host, limit in connection_overrides(config.max_connections_per_ip_overrides).items()
        }

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._connections)

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def is_full(self) -> bool:
        return len(self._connections) >= self._limit

    @property
    def limited_by(self) -> str:
        """What sets the limit at which they are full."""
        return "max.connections" if self.config.max_connections <= self.most else "limit of descriptors"

    def allows(self, host: str) -> bool:
        """Whether one more connection from `host` is within its limit."""
        return self._by_host[host] < self._limits.get(host, self.config.max_connections_per_ip)

    def open(self, transport: Transport, context: ConnectionContext) -> Connection:
        """Begin to serve a connection."""
        connection = Connection(self, transport, context)
        self._connections.add(connection)
        self.holds = len(self._connections) > HOLDING_CONNECTIONS
        self._by_host[context.peer_address[0]] += 1
        self._metrics.listener(context.listener_name).created += 1
        connection.start()
        return connection

    def remove(self, connection: Connection) -> None:
        """A connection has closed itself."""
        self._connections.remove(connection)
        self.holds = len(self._connections) > HOLDING_CONNECTIONS
        context = connection.context
        host = context.peer_address[0]
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
        listener = self._metrics.listener(context.listener_name)
        listener.closed += 1
        if context.client_software_name:
            listener.software_closed(context.client_software_name, context.client_software_version)
        for tell in self.on_room:
            tell()
        self._waiting.pop(connection, None)
        if self._favoured is connection:
            self._favoured = None
            self._memory_freed()

    def may_receive(self, connection: Connection) -> bool:
        """Whether a connection may go on receiving while the large buffers of all hold `queued.max.request.bytes`.

        Those with small requests may. Of those in the middle of a large one a single one may, so that some request is
        completed, executed and its memory freed, whatever the others do; the rest wait until then. So all together
        hold no more than the limit, the largest request, and 64 KiB to 256 KiB for each connection. If the favoured one
        gets stuck, `close_idle` ends it.
        """
        if not connection.is_receiving_large_request or connection is self._favoured:
            return True
        self.arena.trim()  # what frees enough, perhaps
        if self._favoured is None:
            self._favoured = connection
            return True
        self._waiting[connection] = None
        return False

    def _memory_freed_in_thread(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._memory_freed)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    def _memory_freed(self) -> None:
        """Let those go on that wait for memory: all if there is some again, else the first if none is favoured."""
        favoured, waiting = self._favoured, self._waiting
        self.arena.memory.count_freed()
        if favoured is not None and not favoured.is_receiving_large_request:
            self._favoured = favoured = None
        if not self.arena.memory.is_full:
            self._favoured, self._waiting = None, {}
            for connection in waiting:
                connection.go_on_receiving()
        elif favoured is None and waiting:
            self._favoured = first = next(iter(waiting))
            del waiting[first]
            first.go_on_receiving()

    def hold(self, connection: Connection) -> None:
        """Let a connection `send_held` soon: when all that were readable in this turn of the loop had their turns."""
        self._held.append(connection)
        if len(self._held) == 1:
            self.loop.call_soon(self.send_held)
        elif len(self._held) == MOST_HELD:
            self.send_held()

    def send_held(self) -> None:
        """Let every connection send what it holds."""
        held, self._held = self._held, []
        for connection in held:
            connection.send_held()

    def abandon(self, pending: Pending) -> None:
        """The connection of a parked request is closed: give a long poll up, let anything else end by itself."""
        future = pending.future
        self._abandoned.add(future)
        future.add_done_callback(self._abandoned.discard)
        if pending.route.waits_for_others:
            future.cancel()

    def close_idle(self) -> None:
        """Close the connections that got nothing done for `connections.max.idle.ms`; to be called every few seconds.

        Also one that keeps others waiting for memory, and has received nothing for `STUCK_SECONDS`.
        """
        favoured, now = self._favoured, self.clock.monotonic()
        if (
            favoured is not None
            and self._waiting
            and favoured.active_at <= now - STUCK_SECONDS
            and not favoured.is_busy
        ):
            favoured.close(f"received nothing for {STUCK_SECONDS} s while others waited for memory")
        max_idle_ms = self.config.connections_max_idle_ms
        if max_idle_ms < 0:
            return
        idle_since = now - max_idle_ms / 1000
        for connection in tuple(self._connections):
            if connection.active_at <= idle_since and not connection.is_busy:
                self._metrics.listener(connection.context.listener_name).expired += 1
                connection.close(f"idle for more than {max_idle_ms} ms")

    async def finish(self, seconds: float) -> None:
        """Answer what has been received, for `seconds` at most, then close all that is left."""
        for connection in tuple(self._connections):
            connection.finish()
        try:
            async with asyncio.timeout(seconds):
                while self._connections:
                    await self._next_close()
        except TimeoutError:
            _LOG.warning("requests were cut off", connections=len(self._connections), seconds=seconds)
        await self.close()

    async def close(self) -> None:
        """Close all connections now and end what they left behind."""
        for connection in tuple(self._connections):
            connection.close("the broker stops")
        abandoned = tuple(self._abandoned)
        for future in abandoned:
            future.cancel()
        await asyncio.gather(*abandoned, return_exceptions=True)

    async def _next_close(self) -> None:
        closed: asyncio.Future[None] = self.loop.create_future()

        def tell() -> None:
            if not closed.done():
                closed.set_result(None)

        self.on_room.append(tell)
        try:
            await closed
        finally:
            self.on_room.remove(tell)
