"""One run of a broker, from its start to its stop: the composition root. `startup` creates the parts.

```
start   threads ─► status pages ─► log directories (lock, identity, recovery) ─► metadata store ─► bind sockets
        ─► join the cluster: image, controller ─► lead partitions ─► periodic tasks ─► accept connections
        (in a cluster of several, sockets listen before this broker is registered as running)
stop    leave the partitions to other brokers ─► close listeners ─► answer delayed requests
        ─► answer received requests, close connections ─► end periodic tasks ─► end appends, flush logs
        ─► leave the cluster ─► close the store
        ─► close logs, write the clean marker, unlock
kill    refuse all writes ─► close listeners, reset connections ─► end tasks, the appends and syncs under way
        ─► close the store ─► close files as they are, unlock
```

The end of a temporary directory is a kill that closes connections in an orderly way: nothing would read what a stop
writes.

If a part fails to start, the parts before it stop again, in reverse order. If the metadata store fails later, or the
log directory that contains it, `failed` is set and no log directory is marked clean; the owner must stop the broker, as
Kafka halts then. If another log directory fails, the broker continues without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker import waiting
from odradek.broker.descriptor_budget import current_budget
from odradek.broker.maintenance.periodic_tasks import PeriodicTasks
from odradek.broker.metadata.adoption import adopt_if_due
from odradek.broker.metadata.deleted_topics import SWEEP_INTERVAL_MS, sweep
from odradek.broker.metadata.leaders.elections import balance_leaders
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.producer_id_blocks import skip_known_ids
from odradek.broker.metadata.registration import advertised_listeners
from odradek.broker.metadata.store.sqlite import SqliteStore
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.metrics.collectors.broker_gauges import (
    RECOVERY,
    RUNNING,
    STOPPING,
    VOLUMES_REFRESH_MS,
    BrokerGauges,
)
from odradek.broker.metrics.collectors.group_lag import LAG_REFRESH_MS, GroupLag
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.partitions import Partitions
from odradek.broker.request.services import Services
from odradek.broker.server.probes import Probes
from odradek.broker.server.server import Server
from odradek.broker.startup.clock_follower import BrokerFollower
from odradek.broker.startup.log_dirs import make_log_dirs, open_log_dirs
from odradek.broker.startup.machine import on_ports
from odradek.broker.startup.metadata_store import (
    SEEN_REVISION_INTERVAL_MS,
    Readiness,
    SeenRevision,
    check_alone,
    check_leader_epochs,
    directories_state,
    open_shared_store,
    shared_cluster_id,
    store_path,
)
from odradek.broker.startup.parts import Foundation, Parts, build
from odradek.broker.startup.security import METRICS_PORT, listener_tls
from odradek.broker.startup.siblings import Siblings
from odradek.broker.startup.status_pages import start_status_pages
from odradek.broker.startup.surroundings import Surroundings
from odradek.broker.startup.worker_directories import check_finished
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from odradek.broker.security.tls.listener_tls import ListenerTls

_LOG = StructuredLogger(__name__)

FINISH_SECONDS = 1.0
"""The longest time for which a stopping broker waits until clients have received their last responses."""
FINISH_SECONDS_TEMPORARY = 0.02
"""The same for a broker in its own temporary directory, whose clients can lose nothing any more."""
DRAIN_SECONDS = 30.0
"""The longest time for which a stopping broker waits until others lead its partitions."""


class Ports(NamedTuple):
    """The ports of the run before, for the listeners and status pages whose configured port is 0."""

    listeners: Mapping[str, int]
    metrics: int


NO_PORTS = Ports({}, 0)


class Run:
    """One run: `start` once, then `stop`, `kill` or `discard` once. `failed` is set when the broker cannot go on."""

    def __init__(
        self, surroundings: Surroundings, on_start: Sequence[Callable[[], None]] = (), ports: Ports = NO_PORTS
    ) -> None:
        """`on_start` is called when all parts exist, before a client is served."""
        self.config = surroundings.config
        self.metrics = Metrics()
        self.failed = asyncio.Event()
        self.metrics_port = -1
        self._on_start = on_start
        self._ports = ports
        self.services: Services  # these four exist after `start`
        self.log_dirs: LogDirs
        self.periodic_tasks: PeriodicTasks
        self.group_lag: GroupLag
        self.server: Server | None = None
        self._surroundings = surroundings
        self._read_only = surroundings.read_only
        self._clock = surroundings.clock
        self._randomness = surroundings.randomness
        self._machine = surroundings.machine._replace(
            new_listener=on_ports(surroundings.machine.new_listener, ports.listeners)
        )
        self._budget = current_budget(len(self.config.log_dirs))
        self._stack = AsyncExitStack()
        self._partitions: Partitions | None = None
        self._gauges = BrokerGauges()
        self._is_member = surroundings.is_member
        self._readiness = Readiness()
        self._siblings = Siblings(self.config)
        self._seen_revision: SeenRevision | None = None
        self._is_clean = not self._read_only
        self._is_killed = False
        self._resets_connections = False
        self._has_started = False
        self._tls: Mapping[str, ListenerTls]  # exists after `start`

    async def start(self) -> None:
        """Start, and return when clients are served. Raises as `Broker.start` does; then no part is left running."""
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        self._has_started = True

    async def stop(self) -> None:
        """Leave the partitions to others, answer all received requests, flush and close the logs, release resources."""
        self._gauges.state = STOPPING
        self._readiness.reason = "it is stopping"
        if self._has_started and self._is_member and self._is_clean and self.config.controlled_shutdown_enable:
            await self._drain()
        await self._stack.aclose()

    async def kill(self) -> None:
        """End as a process that is killed by `kill -9`: nothing is flushed or written, clients see a reset."""
        self._resets_connections = True
        await self.discard()

    async def discard(self) -> None:
        """Release all resources at once. Nothing is written that only a later start would read."""
        self._is_killed, self._is_clean = True, False
        self.log_dirs.refuse_all()
        await self._stack.aclose()

    @property
    def ports(self) -> Ports:
        """The ports of this run, for the next one."""
        if self.server is None:
            return self._ports
        listeners = {name: port for name, (_, port) in self.server.addresses.items()}
        return Ports(listeners, self.metrics_port if self.metrics_port > 0 else self._ports.metrics)

    async def _drain(self) -> None:
        """Serve until other brokers lead this one's partitions, or the time is over."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self.services.metadata.drain()
        except (TimeoutError, KafkaError) as error:
            _LOG.warning("partitions not left to other brokers", reason=str(error) or "it takes too long")

    async def _start(self) -> None:
        """Start in the order of the module's docstring; the callbacks on the stack undo it in reverse."""
        stack = self._stack
        threads = self._machine.new_threads(asyncio.get_running_loop())
        stack.push_async_callback(threads.close)
        self._tls = await threads.run(partial(listener_tls, self.config, self._clock))
        self.metrics_port = await start_status_pages(
            self.config,
            self.metrics,
            self._gauges,
            self._clock,
            stack,
            Probes(self._why_not_ready, self._why_unhealthy, self._remark),
            self._tls.get(METRICS_PORT),
            port=self.config.metrics_port or self._ports.metrics,
        )
        self._gauges.state = RECOVERY
        store = await self._open_storage(threads)
        tasks = BackgroundTasks(self._fail, partial(waiting.pause, self._clock))
        parts = self._build(store, threads, tasks)
        stack.callback(waiting.attach(self._clock, BrokerFollower(parts.groups, parts.server, threads)))
        stack.push_async_callback(
            self._flush_and_leave, self.services.metadata, self.services.partitions, self.periodic_tasks
        )
        stack.push_async_callback(tasks.stop)
        stack.push_async_callback(self._settle)
        stack.push_async_callback(self._stop_serving, parts)
        for notify in self._on_start:
            notify()
        await parts.server.bind()
        if self._is_member:
            before_serving = self.services.metadata.before_serving
            before_serving.insert(0, self._check_leader_epochs)  # refuses the store before lost logs are reported
            before_serving.append(parts.server.listen)
        await self._join_cluster(parts.server, threads)
        self._start_tasks(tasks)
        await parts.authentications.prepare(read_only=self._read_only)
        await parts.server.start()
        self._gauges.state = RUNNING

    async def _check_leader_epochs(self) -> None:
        check_leader_epochs(self.services.metadata.image, self.log_dirs)

    def _build(self, store: MetadataStore, threads: DiskThreads, tasks: BackgroundTasks) -> Parts:
        """Create every part between the log and the sockets; none runs yet."""
        base = Foundation(
            config=self.config,
            log_dirs=self.log_dirs,
            threads=threads,
            tasks=tasks,
            metrics=self.metrics,
            clock=self._clock,
            randomness=self._randomness,
            machine=self._machine,
            on_failure=self._fail,
            most_connections=self._budget.connections,
            is_member=self._is_member,
            host=self._surroundings.host,
            read_only=self._read_only,
            tls=self._tls,
        )
        parts = build(base, store)
        self.services, self._partitions, self.server = parts.services, parts.services.partitions, parts.server
        self.periodic_tasks, self.group_lag = parts.periodic_tasks, parts.group_lag
        self._gauges.attach(self.services, self.log_dirs, self.periodic_tasks.compaction.cleaner, self.group_lag)
        if self._is_member and not self._read_only:
            self._seen_revision = SeenRevision(
                self.services.metadata, parts.services.partitions, self.log_dirs, threads
            )
        if parts.replication is not None:
            self._stack.push_async_callback(parts.replication.close)
            self._gauges.attach_fetchers(parts.replication.fetchers)
        return parts

    async def _join_cluster(self, server: Server, threads: DiskThreads) -> None:
        """Register, and return when this broker leads its partitions of the resulting image."""
        metadata, partitions = self.services.metadata, self.services.partitions
        await metadata.start(advertised_listeners(self.config, server.addresses))
        await adopt_if_due(metadata, self.log_dirs, lambda: threads.run(self.log_dirs.kraft_topics))
        if not self._read_only:
            await skip_known_ids(metadata, self.log_dirs.highest_producer_id)
        await partitions.settled()
        if not self._read_only:
            await threads.run_to_end(self.log_dirs.retire_namesakes, metadata.image.deleted)
        partitions.losses.started_revision = partitions.image.revision
        partitions.sort_out_strays(deletes=not self._read_only, sets_aside=self._is_member)
        if self._seen_revision is not None:
            await self._seen_revision.store()

    def _start_tasks(self, tasks: BackgroundTasks) -> None:
        config = self.config
        if not self._read_only:
            self.periodic_tasks.start(tasks)
            tasks.every("deleted topics", SWEEP_INTERVAL_MS, partial(sweep, self.services.metadata))
            if self._seen_revision is not None:
                seen = self._seen_revision
                tasks.every("metadata revision", SEEN_REVISION_INTERVAL_MS, seen.check_and_store, first_ms=0)
            tasks.every("offset expiration", config.offsets_retention_check_interval_ms, self.services.groups.expire)
            self.services.transactions.start()
        if self._is_member and config.auto_leader_rebalance_enable:
            interval_ms = config.leader_imbalance_check_interval_seconds * 1000
            tasks.every("leader balance", interval_ms, partial(balance_leaders, self.services.metadata))
        if config.metrics_port >= 0:
            tasks.every("group lag", LAG_REFRESH_MS, self.group_lag.refresh)
            for each in self.log_dirs.directories:  # a disk may hang
                tasks.every("log directory", VOLUMES_REFRESH_MS, partial(self._gauges.refresh_volume, each), first_ms=0)

    def _why_not_ready(self) -> str | None:
        if self.failed.is_set():
            return "it failed"
        if self._gauges.state != RUNNING:
            return self._readiness.reason
        return self._siblings.why_not_ready(self.services.metadata.image)

    def _why_unhealthy(self) -> str | None:
        return self._siblings.why_unhealthy(self.services.metadata.image) if self._gauges.state == RUNNING else None

    def _remark(self) -> str | None:
        reason = None if self._partitions is None else self.services.metadata.why_frozen
        return None if reason is None else f"the metadata are frozen: {reason}"

    async def _open_storage(self, threads: DiskThreads) -> MetadataStore:
        """Open the log directories and the metadata store; `startup.metadata_store` has the order."""
        config, stack = self.config, self._stack
        self.log_dirs = log_dirs = make_log_dirs(
            config,
            read_only=self._read_only,
            new_files=self._machine.new_files,
            max_open_files=self._budget.files_per_log_dir,
            clock=self._clock,
            randomness=self._randomness,
            metrics=self.metrics,
            on_failure=self._log_dir_failed,
        )
        if not self._is_member:
            await open_log_dirs(log_dirs, config, threads, self._clock, config.cluster_id)
            stack.push_async_callback(self._close_log_dirs, log_dirs, threads)
            if not self._read_only:
                check_finished(config)
                await threads.run(check_alone, log_dirs)
            store = await SqliteStore.open(
                await store_path(log_dirs.first.path, self._read_only, threads, stack),
                synced=not self._surroundings.is_temporary,
            )
            stack.push_async_callback(self._close_store, store)
            return store
        shared = self._surroundings.store or await open_shared_store(
            config, self._surroundings.store_socket, self._clock, stack, self._readiness, self.metrics.metadata_store
        )
        state = await threads.run(directories_state, log_dirs)
        cluster_id = await shared_cluster_id(config, shared, state, self._clock, self._randomness)
        await open_log_dirs(log_dirs, config, threads, self._clock, cluster_id)
        stack.push_async_callback(self._close_log_dirs, log_dirs, threads)
        check_finished(config)
        return shared

    async def _close_store(self, store: SqliteStore) -> None:
        if self._is_killed:
            store.refuse_all()
        await store.close()

    async def _close_log_dirs(self, log_dirs: LogDirs, threads: DiskThreads) -> None:
        if self._is_killed:
            await threads.close()  # what still runs has its files until it ends
            log_dirs.close(clean=False)
        else:
            await threads.run(log_dirs.close, clean=self._is_clean)

    async def _settle(self) -> None:
        if not self._is_killed:
            await self.services.partitions.settled()

    async def _flush_and_leave(self, metadata: Metadata, partitions: Partitions, periodic_tasks: PeriodicTasks) -> None:
        await partitions.drained()
        if self._is_killed:
            await metadata.stop(clean=False)
            return
        try:
            await periodic_tasks.flush_all()
        except KafkaError as error:
            self._is_clean = False
            _LOG.error("logs not flushed", error=str(error))
        if self._seen_revision is not None:
            await self._seen_revision.sync_and_store()
        # In a cluster the losses in a failed directory are reported, and with them its id leaves the registration.
        online = tuple(each.meta.directory_id for each in self.log_dirs.online)
        if self._is_member:
            is_whole = metadata.membership is not None and metadata.membership.log_dirs == online
        else:
            is_whole = not self.log_dirs.offline
        clean = self._is_clean and self._has_started and is_whole
        await metadata.stop(clean=clean, leaves=self._is_member and self._has_started)

    async def _stop_serving(self, parts: Parts) -> None:
        parts.server.stop_accepting()
        if self._is_killed:
            await parts.server.connections.close(resets=self._resets_connections)
        parts.transactions.stop()
        parts.groups.stop()
        for purgatory in parts.purgatories:
            purgatory.close()
        await parts.server.finish(FINISH_SECONDS_TEMPORARY if self._surroundings.is_temporary else FINISH_SECONDS)

    def _fail(self, part: str, error: BaseException) -> None:
        self._is_clean = False
        if not self.failed.is_set():
            _LOG.exception("broker failed", error, part=part)
            self.failed.set()

    def _log_dir_failed(self, log_dirs: LogDirs, index: int, error: OSError) -> None:
        if self._partitions is not None:
            self._partitions.log_dir_failed(log_dirs.directories[index])
        if index == 0 or not log_dirs.online:  # the first contains the metadata
            self._fail("log directory", error)
