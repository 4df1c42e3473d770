"""The network side of a broker: all its listeners, their connections, and the one timer that they need.

Start: `bind` binds the sockets, so that their ports can be registered; `start` accepts connections. Stop, in this
order, so that requests in progress are answered: `stop_accepting`; then the broker releases the purgatories, which
answers parked requests; then `finish`.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from odradek.broker.clock import Clock
from odradek.broker.config.endpoints import Endpoint
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.request.authenticators import Authenticators
from odradek.broker.request.context import Address
from odradek.broker.request.handler import Handler
from odradek.broker.request.throttling import Throttling
from odradek.broker.request.time_slices import TimeSlices
from odradek.broker.server.answer_memory import AnswerMemory
from odradek.broker.server.connection_limits import NO_LIMIT
from odradek.broker.server.connections import Connections
from odradek.broker.server.dispatch import Dispatcher
from odradek.broker.server.flow_control import RunInThread
from odradek.broker.server.listener import Listener
from odradek.broker.structured_logging import StructuredLogger

if TYPE_CHECKING:  # a broker without TLS does not import it
    from odradek.broker.security.tls.listener_tls import ListenerTls

_LOG = StructuredLogger(__name__)

TICK_SECONDS = 5.0
_RUSAGE_THREAD: int = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)  # the process, if not on Linux


class ServerListener(Protocol):
    """The seam to the accepting of connections: `Listener` is the real side."""

    name: str

    @property
    def address(self) -> Address: ...

    @property
    def is_bound(self) -> bool: ...

    async def bind(self) -> None:
        """Bind the address; connections are refused until `listen` or `start`. Raises OSError."""
        ...

    def listen(self) -> None:
        """Listen: connections wait for `start`. Raises OSError."""
        ...

    def start(self) -> None:
        """Pass each connection to `Connections.open` from now on. Raises OSError."""
        ...

    def stop(self) -> None:
        """Accept no more connections; open ones stay."""
        ...


NewListener = Callable[[Endpoint, Connections, Metrics, "ListenerTls | None"], ServerListener]


class ServerSecurity(NamedTuple):
    """The listeners, by name, that have TLS, and what begins the authentication of clients; None: nobody must."""

    tls: Mapping[str, ListenerTls] = {}
    authenticators: Authenticators | None = None


class Server:
    """The listeners and connections of one broker. Create it on the running loop.

    `services` is passed to every handler. `run_in_thread` runs a function that waits for a disk, and returns a future.
    `most_connections` limits the connections, also if the configuration allows more. The handlers use the same
    `time_slices`. Files of certificates are checked for changes with each tick.
    """

    def __init__(
        self,
        config: CurrentConfig,
        handlers: Mapping[int, Handler],
        services: Any,
        metrics: Metrics,
        clock: Clock,
        run_in_thread: RunInThread,
        *,
        most_connections: int = NO_LIMIT,
        time_slices: TimeSlices | None = None,
        new_listener: NewListener = Listener,
        security: ServerSecurity | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._metrics = metrics
        self._clock = clock
        security = security or ServerSecurity()
        limit = config.broker.socket_request_without_records_max_bytes
        answers_limit = config.broker.queued_max_response_bytes
        answer_memory = AnswerMemory(
            config.broker.socket_response_max_bytes, None if answers_limit < 0 else answers_limit
        )
        self.dispatcher = Dispatcher(handlers, services, metrics, clock, time_slices, limit, answer_memory)
        self.connections = Connections(
            config,
            self.dispatcher,
            metrics,
            clock,
            self._loop,
            run_in_thread,
            most_connections,
            security.authenticators,
        )
        self._tls = security.tls
        self._run_in_thread = run_in_thread
        self._checks: dict[str, asyncio.Future[None]] = {}  # of files, by listener
        self.listeners = [
            new_listener(endpoint, self.connections, metrics, self._tls.get(endpoint.name))
            for endpoint in config.broker.listeners
        ]
        for name, secured in self._tls.items():
            metrics.listener(name).certificate_expiry = secured.certificate_expiry_timestamp
        self.on_tick: list[Callable[[], None]] = []
        """Called every few seconds."""
        self.on_finish: list[Callable[[], None]] = []
        """Called after the last request."""
        self._timer: asyncio.TimerHandle | None = None
        self._ticked_at = clock.monotonic()
        self._cpu_at = _thread_cpu_seconds()

    def throttle_by(self, throttling: Throttling) -> None:
        """Charge requests to their clients while any client has a quota; otherwise requests do not touch it."""

        def apply() -> None:
            self.dispatcher.throttling = throttling if throttling.is_active else None

        throttling.on_active.append(apply)
        apply()
        self.connections.limits.address_rates = throttling.addresses

    async def bind(self) -> None:
        """Bind the addresses of all listeners: they are known from then on, but connections are refused until `start`.

        Raises OSError; then none is bound.
        """
        try:
            for listener in self.listeners:
                await listener.bind()
        except OSError:
            self.stop_accepting()
            raise

    async def listen(self) -> None:
        """Listen, after `bind`: from then on connections wait for `start`. Does nothing after `stop_accepting`.

        Raises OSError.
        """
        for listener in self.listeners:
            if listener.is_bound:
                listener.listen()

    async def start(self) -> None:
        """Listen and accept connections, after `bind` if that has not been called. Raises OSError as it does."""
        if not all(listener.is_bound for listener in self.listeners):
            await self.bind()
        for listener in self.listeners:
            try:
                listener.start()
            except OSError:
                self.stop_accepting()
                raise
            _LOG.info("listening", listener=listener.name, address=listener.address)
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)

    @property
    def addresses(self) -> dict[str, Address]:
        """The addresses by listener name, after `bind`."""
        return {listener.name: listener.address for listener in self.listeners}

    def stop_accepting(self) -> None:
        """Close the listening sockets; open connections stay."""
        for listener in self.listeners:
            listener.stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def finish(self, seconds: float) -> None:
        """Answer received requests, for `seconds` at most, and close all connections."""
        self.stop_accepting()
        await self.connections.finish(seconds)
        for callback in self.on_finish:
            callback()

    def clock_moved(self, seconds: float) -> None:
        """Postpone what is measured by the clock, which a test has moved: connections do not become idle by that."""
        self._ticked_at += seconds
        self.connections.clock_moved(seconds)

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)
        self.tick()

    def tick(self) -> None:
        """Do the periodic work: metrics, idle connections, unused buffers."""
        now = self._clock.monotonic()
        elapsed, self._ticked_at = now - self._ticked_at, now
        cpu = _thread_cpu_seconds()
        busy, self._cpu_at = cpu - self._cpu_at, cpu
        if elapsed > 0:
            self._metrics.observe_loop(busy, elapsed)
            self._metrics.tick(now, elapsed)
        self.connections.close_idle()
        self.connections.arena.trim()
        self.check_certificates()
        for callback in self.on_tick:
            callback()

    def check_certificates(self) -> None:
        """Read again the files of certificates that have changed, on a thread; new connections use them."""
        for name, tls in self._tls.items():
            self._metrics.listener(name).certificate_expiry = tls.certificate_expiry_timestamp
            check = self._checks.get(name)
            if check is None or check.done():
                self._checks[name] = self._run_in_thread(tls.check_files)


def _thread_cpu_seconds() -> float:
    """CPU time of the calling thread, which is the event loop's."""
    usage = resource.getrusage(_RUSAGE_THREAD)
    return usage.ru_utime + usage.ru_stime
