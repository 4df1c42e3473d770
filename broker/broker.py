"""A broker as an object of a program: its configuration, its runs, its temporary directory.

```
            ┌──────────── start ◄───────────┐
            ▼                               │
new ─► running ──── stop, kill ─────► stopped ─► close ─► closed
 └─────────────────── close ────────────────────────────────▲
```

Each start makes another `Run`, which has the order of a start and a stop. Ports, data and cluster id stay the same:
while the broker is stopped, a port that the system chose is kept for it (`reserved_ports`).

A temporary log directory exists from the constructor, also if `start` is never called, until `close`. If that is never
called, the directory is removed when the object is garbage or the process exits. A first start that fails removes it.
"""

from __future__ import annotations

import weakref
from asyncio import Event
from collections.abc import Awaitable, Callable
from enum import Enum
from types import TracebackType
from typing import Self

from odradek.broker.clock import Clock, SystemClock
from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.maintenance.periodic_tasks import PeriodicTasks
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.metrics.collectors.group_lag import GroupLag
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.randomness import Randomness, SystemRandomness
from odradek.broker.request.services import Services
from odradek.broker.run import Run
from odradek.broker.server.connections import Connections
from odradek.broker.server.reserved_ports import ReservedPorts
from odradek.broker.server.routes import Routes
from odradek.broker.server.server import Server
from odradek.broker.startup.embedded_config import READ_ONLY, Properties, embedded_config
from odradek.broker.startup.machine import Machine
from odradek.broker.startup.surroundings import Surroundings, Worker
from odradek.broker.startup.temporary_log_dir import TemporaryLogDir
from odradek.broker.storage.disk.files import OsFiles, UnsyncedFiles
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs


class _State(Enum):
    NEW = "is not started"
    STARTING = "is starting"
    RUNNING = "is running"
    STOPPING = "is stopping"
    STOPPED = "is stopped"
    CLOSED = "is closed"


