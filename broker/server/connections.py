"""All open connections of a broker, over all its listeners: shared memory, limits, and the closing of idle ones.

| limit | a connection over it |
|---|---|
| the number of connections, and their rate | see `connection_limits` |
| `queued.max.request.bytes` | waits while receiving a large request, except one at a time; see `may_receive` |
| `queued.max.response.bytes` | may be closed if its answer is unread; see `answer_memory` |
| `connections.max.idle.ms` | is closed after that time without progress; a parked request is not idleness |
| `socket.request.receive.timeout.ms` | is closed if a request is not complete by then |
| a share of all before its TLS handshake or authentication ends | the oldest such connection is closed |
| `UNAUTHENTICATED_SECONDS` | is closed if it is not authenticated by then |

One coarse timer finds idle and slow connections (`close_idle`), instead of a timer for each: a connection is closed up
to two of its intervals later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from odradek.broker import waiting
from odradek.broker.clock import Clock
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.authenticators import Authenticators
from odradek.broker.request.context import ConnectionContext
from odradek.broker.request.handler import Result
from odradek.broker.server.closing import Closing
from odradek.broker.server.connection import Connection
from odradek.broker.server.connection_limits import NO_LIMIT, ConnectionLimits
from odradek.broker.server.dispatch import Dispatcher
from odradek.broker.server.flow_control import RunInThread
from odradek.broker.server.limited_log import LimitedLog
from odradek.broker.server.routes import Pending
from odradek.broker.server.transport import Transport
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.framing import ReceiveArena
from odradek.protocol.receive_memory import ReceiveMemory

_LOG = StructuredLogger(__name__)


HOLDING_CONNECTIONS = 4
"""With so many open connections or fewer, answers are sent at once: holding them costs more than it saves."""
STUCK_SECONDS = 30
"""By then a client has given up its request: the request.timeout.ms of Kafka's clients is 30 s."""
UNAUTHENTICATED_SHARE: Final = 0.25
"""Of the most connections, so many may be unauthenticated: the rest is for clients that have shown who they are."""
UNAUTHENTICATED_SECONDS: Final = 30
MOST_HELD = 16
"""The most connections with held answers, so that the first of them does not wait for long."""


class _Unauthenticated(NamedTuple):
    """A connection in its TLS handshake or before its authentication, since `opened_at`."""

    opened_at: float
    close: Callable[[str], None]


