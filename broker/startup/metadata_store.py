"""The metadata store of a starting broker: the choice, the wait until it can be reached, the cluster in it.

```
metadata.etcd.endpoints set     etcd ─► reachable? ─► cluster of the store ─► the log directories take its id
one of several workers          the same with the supervisor's store, at a socket
else                            log directories ─► SQLite in the first of them, whose cluster is theirs
```

A store in etcd that cannot be reached is awaited, with a line in the log every ten seconds: brokers and etcd often
start together, in any order. A wrong password or certificate ends the start.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.cluster_record import DirectoriesState, cluster_to_join, older_store
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.commit import until_reached
from odradek.broker.metadata.store.opening import open_store
from odradek.broker.metadata.store.shared.store import SharedStore
from odradek.broker.metadata.store.sqlite import FILE_NAME, copy_store
from odradek.broker.metadata.store.store import TEMPORARY_ERRORS, MetadataStore, StoreUnreachableError
from odradek.broker.metadata.values import ClusterRecord
from odradek.broker.metrics.counts.metadata_store import MetadataStoreCounts
from odradek.broker.randomness import Randomness
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.checkpoints.metadata_revision import SeenMetadata
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.names import METADATA_REVISION
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.uuids import uuid_to_text

_LOG = StructuredLogger(__name__)

_RETRY_SECONDS: Final = 0.5
_LOG_SECONDS: Final = 10.0
_EXPIRY_MARGIN_MS: Final = 1000
_SHORTEST_SESSION_SECONDS: Final = 2

SEEN_REVISION_INTERVAL_MS: Final = 60_000

STARTING: Final = "it is starting"


class Readiness:
    """The reason why a broker does not serve clients yet, or any more; for `/readyz`."""

    def __init__(self) -> None:
        self.reason = STARTING


def session_seconds(config: BrokerConfig) -> int:
    """Return the time to live of a broker's session in a shared store.

    One second less than broker.session.timeout.ms: etcd counts in whole seconds, and ends a session up to half a second
    late. So a silent broker is replaced within the timeout.
    """
    return max((config.broker_session_timeout_ms - _EXPIRY_MARGIN_MS) // 1000, _SHORTEST_SESSION_SECONDS)


async def store_path(log_dir: Path, read_only: bool, threads: DiskThreads, stack: AsyncExitStack) -> Path:
    """Return the path of the store of a broker alone: in its log directory, or of a copy, which `stack` removes."""
    path = log_dir / FILE_NAME
    if not read_only:
        return path
    copy = Path(tempfile.mkdtemp(prefix="odradek-"))
    stack.callback(shutil.rmtree, copy, ignore_errors=True)
    await threads.run(copy_store, path, copy)
    return copy / FILE_NAME


def check_alone(log_dirs: LogDirs) -> None:
    """Raise `RegistrationError` if the open log directories are of a broker whose metadata are in etcd. Blocks.

    Without that, their partitions would become topics of a broker alone: see `adoption`.
    """
    if log_dirs.seen_metadata().revision and not (log_dirs.first.path / FILE_NAME).exists():
        raise RegistrationError(
            f"the log directories are of a broker of cluster {log_dirs.first.meta.cluster_id}, whose metadata are in"
            " etcd: set metadata.etcd.endpoints. To make it a broker alone, with the partitions that it has, remove"
            f" {METADATA_REVISION} from each of them"
        )


async def open_shared_store(
    config: BrokerConfig,
    socket: Path | None,
    clock: Clock,
    stack: AsyncExitStack,
    readiness: Readiness,
    counts: MetadataStoreCounts,
) -> MetadataStore:
    """Open the store in etcd, or the supervisor's at `socket`, and return it when it can be used; see `reach`.

    `stack` closes it.
    """
    store: MetadataStore
    if socket is not None:
        store = SharedStore(socket, clock)
    else:
        heartbeat = config.broker_heartbeat_interval_ms / 1000
        store = await open_store(config, Path(), clock, heartbeat=heartbeat, counts=counts)
    stack.push_async_callback(store.close)
    await reach(store, Keys(config.metadata_etcd_namespace), clock, readiness)
    return store


async def reach(store: MetadataStore, keys: Keys, clock: Clock, readiness: Readiness) -> None:
    """Return when the store can be used; meanwhile `readiness` has the reason why it cannot.

    Raises `StoreAccessError`, `StoreFailedError`.
    """
    logged_at: float | None = None
    while True:
        try:
            await store.check(keys.prefix)
        except StoreUnreachableError as error:
            readiness.reason = f"the metadata store cannot be reached: {error}"
            if logged_at is None or clock.monotonic() - logged_at >= _LOG_SECONDS:
                logged_at = clock.monotonic()
                _LOG.warning("waiting for the metadata store", reason=str(error))
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            readiness.reason = STARTING
            return


async def shared_cluster_id(
    config: BrokerConfig, store: MetadataStore, directories: DirectoriesState, clock: Clock, randomness: Randomness
) -> str:
    """Return the id of the cluster in a shared store, after a check whether the log directories may join it.

    Raises `RegistrationError`, `StoreError`.
    """
    new = ClusterRecord(config.cluster_id or uuid_to_text(randomness.uuid()), clock.time_ms())
    keys = Keys(config.metadata_etcd_namespace)
    return await until_reached(lambda: cluster_to_join(store, keys, config.node_id, directories, new))


def directories_state(log_dirs: LogDirs) -> DirectoriesState:
    """Read what the log directories say before they are opened. Blocks. Raises as `LogDirs.stored_cluster_id`."""
    seen = log_dirs.seen_metadata()
    return DirectoriesState(log_dirs.stored_cluster_id(), seen.revision, seen.broker_epoch)


def check_leader_epochs(image: MetadataImage, log_dirs: LogDirs) -> None:
    """Raise `RegistrationError` if a log has a later leader epoch than the image: the metadata are an older copy.

    Its next leader would write other batches under an epoch that exists. So this also finds a copy that has reached the
    revision again which the directories have seen.
    """
    for log in log_dirs.every_log():
        topic = image.topics_by_id.get(log.topic_id)
        partition = None if topic is None else topic.partition(log.partition)
        if partition is not None and log.latest_leader_epoch > partition.leader_epoch:
            raise RegistrationError(
                older_store(
                    f"has leader epoch {partition.leader_epoch} of {log.topic}-{log.partition}, but its log has"
                    f" {log.latest_leader_epoch}"
                )
            )


class SeenRevision:
    """What this broker has seen of the metadata store, in its log directories for the check at the next start."""

    def __init__(self, metadata: Metadata, partitions: Partitions, log_dirs: LogDirs, threads: DiskThreads) -> None:
        self._metadata = metadata
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._threads = threads
        self._stored = SeenMetadata(logs_revision=log_dirs.logs_revision)

    async def store(self) -> None:
        """Store it if it has changed, except `logs_revision`.

        The epoch of a registration that never served is gone with it, so that the store may not have it at the next
        start.
        """
        await self._store(self._stored.logs_revision)

    async def sync_and_store(self) -> None:
        """Sync the names of all logs that are new, and store it."""
        revision = self._partitions.settled_revision
        is_new = revision not in (None, self._stored.logs_revision)
        if revision is None or not (is_new and await self._threads.run_to_end(self._log_dirs.sync_identities)):
            revision = self._stored.logs_revision
        await self._store(revision)

    async def _store(self, logs_revision: int) -> None:
        membership = self._metadata.membership
        present = self._metadata.image.revision, 0 if membership is None else membership.recorded_epoch
        seen = SeenMetadata(*max(present, self._stored[:2]), logs_revision)
        if seen != self._stored:
            await self._threads.run_to_end(
                self._log_dirs.store_seen_metadata, seen
            )  # one writer of each file at a time
            self._stored = seen

    async def check_and_store(self) -> None:
        """Check that the store has not become older than the image, and store what was seen. For a periodic call."""
        try:
            await self._metadata.check_cluster()
        except TEMPORARY_ERRORS as error:
            _LOG.debug("metadata store not checked", reason=str(error))
        await self.sync_and_store()
