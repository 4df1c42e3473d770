"""A broker as an object of a program: its configuration, its runs, its temporary directory.

`run` has the order of a start and a stop.
"""

from __future__ import annotations

import shutil
from asyncio import Event
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from odradek.broker.clock import Clock, SystemClock
from odradek.broker.config import BrokerConfig
from odradek.broker.maintenance.periodic_tasks import PeriodicTasks
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.metrics.collectors.group_lag import GroupLag
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.randomness import Randomness, SystemRandomness
from odradek.broker.request.services import Services
from odradek.broker.run import Run, Surroundings
from odradek.broker.server.routes import Routes
from odradek.broker.server.server import Server
from odradek.broker.startup.embedded_config import READ_ONLY, embedded_config
from odradek.broker.startup.machine import Machine
from odradek.broker.storage.disk.files import OsFiles, UnsyncedFiles
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs


class Broker:
    """One broker: `async with Broker(...) as broker`, or `start` and `stop`, once each.

    With properties instead of a BrokerConfig it is an embedded broker: the defaults are a free port of the loopback
    interface, and a temporary directory that is removed at the end, so that nothing in it is ever synced. Several
    brokers in one interpreter share nothing.

    With `read_only` it serves a log directory as it is, changes no byte of it and takes no lock: see `read_only_files`
    and `HandlerTable`. Its metadata are a copy, or are derived from the topics in the directory.
    """

    def __init__(
        self,
        config: BrokerConfig | Mapping[str, str] | None = None,
        *,
        read_only: bool = False,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        store: MetadataStore | None = None,
        machine: Machine | None = None,
    ) -> None:
        """`store`: a metadata store that several brokers of this process share, in place of etcd; it stays open.

        `machine`: files, threads and network of a simulation.
        """
        self._temporary: Path | None = None
        if not isinstance(config, BrokerConfig):
            config, self._temporary = embedded_config({**(config or {}), **(READ_ONLY if read_only else {})})
        self.config = config
        self.clock = clock or SystemClock()
        self._run = Run(
            Surroundings(
                config=config,
                clock=self.clock,
                randomness=randomness or SystemRandomness(),
                machine=machine or Machine(new_files=OsFiles if self._temporary is None else UnsyncedFiles),
                store=store,
                read_only=read_only,
                is_temporary=self._temporary is not None,
            )
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

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
    def metrics_port(self) -> int:
        """The port of the status pages, -1 without them."""
        return self._run.metrics_port

    @property
    def bootstrap(self) -> str:
        """The value of bootstrap.servers for clients on this machine."""
        host, port = next(iter(self._running_server().addresses.values()))
        return f"{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{port}"  # noqa: S104 - compared, not bound

    async def start(self) -> None:
        """Start, and return when clients are served.

        Raises `LogDirRefusedError`, `RegistrationError`, `StoreError` or `OSError`; then no part is left running.
        """
        try:
            await self._run.start()
        except BaseException:
            self._remove_directory()
            raise

    async def stop(self) -> None:
        """Leave the partitions to others, answer all received requests, flush and close the logs, release resources."""
        try:
            await self._run.stop()
        finally:
            self._remove_directory()

    def _remove_directory(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _running_server(self) -> Server:
        server = self._run.server
        if server is None:
            raise RuntimeError("the broker is not started")
        return server
