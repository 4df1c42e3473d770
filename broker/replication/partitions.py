"""The registry of the partitions on this broker, by topic name and id, kept in line with the metadata image.

```
new image ─► changes ─┬─ topic deleted, replica removed: refuse requests, wait for appends, delete the log
                      ├─ topic gone without a record of its deletion: refuse requests, keep the log
                      ├─ replica new on this broker: find or create its log, lead or follow
                      ├─ another leader, epoch or in-sync set: apply it to the partition
                      └─ other configs: set a new LogConfig
```

The deletions of an image are one group of changes, its other changes the next; `partition_changes` starts a group when
the one before it is done. So if a topic is deleted and created again under the same name, its old log is deleted before
the new one is created. If a log cannot be created or deleted because descriptors or memory are exhausted, that is
retried every second.

Used on the event loop only. The part of Kafka's `ReplicaManager` that applies metadata is the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

from odradek.broker.clock import Clock
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metadata.image import BrokerImage, ImageChange, MetadataImage, PartitionImage, TopicImage
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.fencing import Fencing
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.log_changes import LogChanges
from odradek.broker.replication.lost_logs import LostLogs, without_lost_leadership
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partition_changes import Change, PartitionChanges
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.storage.disk.files import Volume
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import NOT_HOSTED, ErrorCode, KafkaError, unknown_topic_id

_LOG = StructuredLogger(__name__)

_RETRY_SECONDS = 1.0


class Partitions:
    """The registry. `config` has the properties of the logs; a change of them is applied at once.

    A high watermark that moves answers the requests in `purgatories`, a fetch of a follower those in `deletions`.
    """

    def __init__(
        self,
        *,
        node_id: int,
        log_dirs: LogDirs,
        config: CurrentConfig,
        purgatories: Sequence[Purgatory[Any]],
        deletions: Purgatory[None],
        threads: DiskThreads,
        tasks: BackgroundTasks,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._node_id, self._log_dirs = node_id, log_dirs
        self._config, self._metrics = config, metrics
        self._purgatories, self._delayed_deletions = purgatories, deletions
        self.threads, self._log_changes, self._image = threads, LogChanges(log_dirs, threads), MetadataImage()
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        self._changing = PartitionChanges(tasks, clock)
        self._clock, self._tasks, self._lag_time_max = clock, tasks, config.broker.replica_lag_time_max_ms / 1000
        config.on_change(self._config_changed)
        self.on_may_join: Callable[[Partition, int], None] = _ignore  # see `PartitionEvents.may_join`
        self.on_leadership: Callable[[Partition], None] = _ignore  # called with another leader or leader epoch
        self.on_removal: Callable[[Partition], None] = _ignore  # called before a replica is removed, or goes offline
        self.fencing: Fencing | None = None  # of the partitions that are added later
        self.losses = LostLogs(node_id, log_dirs)
        self.on_late_creation: list[Callable[[], None]] = []  # called when a retried creation succeeded

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_id.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    @property
    def log_dirs(self) -> Sequence[LogDir]:
        """The log directories with the partitions' logs."""
        return self._log_dirs.directories

    async def volume_of(self, log_dir: LogDir) -> Volume:
        """The file system of a log directory. Raises KafkaError KAFKA_STORAGE_ERROR."""
        return await self.threads.run(log_dir.volume)

    @property
    def image(self) -> MetadataImage:
        """The image that was applied last; see `settled`."""
        return self._image

    def get(self, topic: str, index: int) -> Partition:
        """The partition of a topic by name.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION; NOT_LEADER_OR_FOLLOWER if it exists on other brokers only;
        KAFKA_STORAGE_ERROR if its log directory has failed.
        """
        found = self.find(topic, index)
        if isinstance(found, KafkaError):
            raise found
        return found

    def get_by_id(self, topic_id: bytes, index: int) -> Partition:
        """The partition of a topic by id. Raises KafkaError as `get` does, and UNKNOWN_TOPIC_ID."""
        found = self.find_by_id(topic_id, index)
        if isinstance(found, KafkaError):
            raise found
        return found

    def find(self, topic: str, index: int) -> Partition | KafkaError:
        """As `get`, but return the error: a request for many partitions may have many of them, and raising is slow."""
        partitions = self._by_name.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is not None:
            return partition
        return self._error_of_absent(self._image.topics.get(topic), f"{topic}-{index}", index)

    def find_by_id(self, topic_id: bytes, index: int) -> Partition | KafkaError:
        """As `get_by_id`, but return the error."""
        partitions = self._by_id.get(topic_id)
        partition = None if partitions is None else partitions.get(index)
        if partition is not None:
            return partition
        topic = self._image.topics_by_id.get(topic_id)
        if topic is None:
            return unknown_topic_id(topic_id)
        return self._error_of_absent(topic, f"{topic.name}-{index}", index)

    def led(self, topic: str, index: int) -> Partition | None:
        """The partition of a topic by name if this broker leads it and its disk works; else None."""
        partition = self._by_name.get(topic, {}).get(index)
        return partition if partition is not None and partition.is_leader and not partition.offline else None

    def apply(self, change: ImageChange) -> None:
        """Apply a newer image, at once if possible, else later; see `settled`."""
        self._image = change.after
        if change.after.brokers is not change.before.brokers:  # a deletion of records waits for live replicas only
            for partition in tuple(self._delayed_deletions.watched):
                self._delayed_deletions.touch(partition)
        self._changing.run(self._deletions(change), self._changes(change))

    @property
    def settled_revision(self) -> int | None:
        """The revision of the newest image if all images so far have taken effect, else None."""
        return self._image.revision if self._changing.are_done else None

    async def settled(self) -> None:
        """Wait until all images so far have taken effect. Raises the exception of the change that failed."""
        await self._changing.settled()

    async def settled_within(self, timeout_ms: int) -> bool:
        """Return whether all images so far take effect before the timeout. Raises as `settled` does."""
        try:
            async with asyncio.timeout(max(0, timeout_ms) / 1000):
                await self.settled()
        except TimeoutError:
            return False
        return True

    def sort_out_strays(self, *, deletes: bool, sets_aside: bool = False) -> None:
        """Delete the logs of topics that were deleted while this broker was down. Call it when settled.

        Other logs without a partition on this broker are not served: their topic is gone without a record of its
        deletion, or their replica was moved. With `sets_aside` their directories are renamed to `-stray`.
        """
        deleted: list[Log] = []
        strays: list[Log] = []
        for log in tuple(self._log_dirs.logs.values()):  # a copy, because threads add logs
            if self._is_stray(log):
                is_deleted = deletes and log.topic_id in self._image.deleted
                (deleted if is_deleted else strays).append(log)
        if deleted:
            _LOG.info("logs of topics that were deleted meanwhile", count=len(deleted))
            self._changing.run([partial(self._remove_stray, log, self._delete_log) for log in deleted])
        if strays:
            first = f"{strays[0].topic}-{strays[0].partition}"
            if not sets_aside:
                _LOG.warning("logs without a topic", count=len(strays), first=first)
                return
            _LOG.error("logs that are not this broker's any more: renamed to -stray", count=len(strays), first=first)
            self._changing.run([partial(self._remove_stray, log, self._set_log_aside) for log in strays])

    def _is_stray(self, log: Log) -> bool:
        key = log.topic, log.partition
        return self._log_dirs.logs.get(key) is log and log.partition not in self._by_name.get(log.topic, ())

    async def _remove_stray(self, log: Log, remove: Callable[[str, int], Coroutine[Any, Any, None]]) -> None:
        if self._is_stray(log):  # a later image may have put another log in its place
            await remove(log.topic, log.partition)

    def log_dir_failed(self, log_dir: LogDir) -> None:
        """Refuse requests for the logs in a failed directory from now on, with KAFKA_STORAGE_ERROR."""
        for partition in self:
            if self._log_dirs.directory_of(partition.topic, partition.index) is log_dir:
                partition.offline = True
                self.on_removal(partition)
                self.release(partition)
        self.losses.on_loss()

    async def drained(self) -> None:
        """Wait until all appends have ended; for the stop of the broker, when no more requests come."""
        for partition in tuple(self):
            await partition.appender.drained()

    def _error_of_absent(self, topic: TopicImage | None, name: str, index: int) -> KafkaError:
        partition = None if topic is None else topic.partition(index)
        if partition is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{NOT_HOSTED} There is no partition {name}.")
        if self._node_id in partition.replicas and self._log_dirs.offline:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is in a log directory that has failed")
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} is led by {partition.leader}")

    def _deletions(self, change: ImageChange) -> Iterator[Change]:
        for old, new in change.topics():
            for index, image in enumerate(() if old is None else old.partitions):
                after = None if new is None else new.partition(index)
                stays = after is not None and self._node_id in after.replicas
                if old is not None and self._node_id in image.replicas and not stays:
                    may_delete = new is not None or old.topic_id in change.after.deleted
                    yield partial(self._remove, old, index, deletes_log=may_delete)

    def _changes(self, change: ImageChange) -> Iterator[Change]:
        is_first = change.before.revision == 0
        for old, new in change.topics():
            if new is None:
                continue
            if old is not None and old.configs != new.configs:
                yield partial(self._reconfigure, new)
            known = old.partitions if old is not None else []
            for index, image in enumerate(new.partitions):
                if self._node_id in image.replicas and (index >= len(known) or image is not known[index]):
                    had_log = is_first or (index < len(known) and self._node_id in known[index].replicas)
                    yield partial(self._update, new, index, image, had_log=had_log)

    def _update(
        self, topic: TopicImage, index: int, image: PartitionImage, *, had_log: bool
    ) -> Coroutine[Any, Any, None] | None:
        registered = self._registered(self._node_id)
        image = without_lost_leadership(image, self._node_id, registered)
        partition = self._by_id.get(topic.topic_id, {}).get(index)
        if partition is not None:
            if partition.apply(image):
                self.release(partition)
                self.on_leadership(partition)
            self.losses.check_offline(partition)
            return None
        log = self._log_dirs.find(topic.name, index, topic.topic_id)
        if had_log and self.losses.check(log, topic.topic_id, index, image, registered):
            return None  # if it may be in a failed directory, `get` raises KAFKA_STORAGE_ERROR
        if log is None or log.topic_id != topic.topic_id:
            return self._create(topic, index, image)
        self.add(topic, index, image, log)
        return None

    async def _create(self, topic: TopicImage, index: int, image: PartitionImage) -> None:
        logs, key = self._log_dirs.logs, (topic.name, index)
        try:
            while (existing := logs.get(key)) is not None and not self.losses.may_adopt(existing, image):
                # A topic of this name was there before; it was deleted, perhaps while this broker was down.
                if existing.topic_id in self._image.deleted:
                    _LOG.warning("log of an older topic deleted", topic=topic.name, partition=index)
                    await self._delete_log(topic.name, index)
                else:
                    await self._set_log_aside(topic.name, index)
            config = self._config.log_config(topic.configs)
            log = await self._log_changes.create(topic.name, index, topic.topic_id, config)
        except TransientDiskError:
            again = partial(self._create_again, topic.topic_id, index)
            self._tasks.start("partition creation", self._run_later(again))
            raise
        self.add(topic, index, image, log)

    async def _run_later(self, change: Change) -> None:
        await asyncio.sleep(_RETRY_SECONDS)
        self._changing.run([change])

    def _create_again(self, topic_id: bytes, index: int) -> Coroutine[Any, Any, None] | None:
        topic = self._image.topics_by_id.get(topic_id)
        image = None if topic is None else topic.partition(index)
        if topic is None or image is None or self._node_id not in image.replicas:
            return None
        creating = self._update(topic, index, image, had_log=False)
        return None if creating is None else self._create_and_notify(creating)

    async def _create_and_notify(self, creating: Coroutine[Any, Any, None]) -> None:
        await creating
        for notify in self.on_late_creation:
            notify()

    def add(self, topic: TopicImage, index: int, image: PartitionImage, log: Log) -> None:
        """Register a partition of this broker with this log; another one in its place must have been released."""
        partition = Partition(
            topic.name,
            topic.topic_id,
            index,
            log,
            node_id=self._node_id,
            metrics=self._metrics.topic(topic.name),
            threads=self.threads,
            followers=Followers(self._node_id, self._clock, self._registered, self._lag_time_max),
            events=self,
            fencing=self.fencing,
        )
        partition.configure(self._config.log_config(topic.configs))
        partition.apply(image)
        self.losses.forget(topic.topic_id, index)
        by_index = self._by_id.setdefault(topic.topic_id, {})
        by_index[index] = partition
        self._by_name[topic.name] = by_index
        self.on_leadership(partition)

    def advanced(self, partition: Partition) -> None:
        """Answer the parked requests that a higher high watermark makes ready."""
        for purgatory in self._purgatories:
            if partition in purgatory.watched:  # tested here: three useless calls are 0.3 µs of every append
                purgatory.touch(partition)

    def appended(self, partition: Partition) -> None:
        """Answer the parked fetches of followers that an append makes ready."""
        self.advanced(partition)

    def followed(self, partition: Partition) -> None:
        """Answer the deletions of records that the log start offset of a follower makes ready."""
        self._delayed_deletions.touch(partition)

    def may_join(self, partition: Partition, replica: int) -> None:
        """Call `on_may_join`."""
        self.on_may_join(partition, replica)

    def _registered(self, node_id: int) -> BrokerImage | None:
        return self._image.registered.get(node_id)

    def _config_changed(self) -> None:
        self._changing.run([partial(self._reconfigure, topic) for topic in self._image.topics_by_id.values()])

    def _reconfigure(self, topic: TopicImage) -> None:
        config = self._config.log_config(topic.configs)
        for partition in self._by_id.get(topic.topic_id, {}).values():
            partition.configure(config)

    def _remove(self, topic: TopicImage, index: int, *, deletes_log: bool) -> Coroutine[Any, Any, None] | None:
        self.losses.forget(topic.topic_id, index)
        by_index = self._by_id.get(topic.topic_id, {})
        partition = by_index.pop(index, None)
        if partition is None:
            return None
        if not by_index:
            del self._by_id[topic.topic_id]
            if self._by_name.get(topic.name) is by_index:
                del self._by_name[topic.name]
                self._metrics.remove_topic(topic.name)
        self.on_removal(partition)
        partition.resign()
        self.release(partition)
        if not deletes_log:
            _LOG.error("topic missing in the metadata, but not deleted: its log stays", log=partition.log.directory)
            return None
        return self._delete_log_of(partition)

    async def _delete_log_of(self, partition: Partition) -> None:
        await partition.appender.drained()
        if self._log_dirs.logs.get((partition.topic, partition.index)) is not partition.log:
            return  # a restored one is there, or that of a new topic of this name
        try:
            await self._delete_log(partition.topic, partition.index)
        except TransientDiskError:
            self._tasks.start("partition deletion", self._run_later(partial(self._delete_log_of, partition)))
            raise

    async def _delete_log(self, topic: str, index: int) -> None:
        await self._log_changes.delete(topic, index)

    async def _set_log_aside(self, topic: str, index: int) -> None:
        await self.threads.run(self._log_dirs.set_log_aside, topic, index)

    def release(self, partition: Partition) -> None:
        """Answer all requests that wait for a partition."""
        for purgatory in (*self._purgatories, self._delayed_deletions):
            purgatory.release(partition)


def _ignore(*_: object) -> None:
    """Do nothing about an event: this broker is alone."""