class Connections:
    """The open connections, at most `most`. The callbacks in `on_room` are called when one was closed.

    `holds` is true if there are enough of them for `hold`.
    """

    def __init__(
        self,
        config: CurrentConfig,
        dispatcher: Dispatcher,
        metrics: Metrics,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        run_in_thread: RunInThread,
        most: int = NO_LIMIT,
        authenticators: Authenticators | None = None,
    ) -> None:
        self._authenticators = authenticators
        self._config = config
        self.limits = ConnectionLimits(config, most)
        config.on_change(self._config_changed)
        self.dispatcher = dispatcher
        dispatcher.answer_memory.make_room = self._discard_answer
        self.clock = clock
        self.timers = waiting.timers(clock)
        self.loop = loop
        self.run_in_thread = run_in_thread
        self.closing = Closing(loop, clock.monotonic)
        limit = config.broker.queued_max_request_bytes
        self.arena = ReceiveArena(memory=ReceiveMemory(None if limit < 0 else limit, self._memory_freed_in_thread))
        self.on_room: list[Callable[[], None]] = []
        self.limited_log = LimitedLog(_LOG, clock)
        self.holds = False
        self._held: list[Connection] = []
        self._favoured: Connection | None = None  # the only one that may receive while the memory is full
        self._waiting: dict[Connection, None] = {}  # for memory, in the order of waiting
        self._metrics = metrics
        self._connections: dict[Connection, None] = {}
        self._unauthenticated: dict[ConnectionContext, _Unauthenticated] = {}  # the oldest first
        self._partial: dict[Connection, float] = {}  # with the time from which a request has been incomplete
        self.handshakes = 0  # those of TLS under way
        self._abandoned: set[asyncio.Future[Result]] = set()
        self._unstarted: list[Connection] | None = None  # those that `interrupt` makes wait, until `resume`

    @property
    def config(self) -> BrokerConfig:
        """The configuration as it holds now."""
        return self._config.broker

    def _config_changed(self) -> None:
        """Apply new limits: open connections stay, and waiting ones are accepted if there is room."""
        self.limits.config_changed()
        for notify in self.on_room:
            notify()

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._connections)

    def __len__(self) -> int:
        return len(self._connections)

    def reserve(self, context: ConnectionContext, close: Callable[[str], None]) -> None:
        """Count a connection whose TLS handshake begins, until it is opened or released.

        `close` is called with the reason, and releases it, if newer ones need its place.
        """
        self.handshakes += 1
        self.limits.opened(context)
        self._record_unauthenticated(context, close)

    def release(self, context: ConnectionContext) -> None:
        """Forget a connection whose handshake has failed."""
        self.handshakes -= 1
        self.limits.closed(context)
        self._unauthenticated.pop(context, None)
        for notify in self.on_room:
            notify()

    def handshake_failed(self, context: ConnectionContext, reason: str) -> None:
        """Record that a connection has not been opened, because there was no agreement on TLS."""
        if self._authenticators is not None:
            self._authenticators.handshake_failed(context, reason)

    def open(self, transport: Transport, context: ConnectionContext, *, is_reserved: bool = False) -> Connection:
        """Start to serve a connection; `is_reserved`: it is counted already."""
        if self._authenticators is not None:
            self._authenticators.begin(context)
        if is_reserved:
            self.handshakes -= 1
        else:
            self.limits.opened(context)
        connection = Connection(self, transport, context)
        self._connections[connection] = None
        self.holds = len(self._connections) > HOLDING_CONNECTIONS
        self._make_room(connection)
        self._metrics.listener(context.listener_name).created += 1
        if self._unstarted is None:
            connection.start()
        else:
            self._unstarted.append(connection)
        return connection

    def _make_room(self, connection: Connection) -> None:
        """Close others in place of a new connection that may not have to wait; see `connection_limits`."""
        context = connection.context
        if context.listener_name == self.limits.protected and len(self._connections) > self.limits.total_limit:
            others = [each for each in self._connections if each.context.listener_name != context.listener_name]
            if others:
                least_active = min(others, key=lambda each: (each.is_busy, each.active_at))
                least_active.close("max.connections: another broker has connected")
        if context.authentication is not None:
            context.authentication.on_first_success = partial(self.record_authenticated, connection)
        if context.is_authenticated:
            self._unauthenticated.pop(context, None)
        else:
            self._record_unauthenticated(context, connection.close)

    def _record_unauthenticated(self, context: ConnectionContext, close: Callable[[str], None]) -> None:
        """Record a new connection, and close the oldest of too many; one whose handshake has ended keeps its time."""
        known = self._unauthenticated.get(context)
        if known is not None:
            self._unauthenticated[context] = known._replace(close=close)
            return
        self._unauthenticated[context] = _Unauthenticated(self.clock.monotonic(), close)
        if len(self._unauthenticated) > max(1, int(self.limits.total_limit * UNAUTHENTICATED_SHARE)):
            oldest = next(iter(self._unauthenticated))
            self._metrics.listener(oldest.listener_name).refused += 1
            self._unauthenticated[oldest].close("too many connections are not authenticated")

    def record_authenticated(self, connection: Connection) -> None:
        """Record that the client of a connection, opened without `is_authenticated`, has shown who it is."""
        connection.context.is_authenticated = True
        self._unauthenticated.pop(connection.context, None)

    def remove(self, connection: Connection) -> None:
        """Remove a connection that has closed itself."""
        del self._connections[connection]
        self.holds = len(self._connections) > HOLDING_CONNECTIONS
        context = connection.context
        self.limits.closed(context)
        self._unauthenticated.pop(connection.context, None)
        self._partial.pop(connection, None)
        listener = self._metrics.listener(context.listener_name)
        listener.closed += 1
        if context.client_software_name:
            listener.software_closed(context.client_software_name, context.client_software_version)
        for notify in self.on_room:
            notify()
        self._waiting.pop(connection, None)
        if self._favoured is connection:
            self._favoured = None
            self._memory_freed()

    def may_receive(self, connection: Connection) -> bool:
        """Return whether a connection may continue to receive while all large buffers hold `queued.max.request.bytes`.

        A connection with a small request may. Of those in the middle of a large request, only one may, so that one
        request is completed and executed and its memory freed; the others wait until then. So all connections together
        hold at most the limit, the largest request, and 64 KiB to 256 KiB each. If the favoured connection makes no
        progress, `close_idle` closes it.
        """
        if not connection.is_receiving_large_request or connection is self._favoured:
            return True
        self.arena.trim()  # this may free enough
        if self._favoured is None:
            self._favoured = connection
            return True
        self._waiting[connection] = None
        return False

    def _discard_answer(self, answered: ConnectionContext) -> bool:
        """Close the connection that has taken nothing of its large answers for longest, but not the `answered` one.

        Returns false if there is none.
        """
        unread = [
            each
            for each in self._connections
            if each.unsent and each.context.answer_bytes and each.context is not answered
        ]
        if not unread:
            return False
        stuck = min(unread, key=lambda each: each.active_at)
        reason = "its answer is unread, and all answers are over queued.max.response.bytes"
        _LOG.warning("connection closed", peer=stuck.context.peer_address, reason=reason)
        stuck.close(reason)
        return True

    def muted(self, connection: Connection) -> None:
        """Let others receive: a connection that is not read for a while does not complete a large request."""
        if self._favoured is connection:
            self._favoured = None
            self._memory_freed()

    def _memory_freed_in_thread(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._memory_freed)
        except RuntimeError:  # the loop is closed: no connection waits any more
            pass

    def _memory_freed(self) -> None:
        """Resume connections that wait for memory: all if there is some again, else the first if none is favoured."""
        favoured, waiting = self._favoured, self._waiting
        self.arena.memory.count_freed()
        if favoured is not None and not favoured.is_receiving_large_request:
            self._favoured = favoured = None
        if not self.arena.memory.is_full:
            self._favoured, self._waiting = None, {}
            for connection in waiting:
                connection.resume_receiving()
        elif favoured is None and waiting:
            self._favoured = first = next(iter(waiting))
            del waiting[first]
            first.resume_receiving()

    def hold(self, connection: Connection) -> None:
        """Call `send_held` of a connection after all connections that were readable in this turn had their turns."""
        self._held.append(connection)
        if len(self._held) == 1:
            self.loop.call_soon(self.send_held)
        elif len(self._held) == MOST_HELD:
            self.send_held()

    def send_held(self) -> None:
        """Send the held answers of all connections."""
        held, self._held = self._held, []
        for connection in held:
            connection.send_held()

    def abandon(self, pending: Pending) -> None:
        """Handle a parked request whose connection is closed: cancel a long poll, and let any other request end."""
        future = pending.future
        self._abandoned.add(future)
        future.add_done_callback(self._abandoned.discard)
        if pending.route.waits_for_others:
            future.cancel()

    def close_idle(self) -> None:
        """Close the connections without progress for `connections.max.idle.ms`; called every few seconds.

        Also close those whose request or authentication takes too long, and one
        that makes others wait for memory and has received nothing for `STUCK_SECONDS`.
        """
        favoured, now = self._favoured, self.clock.monotonic()
        if (
            favoured is not None
            and self._waiting
            and favoured.active_at <= now - STUCK_SECONDS
            and not favoured.is_busy
        ):
            favoured.close(f"received nothing for {STUCK_SECONDS} s while others waited for memory")
        self._close_slow(now)
        max_idle_ms = self.config.connections_max_idle_ms
        if max_idle_ms < 0:
            return
        idle_since = now - max_idle_ms / 1000
        for connection in tuple(self._connections):
            if connection.active_at <= idle_since and not connection.is_busy:
                self._metrics.listener(connection.context.listener_name).idle += 1
                connection.close(f"idle for more than {max_idle_ms} ms")

    def _close_slow(self, now: float) -> None:
        late = now - UNAUTHENTICATED_SECONDS
        for unauthenticated in [each for each in self._unauthenticated.values() if each.opened_at <= late]:
            unauthenticated.close(f"not authenticated within {UNAUTHENTICATED_SECONDS} s")
        limit_ms = self.config.socket_request_receive_timeout_ms
        partial, self._partial = self._partial, {}
        for connection in tuple(self._connections):
            if not connection.buffered or not connection.is_reading or connection.is_busy:
                continue  # no incomplete request is being received
            since = partial.get(connection, now)
            if since < connection.answered_at:
                since = now
            if since <= now - limit_ms / 1000:
                self._metrics.listener(connection.context.listener_name).idle += 1
                connection.close(f"a request was not complete within {limit_ms} ms")
            else:
                self._partial[connection] = since

    def clock_moved(self, seconds: float) -> None:
        """Postpone what is measured by the clock, which a test has moved."""
        for connection in self._connections:
            connection.active_at += seconds
            connection.answered_at += seconds
        for connection in self._partial:
            self._partial[connection] += seconds
        for context, (opened_at, close) in self._unauthenticated.items():
            self._unauthenticated[context] = _Unauthenticated(opened_at + seconds, close)

    async def finish(self, seconds: float) -> None:
        """Answer received requests, for `seconds` at most, then close the remaining connections; also if cancelled."""
        await self.closing.finish(partial(self._finish, seconds), self.close, seconds)

    async def _finish(self, seconds: float) -> None:
        for connection in tuple(self._connections):
            connection.finish()
        try:
            async with asyncio.timeout(seconds):
                while self._connections:
                    await self._next_close()
        except TimeoutError:
            _LOG.warning("requests were cut off", connections=len(self._connections), seconds=seconds)

    async def interrupt(self, reason: str) -> None:
        """Close all connections, and return when no request runs any more; new connections wait for `resume`."""
        self._unstarted = []
        await self.close(reason)

    def resume(self) -> None:
        """Serve the connections that were opened since `interrupt`."""
        unstarted, self._unstarted = self._unstarted or [], None
        for connection in unstarted:
            if not connection.context.is_disconnected:
                connection.start()

    async def close(self, reason: str = "the broker stops", *, resets: bool = False) -> None:
        """Close all connections now, and cancel the requests that they left."""
        for connection in tuple(self._connections):
            connection.close(reason, resets=resets)
        abandoned = tuple(self._abandoned)
        for future in abandoned:
            future.cancel()
        await asyncio.gather(*abandoned, return_exceptions=True)

    async def _next_close(self) -> None:
        closed: asyncio.Future[None] = self.loop.create_future()

        def notify() -> None:
            if not closed.done():
                closed.set_result(None)

        self.on_room.append(notify)
        try:
            await closed
        finally:
            self.on_room.remove(notify)