class Broker:
    """One broker: `async with Broker(...) as broker`, or `start`, `stop` and so on, and `close` at the end.

    It may start, stop or be killed any number of times, one after the other. With properties instead of a BrokerConfig
    it is an embedded broker: the defaults are a free port of the loopback interface, and a temporary directory that is
    removed at the end, so that nothing in it is ever synced. Several brokers in one interpreter share nothing.

    With `read_only` it serves a log directory as it is, changes no byte of it and takes no lock: see `read_only_files`
    and `HandlerTable`. Its metadata are a copy, or are derived from the topics in the directory.
    """

    def __init__(
        self,
        config: BrokerConfig | Properties | None = None,
        *,
        read_only: bool = False,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        store: MetadataStore | None = None,
        machine: Machine | None = None,
        worker: Worker | None = None,
    ) -> None:
        """`store`: a metadata store that several brokers of this process share, in place of etcd; it stays open.

        `machine`: files, threads and network of a simulation. `worker`: what several processes share (num.workers).
        """
        self._directory: TemporaryLogDir | None = None
        if not isinstance(config, BrokerConfig):
            config, self._directory = embedded_config({**(config or {}), **(READ_ONLY if read_only else {})})
        if worker is None and config.num_workers > 1:
            if self._directory is not None:
                self._directory.remove()
            raise ConfigError(
                ["num.workers: a broker in another program is one process; `odradek broker` starts several"]
            )
        self._reserved = ReservedPorts()
        weakref.finalize(self, self._reserved.release)
        if self._directory is not None:
            weakref.finalize(self, self._directory.remove)
        self.config = config
        self.clock = clock or SystemClock()
        self.on_start: list[Callable[[], None]] = []
        """Called in each start, in order, when `services` and `routes` exist and no client is served yet."""
        self._surroundings = Surroundings(
            config=config,
            clock=self.clock,
            randomness=randomness or SystemRandomness(),
            machine=machine or Machine(new_files=OsFiles if self._directory is None else UnsyncedFiles),
            store=store,
            read_only=read_only,
            is_temporary=self._directory is not None,
            worker=worker,
        )
        self._state = _State.NEW
        self._run = Run(self._surroundings, self.on_start)  # the last one; after a stop its parts can still be read
        self._has_run = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def failed(self) -> Event:
        """Set when the broker cannot go on: its owner must stop it."""
        return self._run.failed

    @property
    def metrics(self) -> Metrics:
        return self._run.metrics

    @property
    def services(self) -> Services:
        """What the handlers of requests work with; exists after the first start, as do the next three."""
        return self._run.services

    @property
    def log_dirs(self) -> LogDirs:
        return self._run.log_dirs

    @property
    def periodic_tasks(self) -> PeriodicTasks:
        return self._run.periodic_tasks

    @property
    def group_lag(self) -> GroupLag:
        return self._run.group_lag

    @property
    def log_dir(self) -> LogDir:
        """The first of the log directories."""
        return self.log_dirs.first

    @property
    def routes(self) -> Routes:
        """The routes of requests, which tests and traces intercept."""
        return self._running_server().dispatcher.routes

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return next(iter(self.ports.values()))

    @property
    def ports(self) -> dict[str, int]:
        """The ports by listener name."""
        return {name: port for name, (_, port) in self._running_server().addresses.items()}

    @property
    def connections(self) -> Connections:
        """The open connections of clients."""
        return self._running_server().connections

    @property
    def metrics_port(self) -> int:
        """The port of the status pages, -1 without them."""
        return self._run.metrics_port

    @property
    def bootstrap(self) -> str:
        """The value of bootstrap.servers for clients on this machine."""
        host, port = next(iter(self._running_server().addresses.values()))
        return f"{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{port}"  # noqa: S104 - compared, not bound

    @property
    def is_running(self) -> bool:
        """Whether it has started and was not stopped since."""
        return self._state is _State.RUNNING

    async def start(self) -> None:
        """Start, and return when clients are served; on the same ports and with the same data as before a stop.

        Raises `LogDirRefusedError`, `RegistrationError`, `StoreError` or `OSError`; then no part is left running.
        Raises RuntimeError if it runs already or is closed.
        """
        if self._state not in (_State.NEW, _State.STOPPED):
            raise RuntimeError(f"the broker {self._state.value}")
        before, self._state = self._state, _State.STARTING
        if self._directory is not None:
            self._directory.create_again()
        if self._has_run:
            self._run = Run(self._surroundings, (*self.on_start, self._reserved.release), self._run.ports)
        self._has_run = True
        try:
            await self._run.start()
        except BaseException:
            self._state = before
            if before is _State.STOPPED:
                self._reserved.reserve()
            elif self._directory is not None:
                self._directory.remove()
            raise
        self._state = _State.RUNNING

    async def stop(self) -> None:
        """Leave the partitions to others, answer all received requests, flush and close the logs, release resources.

        Data and ports stay for the next start. Does nothing if it does not run.
        """
        await self._end_with(self._run.stop)

    async def kill(self) -> None:
        """End as if `kill -9` killed the process: nothing is flushed or written any more, and clients see a reset.

        The data stay as they are; the next start recovers them. In a cluster the other brokers notice when its session
        expires. Does nothing if it does not run.
        """
        await self._end_with(self._run.kill)

    async def restart(self) -> None:
        """Stop, and start again. Raises as `start`."""
        await self.stop()
        await self.start()

    async def close(self) -> None:
        """Stop for the last time, and remove the temporary directory, if it has one. May be repeated.

        If it has one and no other broker depends on it, nothing is saved and clients are closed at once.
        """
        loses_data = self._directory is not None and not self._surroundings.is_member
        try:
            await self._end_with(self._run.discard if loses_data else self._run.stop)
        finally:
            self._state = _State.CLOSED
            self._reserved.release()
            if self._directory is not None:
                self._directory.remove()

    async def _end_with(self, end: Callable[[], Awaitable[None]]) -> None:
        if self._state is not _State.RUNNING:
            return
        self._state = _State.STOPPING
        chosen = {endpoint.name for endpoint in self.config.listeners if not endpoint.port}  # by the system
        addresses = self._running_server().addresses
        self._reserved.addresses = [address for name, address in addresses.items() if name in chosen]
        try:
            await end()
        finally:
            self._state = _State.STOPPED
            self._reserved.reserve()

    def _running_server(self) -> Server:
        server = self._run.server
        if server is None:
            raise RuntimeError("the broker is not started")
        return server
