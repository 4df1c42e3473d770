"""The runtime of one coordinator: follows which partitions of its topic this broker leads, and keeps them in memory.

```
metadata image ─► partition led in a new epoch ─► loading (on a thread) ─► LoadedPartition: handles events
               ─► led no longer ──────────────────────────────────────────► unloaded
```

| the partition of a key is | an event for it gets |
|---|---|
| not led here, or the topic does not exist | NOT_COORDINATOR |
| loading | COORDINATOR_LOAD_IN_PROGRESS |
| loading again, after the broker ran out of file descriptors or memory | COORDINATOR_LOAD_IN_PROGRESS |
| led here, but another broker may lead it by now (`replication.fencing`) | NOT_COORDINATOR |
| led here, but loading it failed | NOT_COORDINATOR, until it is led in another epoch |
| loaded | its reply |

Kafka's `CoordinatorRuntime` is the model. Used on the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from odradek.broker.clock import Clock
from odradek.broker.coordinator.runtime.coordinator_shard import CoordinatorShard, ShardObserver
from odradek.broker.coordinator.runtime.events import Event
from odradek.broker.coordinator.runtime.internal_topic import InternalTopic
from odradek.broker.coordinator.runtime.loaded_partition import LoadedPartition
from odradek.broker.coordinator.runtime.loading import LoadedLog, load
from odradek.broker.coordinator.runtime.partition_writer import PartitionWriter
from odradek.broker.metadata.administration.topic_writes import Report, no_report
from odradek.broker.metadata.image import ImageChange, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.values import decode_partition_state
from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.broker.waiting import client_timers
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Structure

if TYPE_CHECKING:
    from odradek.broker.replication.appends.disk_threads import DiskThreads
    from odradek.broker.replication.partition import Partition
    from odradek.broker.replication.partitions import Partitions

_LOG = StructuredLogger(__name__)
_LOAD_RETRY_SECONDS = 1.0  # after an error that is not of the disk

S = TypeVar("S", bound=CoordinatorShard)


class CoordinatorRuntime(Generic[S]):
    """Runs the coordinator of `topic`. `new_shard` makes the empty state of a partition.

    `key_name` is the field that keys are logged under. `image_changed` must be called for every metadata image, `stop`
    once.
    """

    def __init__(
        self,
        topic: InternalTopic,
        new_shard: Callable[[], S],
        *,
        key_name: str,
        node_id: int,
        clock: Clock,
        metadata: Metadata,
        partitions: Partitions,
        threads: DiskThreads,
        tasks: BackgroundTasks,
        purgatory: Purgatory[bool],
    ) -> None:
        self.topic = topic
        self._new_shard = new_shard
        self._key_name = key_name
        self._node_id = node_id
        self._clock = clock
        self._timers = client_timers(clock)
        self._metadata = metadata
        self._partitions = partitions
        self._threads = threads
        self._tasks = tasks
        self._purgatory = purgatory
        self._loaded: dict[int, LoadedPartition[S]] = {}
        self._loading: dict[int, int] = {}  # leader epochs by partition
        self._loads: set[asyncio.Task[None]] = set()
        self._observers: list[ShardObserver[S]] = []  # the innermost first
        self._loop = asyncio.get_running_loop()
        self._creations = 0  # of the topic, in progress
        self._is_stopped = False
        self.on_loaded: Callable[[LoadedPartition[S]], object] = _ignore  # called with each partition that was loaded
        self.longest_load_seconds = 0.0
        """The longest time that loading one partition took."""
        partitions.on_late_creation.append(lambda: self._start(self._load_led()))

    # ---------------------------------------------------------------------------------------------------------- events

    def submit(self, key: str, event: Event) -> Structure | asyncio.Future[Structure]:
        """Handle the event; return its reply, or the future of it.

        Raises KafkaError, from here or from the future: the errors of the coordinator, and those of the table above.
        """
        self._partition_of(key).submit(key, event)
        return event.pending_reply.result(self._loop.create_future)

    def shard_of(self, key: str) -> S:
        """Return the state of the key's partition, to read. Raises KafkaError as `submit` does."""
        return self._partition_of(key).shard

    def write_marker(self, partition_index: int, marker: TransactionMarker) -> asyncio.Future[None] | None:
        """Write the end of a producer's transaction into a partition of the topic.

        Returns None when it shows in the partition's state, or the future of that. Raises KafkaError, from here or from
        the future: those of `submit`, INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED.
        """
        return self._partition_at(partition_index).write_marker(marker)

    def leader_epoch_of(self, key: str) -> int | None:
        """Return the leader epoch in which the key's partition is loaded here, None if it is not.

        A fence does not end the epoch: another broker may coordinate the key by now, or none, and this one goes on.
        """
        topic = self._metadata.image.topics.get(self.topic.name)
        partition = None if topic is None else self._loaded.get(self._index_of(key, topic))
        return None if partition is None else partition.leader_epoch

    async def confirm_leader_epoch(self, key: str, leader_epoch: int) -> bool:
        """Return whether this broker coordinates the key in that leader epoch, by a read of the metadata store.

        Raises KafkaError if the store does not answer.
        """
        topic = self._metadata.image.topics.get(self.topic.name)
        if topic is None:
            return False
        key_of_state = self._metadata.keys.partition_state(topic.topic_id, self._index_of(key, topic))
        kv = await self._metadata.read(key_of_state)
        state = None if kv is None else decode_partition_state(kv.value)
        return state is not None and state.leader == self._node_id and state.leader_epoch == leader_epoch

    def loaded_partitions(self) -> tuple[LoadedPartition[S], ...]:
        return tuple(self._loaded.values())

    def add_observer(self, observer: ShardObserver[S]) -> None:
        """Pass the events and records of all partitions through `observer`. Without observers none of it costs."""
        self._observers.append(observer)
        self._observe()

    def remove_observer(self, observer: ShardObserver[S]) -> None:
        """Pass nothing through `observer` any more. Raises ValueError if it was not added."""
        self._observers.remove(observer)
        self._observe()

    def _observe(self) -> None:
        for partition in self._loaded.values():
            partition.observe(self._observers)

    @property
    def is_fenced(self) -> bool:
        """Whether another broker may coordinate the keys of a partition that is loaded here."""
        return any(partition.is_fenced for partition in self._loaded.values())

    @property
    def is_loading(self) -> bool:
        """Whether a partition that is led here is still being loaded."""
        return bool(self._loading)

    def _partition_of(self, key: str) -> LoadedPartition[S]:
        name = self.topic.name
        topic = self._metadata.image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{name} does not exist yet")
        return self._partition_at(self._index_of(key, topic))

    def _index_of(self, key: str, topic: TopicImage) -> int:
        return self.topic.partition_of(key, len(topic.partitions))

    def _partition_at(self, index: int) -> LoadedPartition[S]:
        """Raises KafkaError as the table above says."""
        name = self.topic.name
        partition = self._loaded.get(index)
        if partition is None:
            if index in self._loading:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{name}-{index} is loading")
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{name}-{index} is not led here")
        if partition.is_fenced:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"another broker may lead {name}-{index}: the session ended")
        return partition

    # ------------------------------------------------------------------------------------------------------- the topic

    def coordinator_of(self, key: str) -> int:
        """Return the node that coordinates the key, -1 if there is none now."""
        topic = self._metadata.image.topics.get(self.topic.name)
        return -1 if topic is None else topic.partitions[self._index_of(key, topic)].leader

    @property
    def has_topic(self) -> bool:
        """Whether the topic exists, and `create_topic` is not in progress."""
        return not self._creations and self.topic.name in self._metadata.image.topics

    async def create_topic(self, report: Report = no_report) -> None:
        """Create the topic, and return when its partitions that are led here are loaded.

        Raises KafkaError COORDINATOR_NOT_AVAILABLE if the topic cannot be created, for any reason: clients retry.
        """
        self._creations += 1
        try:
            await self._ensure_topic(report)
            await self._partitions.settled()
            await self._loads_ended()
        finally:
            self._creations -= 1

    async def _ensure_topic(self, report: Report) -> None:
        name = self.topic.name
        try:
            await self.topic.ensure_exists(self._metadata, report)
        except KafkaError as error:
            _LOG.warning("topic not created", topic=name, error=str(error))
            detail = f"{name} could not be created: {error.detail}"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, detail) from error

    # ------------------------------------------------------------------------------------------------------ leadership

    def image_changed(self, change: ImageChange) -> None:
        """Load and unload partitions as their leaders in the new image require."""
        name = self.topic.name
        before, after = change.before.topics.get(name), change.after.topics.get(name)
        if not self._is_stopped and before is not after:
            self._unload_lost(after)
            self._start(self._load_led())

    def stop(self) -> None:
        """Answer every request that waits NOT_COORDINATOR, so that clients look for another coordinator."""
        self._is_stopped = True
        for partition in self._loaded.values():
            partition.unload()
        self._loaded.clear()

    async def unload(self) -> None:
        """Forget all state; requests that wait are answered NOT_COORDINATOR. Nothing is appended until `reload`."""
        for partition in self._loaded.values():
            partition.unload()
        self._loaded.clear()
        self._loading.clear()  # the results of running loads are discarded
        await self._loads_ended()

    async def reload(self) -> None:
        """Load the partitions that are led here again from their logs, after `unload`; return when that is done."""
        await self._load_led()
        await self._loads_ended()

    async def _loads_ended(self) -> None:
        while self._loads:
            await asyncio.wait(tuple(self._loads))

    def _unload_lost(self, topic: TopicImage | None) -> None:
        lost = [index for index, each in self._loaded.items() if not self._is_led(topic, index, each.leader_epoch)]
        for index in lost:
            self._loaded.pop(index).unload()
        if lost:
            partitions = ",".join(map(str, sorted(lost)))
            _LOG.info("coordinators unloaded", topic=self.topic.name, partitions=partitions)
        for index, leader_epoch in tuple(self._loading.items()):
            if not self._is_led(topic, index, leader_epoch):
                del self._loading[index]  # its load goes on, and its result is discarded

    def _is_led(self, topic: TopicImage | None, index: int, leader_epoch: int) -> bool:
        """Return whether this broker still leads the partition in that epoch."""
        image = None if topic is None else topic.partition(index)
        return image is not None and image.leader == self._node_id and image.leader_epoch == leader_epoch

    async def _load_led(self) -> None:
        await self._partitions.settled()
        topic = self._metadata.image.topics.get(self.topic.name)
        for index in range(0 if topic is None else len(topic.partitions)):
            try:
                partition = self._partitions.get(self.topic.name, index)
            except KafkaError:
                continue  # no replica here
            loaded = self._loaded.get(index)
            known_epoch = self._loading.get(index) if loaded is None else loaded.leader_epoch
            if partition.is_leader and known_epoch != partition.leader_epoch:
                self._loading[index] = partition.leader_epoch
                self._start(self._load(partition))

    async def _load(self, partition: Partition) -> None:
        index = partition.index
        where = {"topic": self.topic.name, "partition": index}
        shard = self._new_shard()
        writer = PartitionWriter(partition, self.topic, self._clock, self._purgatory)
        started = self._clock.monotonic()
        log = partition.log
        try:
            if log.log_start_offset == log.log_end_offset:  # as 50 new partitions are: a thread each would take 4 ms
                loaded_log = LoadedLog(0, log.log_end_offset)
            else:
                loaded_log = await self._threads.run(load, self.topic, log, shard, self._clock.time_ms())
        except TransientDiskError as error:
            _LOG.warning("coordinator not loaded yet", **where, error=str(error))
            self._start(self._load_again(partition, writer.leader_epoch))
            return
        except Exception as error:  # noqa: BLE001 - one partition must not keep the others from being loaded
            _LOG.exception("coordinator not loaded", error, **where)
            if self._loading.get(index) == writer.leader_epoch:
                del self._loading[index]
            return
        if not await self._is_committed(writer, loaded_log.end_offset):
            return
        if self._loading.get(index) != writer.leader_epoch:
            return  # another load of it has begun, in another epoch
        del self._loading[index]
        if partition.leader_epoch != writer.leader_epoch or not partition.is_leader or self._is_stopped:
            return
        loaded = LoadedPartition(
            shard,
            writer,
            self._clock,
            self._loop,
            self._timers,
            self._threads.match,
            self._key_name,
            self.topic.append_timeout_ms,
        )
        loaded.observe(self._observers)
        self._loaded[index] = loaded
        loaded.start()
        self.on_loaded(loaded)
        seconds = self._clock.monotonic() - started
        self.longest_load_seconds = max(self.longest_load_seconds, seconds)
        if loaded_log.records:
            _LOG.info("coordinator loaded", **where, seconds=round(seconds, 3), records=loaded_log.records)

    async def _is_committed(self, writer: PartitionWriter, end_offset: int) -> bool:
        """Wait until what was loaded is committed: before, another leader may truncate it. False if that cannot be."""
        try:
            await writer.committed(end_offset)
        except KafkaError:
            index = writer.partition.index
            if self._loading.get(index) == writer.leader_epoch:
                del self._loading[index]
            return False
        return True

    async def _load_again(self, partition: Partition, leader_epoch: int) -> None:
        await asyncio.sleep(_LOAD_RETRY_SECONDS)
        if self._loading.get(partition.index) == leader_epoch:
            await self._load(partition)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.start("coordinator loading", work)
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)


def _ignore(_: object) -> None:
    """Do nothing about a loaded partition: its keys refer to nothing that is deleted elsewhere."""
