"""The group coordinator: which partitions of `__consumer_offsets` are led here, and the groups in them.

```
metadata image ─► partition led in a new epoch ─► loading (on a thread) ─► Shard: takes events
               ─► led no more ────────────────────────────────────────────► unloaded: NOT_COORDINATOR
a group that is asked for:   not led here: NOT_COORDINATOR     loading: COORDINATOR_LOAD_IN_PROGRESS
                             could not be loaded: NOT_COORDINATOR, until it is led in another epoch
                             could not be loaded for now: COORDINATOR_LOAD_IN_PROGRESS, until it is
```

This module only follows who leads which partition, loads them, and finds the one that a group is in. What a group does
is in the state machine of its type (`group_type` says what one must offer); `shard` carries out what the machine
decides; committed offsets are in `offsets`. Handlers use `submit` for what changes a group, and `shard_of` or `shards`
for what only looks. Used on the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.group_type import Event, MetadataChanged, PendingReply
from odradek.broker.coordinator.offsets.events import Expire, ForgetTopics
from odradek.broker.coordinator.partition_state import GroupFactories, PartitionState
from odradek.broker.coordinator.runtime.internal_topic import CoordinatorLog, ensure_topic, partition_of
from odradek.broker.coordinator.runtime.loading import load
from odradek.broker.coordinator.runtime.shard import Shard
from odradek.broker.metadata.image import MetadataImage, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.topic_names import CONSUMER_OFFSETS
from odradek.broker.purgatory import Purgatory
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Structure

if TYPE_CHECKING:
    from odradek.broker.replication.disk_threads import DiskThreads
    from odradek.broker.replication.partition import Partition
    from odradek.broker.replication.partitions import Partitions

_LOG = StructuredLogger(__name__)
_LOAD_RETRY_SECONDS = 1.0  # where a load ran into an error that is not of the disk
_GROUPS_A_TURN = 100
"""Groups that are looked through for expired offsets before others get their turn on the loop."""


class GroupCoordinator:
    """The coordinator of one broker. `image_changed` must be called for every metadata image, `stop` once."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        metadata: Metadata,
        partitions: Partitions,
        threads: DiskThreads,
        tasks: BackgroundTasks,
        purgatory: Purgatory[ErrorCode],
        factories: GroupFactories,
    ) -> None:
        self._config = config
        self._clock = clock
        self._metadata = metadata
        self._partitions = partitions
        self._threads = threads
        self._tasks = tasks
        self._purgatory = purgatory
        self._factories = factories
        self._shards: dict[int, Shard] = {}
        self._loading: dict[int, int] = {}  # leader epochs by partition
        self._loads: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._creations = 0  # of the topic, under way
        self._is_stopped = False
        partitions.on_late_creation.append(lambda: self._start(self._load_led()))

    # --------------------------------------------------------------------------------------------- for handlers

    def submit(self, group_id: str, event: Event) -> Structure | asyncio.Future[Structure]:
        """Let the event happen to the group; its reply, or the future of it.

        Raises KafkaError, from here or from the future: what the group says, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        self.shard_of(group_id).submit(group_id, event)
        return event.pending_reply.result(self._loop.create_future)

    def shard_of(self, group_id: str) -> Shard:
        """The loaded partition that the group is in, if it exists. Raises KafkaError as `submit` does."""
        topic = self._metadata.image.topics.get(CONSUMER_OFFSETS)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{CONSUMER_OFFSETS} does not exist yet")
        index = partition_of(group_id, len(topic.partitions))
        shard = self._shards.get(index)
        if shard is None:
            if index in self._loading:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{CONSUMER_OFFSETS}-{index} is being loaded")
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{CONSUMER_OFFSETS}-{index} is not led here")
        return shard

    def shards(self) -> Iterator[Shard]:
        """All partitions that are loaded."""
        return iter(tuple(self._shards.values()))

    @property
    def is_loading(self) -> bool:
        """Whether some partition that is led here is not loaded yet."""
        return bool(self._loading)

    @property
    def has_topic(self) -> bool:
        """Whether `__consumer_offsets` exists, and is not just being created."""
        return not self._creations and CONSUMER_OFFSETS in self._metadata.image.topics

    async def create_topic(self) -> None:
        """Create `__consumer_offsets`, and return when groups can be coordinated.

        Raises KafkaError COORDINATOR_NOT_AVAILABLE, whatever the reason why the topic cannot be created: clients retry.
        """
        self._creations += 1
        try:
            await self._ensure_topic()
            await self._partitions.settled()
            while self._loads:
                await asyncio.wait(tuple(self._loads))
        finally:
            self._creations -= 1

    async def _ensure_topic(self) -> None:
        try:
            await ensure_topic(self._metadata)
        except KafkaError as error:
            _LOG.warning("topic not created", topic=CONSUMER_OFFSETS, error=str(error))
            detail = f"{CONSUMER_OFFSETS} could not be created: {error.detail}"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, detail) from error

    def coordinator_of(self, group_id: str) -> int:
        """The node that coordinates the group, -1 if there is none now."""
        topic = self._metadata.image.topics.get(CONSUMER_OFFSETS)
        return -1 if topic is None else topic.partitions[partition_of(group_id, len(topic.partitions))].leader

    def new_uuid(self) -> str:
        """A random UUID as Java prints it, for the ids of members."""
        text = self._metadata.randomness.uuid().hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    # --------------------------------------------------------------------------------------------- partitions come, go

    def image_changed(self, old: MetadataImage, new: MetadataImage) -> None:
        """Follow the leadership of the topic's partitions, and forget the offsets of deleted topics."""
        if self._is_stopped:
            return
        before, after = old.topics.get(CONSUMER_OFFSETS), new.topics.get(CONSUMER_OFFSETS)
        if before is not after:
            self._unload_lost(after)
            self._start(self._load_led())
        if old.topics_by_id is not new.topics_by_id:
            deleted = frozenset(
                old.topics_by_id[each].name for each in old.topics_by_id.keys() - new.topics_by_id.keys()
            )
            if deleted:
                self._forget(deleted)
            self._tell(old, new)

    def _unload_lost(self, topic: TopicImage | None) -> None:
        for index, shard in tuple(self._shards.items()):
            if not self._is_led(topic, index, shard.log.leader_epoch):
                del self._shards[index]
                shard.unload()
                _LOG.info("groups unloaded", partition=index, groups=len(shard.state.groups))
        for index, leader_epoch in tuple(self._loading.items()):
            if not self._is_led(topic, index, leader_epoch):
                del self._loading[index]  # its load goes on, and finds that nobody wants it any more

    def _is_led(self, topic: TopicImage | None, index: int, leader_epoch: int) -> bool:
        """Say whether this broker still leads the partition in that epoch."""
        image = None if topic is None else topic.partition(index)
        return image is not None and image.leader == self._config.node_id and image.leader_epoch == leader_epoch

    async def _load_led(self) -> None:
        await self._partitions.settled()
        topic = self._metadata.image.topics.get(CONSUMER_OFFSETS)
        for index in range(0 if topic is None else len(topic.partitions)):
            try:
                partition = self._partitions.get(CONSUMER_OFFSETS, index)
            except KafkaError:
                continue  # no replica here
            epoch = partition.leader_epoch
            known = self._shards[index].log.leader_epoch if index in self._shards else self._loading.get(index)
            if partition.is_leader and known != epoch:
                self._loading[index] = epoch
                self._start(self._load(partition))

    async def _load(self, partition: Partition) -> None:
        state = PartitionState(self._factories)
        log = CoordinatorLog(partition, self._config, self._clock, self._purgatory)
        started = self._clock.monotonic()
        try:
            records = await self._threads.run(
                load, partition.log, state, self._config.offsets_load_buffer_size, self._clock.time_ms()
            )
        except TransientDiskError as error:
            _LOG.warning("groups not loaded yet", partition=partition.index, error=str(error))
            self._start(self._load_again(partition, log.leader_epoch))
            return
        except Exception as error:  # noqa: BLE001 - a partition that cannot be loaded must not take the others along
            _LOG.exception("groups not loaded", error, partition=partition.index)
            if self._loading.get(partition.index) == log.leader_epoch:
                del self._loading[partition.index]
            return
        if self._loading.get(partition.index) != log.leader_epoch:
            return  # it is being loaded again, in another epoch
        del self._loading[partition.index]
        if partition.leader_epoch != log.leader_epoch or not partition.is_leader or self._is_stopped:
            return
        shard = self._shards[partition.index] = Shard(state, log, self._clock, self._loop, self._threads.run)
        shard.start()
        if records:
            seconds = round(self._clock.monotonic() - started, 3)
            fields = {"groups": len(state.groups), "offsets": state.offsets.count, "records": records}
            _LOG.info("groups loaded", partition=partition.index, seconds=seconds, **fields)

    async def _load_again(self, partition: Partition, leader_epoch: int) -> None:
        await asyncio.sleep(_LOAD_RETRY_SECONDS)
        if self._loading.get(partition.index) == leader_epoch:
            await self._load(partition)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.start("group loading", work)
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)

    def stop(self) -> None:
        """Answer everybody who waits, so that they look for another coordinator."""
        self._is_stopped = True
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()

    # --------------------------------------------------------------------------------------------- what is let go

    def _forget(self, topics: frozenset[str]) -> None:
        for shard in self._shards.values():
            for group_id in tuple(shard.state.offsets.groups_with(topics)):
                shard.submit(group_id, ForgetTopics(PendingReply(), topics))

    def _tell(self, old: MetadataImage, new: MetadataImage) -> None:
        """Tell the groups that assign partitions themselves which topics have changed."""
        names = old.topics.keys() | new.topics.keys()
        changed = frozenset(name for name in names if old.topics.get(name) is not new.topics.get(name))
        event = MetadataChanged(changed, has_new_topics=bool(new.topics.keys() - old.topics.keys()))
        for shard in self._shards.values():
            for group_id, group in tuple(shard.state.groups.items()):
                if group.follows_metadata:
                    shard.submit(group_id, event)

    async def expire(self) -> None:
        """Let go of offsets and groups whose retention is over; every offsets.retention.check.interval.ms."""
        retention_ms = self._config.offsets_retention_minutes * 60_000
        for shard in self.shards():
            group_ids = tuple(shard.state.groups)
            for turn in range(0, len(group_ids), _GROUPS_A_TURN):
                for group_id in group_ids[turn : turn + _GROUPS_A_TURN]:
                    shard.submit(group_id, Expire(PendingReply(), retention_ms))
                await asyncio.sleep(0)
