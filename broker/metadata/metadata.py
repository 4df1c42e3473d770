"""A broker's membership in its cluster: it registers, keeps the image up to date, and may be the controller.

```
start:  cluster record ─► session, register (starting), campaign ─► load ─► follow ─► running ─► keep the membership
            └ another cluster: refused     └ another broker with this node id: refused
```

Everything else in the broker reads `image`, or registers with `on_change`; only this package reads the store. Revisions
of the image only increase. Callbacks run before `wait_for_revision` returns: when a creation is answered, everything
that it needs is set up.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.cluster_record import begin_cluster, find_cluster
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metadata.freeze import Freeze
from odradek.broker.metadata.image import ImageChange, MetadataImage
from odradek.broker.metadata.image_builder import UnreadableValueError, load_image, next_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leaders.controller import Controller
from odradek.broker.metadata.membership import Membership
from odradek.broker.metadata.registration import Installation, RegistrationError
from odradek.broker.metadata.revision_waits import RevisionWaits
from odradek.broker.metadata.store.commit import commit, until_reached
from odradek.broker.metadata.store.store import (
    KV,
    TEMPORARY_ERRORS,
    Batch,
    Cmp,
    CompactedError,
    MetadataStore,
    Op,
    StoreError,
    StoreFailedError,
    TxnResult,
    Watch,
    created_at,
    read_key,
)
from odradek.broker.metadata.time_limit import limited
from odradek.broker.metadata.values import ClusterRecord, ControllerRecord, Listener
from odradek.broker.metrics.counts.metadata_store import MetadataStoreCounts
from odradek.broker.randomness import Randomness
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import create_task
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.uuids import uuid_to_text

_LOG = StructuredLogger(__name__)

SESSION_SECONDS = 2.0
"""The time until the session of a broker that is gone expires. The SQLite store ignores it."""

_RETRY_SECONDS = 0.5

OnChange = Callable[[ImageChange], None]


class Metadata:
    """One broker's membership in its cluster. The caller opens and closes the store."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        *,
        installation: Installation,
        clock: Clock,
        randomness: Randomness,
        on_failure: Callable[[str, BaseException], None],
        session_seconds: float = SESSION_SECONDS,
        is_shared: bool = False,
        counts: MetadataStoreCounts | None = None,
    ) -> None:
        """`on_failure(part, error)` must stop the broker; `is_shared`: other brokers may use the store, too."""
        self.current_config = CurrentConfig(config)
        self.store = store
        self.keys = Keys(config.metadata_etcd_namespace)
        self.is_shared = is_shared
        self._installation = installation
        self.randomness = randomness
        self.image = MetadataImage()
        self.broker_epoch = 0
        self.on_broker_epoch: list[Callable[[int], None]] = []  # called with each epoch, a new one after a lost session
        self.before_serving: list[Callable[[], Awaitable[None]]] = []  # awaited before it registers as running
        self._session_seconds = session_seconds
        self.clock = clock
        self._on_failure = on_failure
        self._callbacks: list[OnChange] = [lambda change: self.current_config.apply(change.after)]
        self._waits = RevisionWaits()
        self._freeze = Freeze(self.keys, installation.cluster_id, counts or MetadataStoreCounts())
        self._failure: StoreError | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.membership: Membership | None = None
        self._controller: Controller | None = None
        self._watch: Watch | None = None

    @property
    def config(self) -> BrokerConfig:
        """The broker's configuration as it holds now."""
        return self.current_config.broker

    @property
    def host(self) -> str:
        """The machine of this broker, if it is a worker; "" if it fails alone."""
        return self._installation.host

    @property
    def why_frozen(self) -> str | None:
        """Why the image stays as it is, although the store has changed; None if it follows the store."""
        return self._freeze.reason

    async def start(self, listeners: Sequence[Listener]) -> None:
        """Join the cluster; return when this broker runs and every partition that it can lead has its leader.

        Raises `RegistrationError` if the store belongs to another cluster or broker, `StoreError` if it fails.
        """
        await self._check_cluster()
        incarnation = uuid_to_text(self.randomness.uuid())
        identity = self._installation.identity(self.config, incarnation, listeners)
        record = ControllerRecord(self.config.node_id, incarnation)
        self._controller = Controller(
            self.store, self.keys, record, self.current_config.topic_log_config, self._request_progress
        )
        self.membership = membership = Membership(
            self.store,
            self.keys,
            identity,
            self._controller,
            session_seconds=self._session_seconds,
            wait_for_revision=self.wait_for_revision,
            wait_until_usable=self._until_usable,
            on_epoch=self._registered,
            before_serving=self._prepare_to_serve,
        )
        await membership.join()
        await self._load()
        self._start_task("metadata watch", self._follow())
        await membership.serve_first()
        self._start_task("membership", membership.keep())
        # Not before this broker runs: a controller elects no broker that is still starting.
        self._start_task("controller", self._controller.run())
        if self.image.controller_id == self.config.node_id:
            await self._controller.settled()

    def lease_deadline(self) -> float:
        """Return the boot time until which no other broker takes this one for dead, by the present image.

        Minus infinity if the registration may be gone, or if the image is older than it: what this broker leads may
        have been given to others in between.
        """
        if self.membership is None or self.image.revision < self.broker_epoch:
            return -math.inf
        return self.membership.deadline()

    def _registered(self, epoch: int) -> None:
        self.broker_epoch = epoch
        for callback in self.on_broker_epoch:
            callback(epoch)

    async def _prepare_to_serve(self) -> None:
        for callback in self.before_serving:
            await callback()

    async def drain(self) -> None:
        """Return when this broker leads no partition any more; at once if there is no other broker.

        A partition that no other can lead has no leader then. Raises `KafkaError` KAFKA_STORAGE_ERROR.
        """
        if self.membership is None or not self.image.brokers.keys() - {self.config.node_id}:
            return
        if self.why_frozen is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.why_frozen)
        try:
            await self.membership.drain()
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def stop(self, *, clean: bool = True, leaves: bool = False) -> None:
        """Leave the cluster if `clean` (everything acknowledged is on disk); otherwise only stop following.

        `leaves`: leave it in any case, so that others lead at once.
        """
        # First the tasks: the controller must not campaign again when its key vanishes.
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)  # not `gather`, which may return before `_task_ended` has run
        try:
            if (clean or leaves) and self.membership is not None and self._failure is None:
                await self.membership.leave(clean=clean)
        except StoreError as error:
            _LOG.warning("cluster not left cleanly", reason=str(error))
        finally:
            self._fail(StoreFailedError("the broker is stopping"))

    def on_change(self, callback: OnChange) -> None:
        """Call `callback(change)` for every later image, in order. It must not block.

        If it raises, the other callbacks still run, and then `on_failure`: a part of the broker has missed an image,
        and nothing would correct that.
        """
        self._callbacks.append(callback)

    def notify(self, change: ImageChange) -> None:
        """Call all callbacks of `on_change`."""
        for callback in self._callbacks:
            try:
                callback(change)
            except Exception as error:  # noqa: BLE001 - the other callbacks must run
                self._on_failure(f"metadata at revision {change.after.revision}", error)

    async def wait_for_revision(self, revision: int) -> None:
        """Return when the image is at `revision` or later and all callbacks have run. Raises `StoreError`."""
        if self._failure is not None:
            raise self._failure
        if self.image.revision >= revision:
            return
        reached = self._waits.add(revision)
        self._request_progress(revision)
        await reached

    async def commit(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        """Run a transaction, and return when this broker's own image has its outcome.

        If a comparison failed, the image has the change that made it fail. Raises `KafkaError` KAFKA_STORAGE_ERROR if
        the store has failed, REQUEST_TIMED_OUT as `time_limit` says.
        """
        try:
            async with limited():
                await self._freeze.over()
                result = await commit(self.store, self._in_cluster(when), then)
                await self.wait_for_revision(result.revision)
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        return result

    async def read(self, key: bytes) -> KV | None:
        """Read one key from the store; it may be newer than the image. Raises `KafkaError` as `commit` does."""
        try:
            async with limited():
                await self._freeze.over()
                kv, _ = await until_reached(lambda: read_key(self.store, key))
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        return kv

    async def _check_cluster(self) -> None:
        cluster_id = self._installation.cluster_id
        if self.is_shared:
            stored = await until_reached(lambda: find_cluster(self.store, self.keys))
        else:
            record = ClusterRecord(cluster_id, self.clock.time_ms())
            stored = await begin_cluster(self.store, self.keys, record, adopts=True)
        if stored is None or stored.id != cluster_id:
            owner = "no cluster" if stored is None else f"cluster {stored.id}"
            raise RegistrationError(f"the metadata belong to {owner}, the log directory to {cluster_id}")

    def _in_cluster(self, when: Sequence[Cmp]) -> Sequence[Cmp]:
        """Return the comparisons `when`, and in a shared store that of the cluster's record.

        So nothing is written into a store that was emptied a moment ago.
        """
        return (*when, created_at(self.keys.cluster, self._freeze.record_revision)) if self.is_shared else when

    async def check_cluster(self) -> None:
        """Freeze the metadata if the store has lost this cluster, or is older than the image. Raises `StoreError`.

        The watch sees a deletion at once, but not a store that began anew: for that, call this once in a while.
        """
        seen = self.image.revision
        record, revision = await read_key(self.store, self.keys.cluster)
        if not self._freeze.check(record, revision, seen) and self._watch is not None:
            self._watch.close()

    async def _until_usable(self) -> None:
        """Return when the store has this cluster. Raises `StoreError`."""
        await self.check_cluster()
        await self._freeze.over()

    async def _load(self) -> None:
        """Read everything, and publish it; wait while the store cannot be reached, or does not have this cluster."""
        change = await self._try_to_read()
        while change is None:
            await asyncio.sleep(_RETRY_SECONDS)
            change = await self._try_to_read()
        self._publish(change)
        self._freeze.thaw()

    async def _try_to_read(self) -> ImageChange | None:
        """Read the whole store; None if it cannot be reached now, or the metadata are frozen."""
        try:
            return await self._read_all()
        except TEMPORARY_ERRORS as error:
            _LOG.warning("metadata not read yet", reason=str(error))
            return None

    async def _read_all(self) -> ImageChange | None:
        """Read the whole store; None if the metadata are frozen. Raises `StoreError`."""
        seen = self.image.revision
        record, revision = await read_key(self.store, self.keys.cluster)
        if not self._freeze.check(record, revision, seen) or self._freeze.is_unreadable(revision):
            return None  # without reading the rest again and again
        kvs, revision = await self.store.range(self.keys.prefix)
        record = next((kv for kv in kvs if kv.key == self.keys.cluster), None)
        if not self._freeze.check(record, revision, seen):
            return None
        try:
            return load_image(self.keys, self.image, kvs, revision)
        except UnreadableValueError as error:
            self._freeze_unreadable(error, revision)
            return None

    def _freeze_unreadable(self, error: UnreadableValueError, revision: int) -> None:
        """Freeze the metadata of a broker that serves in a cluster; in any other raise `error`."""
        if not self.is_shared or not self.image.revision:
            raise error
        self._freeze.unreadable(error, revision)

    async def _follow(self) -> None:
        while True:
            self._watch = watch = self.store.watch(self.keys.prefix, self.image.revision)
            self._request_progress(self._waits.highest)
            try:
                async for batch in watch:
                    if not self._freeze.check_batch(batch) or not self._apply(batch):
                        watch.close()
                        break
                if self.why_frozen is None:
                    return  # the store is closed
            except CompactedError:
                _LOG.warning("metadata reloaded, the store has dropped changes", revision=self.image.revision)
            await self._load()

    def _request_progress(self, revision: int) -> None:
        """Request progress up to a revision: it may be of a foreign key, for which the watch has no batch."""
        if self._watch is not None:
            self._watch.request_progress(revision)

    def _apply(self, batch: Batch) -> bool:
        """Publish the image after `batch`; return False if that froze the metadata."""
        try:
            change = next_image(self.keys, self.image, batch)
        except UnreadableValueError as error:
            self._freeze_unreadable(error, batch.revision)
            return False
        if batch.changes:
            self._publish(change)
        elif change.after.revision > self.image.revision:  # progress: no callback has work, but waits may end
            self.image = change.after
            if self._controller is not None:
                self._controller.image_changed(change)
            self._waits.reached(self.image.revision)
        return True

    def _publish(self, change: ImageChange) -> None:
        self.image = image = change.after
        if self._controller is not None:
            self._controller.image_changed(change)
        self.notify(change)
        if self.membership is not None:
            self.membership.image_changed(image)
        self._waits.reached(image.revision)

    def _start_task(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        task = create_task(coroutine, name=name)
        task.add_done_callback(self._task_ended)
        self._tasks.append(task)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and self._failure is None:
            self._fail(error if isinstance(error, StoreError) else StoreFailedError(f"{task.get_name()}: {error}"))
            self._on_failure(task.get_name(), error)

    def _fail(self, error: StoreError) -> None:
        """End all waits with `error`: no later image will arrive."""
        self._failure = self._failure or error
        if self._controller is not None:
            self._controller.fail(self._failure)
        if self.membership is not None:
            self.membership.fail(self._failure)
        self._waits.fail(self._failure)
