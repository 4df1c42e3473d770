"""The coordinator of groups: the runtime of `__consumer_offsets`, and what concerns all groups of this broker.

Handlers use `submit` for requests that change a group, and `shard_of` or `shards` for those that only read. Which
partitions are led and loaded here, and the errors meanwhile, are up to `runtime`; what a group does is up to the state
machine of its type; a partition's groups are in `group_shard`, committed offsets in `offsets`. Used on the event loop
only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.group_shard import GroupCoordinatorShard, GroupFactories
from odradek.broker.coordinator.group_type import MetadataChanged
from odradek.broker.coordinator.offsets.deleted_topics import of_deleted
from odradek.broker.coordinator.offsets.events import ExpireOffsets, TopicsDeleted
from odradek.broker.coordinator.runtime.coordinator_shard import ShardObserver
from odradek.broker.coordinator.runtime.events import Event, PendingReply, TimerKey
from odradek.broker.coordinator.runtime.internal_topic import InternalTopic
from odradek.broker.coordinator.runtime.loaded_partition import LoadedPartition
from odradek.broker.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.broker.coordinator.sessions import keep_living
from odradek.broker.metadata.administration.topic_names import CONSUMER_OFFSETS
from odradek.broker.metadata.administration.topic_writes import Report, no_report
from odradek.broker.metadata.image import ImageChange
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.schema import Structure
from odradek.protocol.stored_records.record_types import GROUP_RECORDS

if TYPE_CHECKING:
    from odradek.broker.replication.appends.disk_threads import DiskThreads
    from odradek.broker.replication.partitions import Partitions

_GROUPS_A_TURN = 100
"""Groups that are searched for expired offsets in one turn of the event loop."""


def consumer_offsets_topic(config: BrokerConfig) -> InternalTopic:
    return InternalTopic(
        CONSUMER_OFFSETS,
        GROUP_RECORDS,
        partitions_count=config.offsets_topic_num_partitions,
        replication_factor=config.offsets_topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
        base_sequence=0,  # as Kafka's batches have, in every byte; nothing checks it
        codec=Codec(config.offsets_topic_compression_codec),
        append_timeout_ms=config.offsets_commit_timeout_ms,
        load_buffer_bytes=config.offsets_load_buffer_size,
    )


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
        purgatory: Purgatory[bool],
        factories: GroupFactories,
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._runtime = CoordinatorRuntime(
            consumer_offsets_topic(config),
            lambda: GroupCoordinatorShard(factories),
            key_name="group",
            node_id=config.node_id,
            clock=clock,
            metadata=metadata,
            partitions=partitions,
            threads=threads,
            tasks=tasks,
            purgatory=purgatory,
        )
        self._runtime.on_loaded = lambda partition: tasks.start(
            "offsets of deleted topics", self._expire(partition, all_groups=False)
        )

    # --------------------------------------------------------------------------------------------- for handlers

    def submit(self, group_id: str, event: Event) -> Structure | asyncio.Future[Structure]:
        """Handle the event; return its reply, or the future of it.

        Raises KafkaError, from here or from the future: the errors of the group, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        return self._runtime.submit(group_id, event)

    def write_marker(self, partition_index: int, marker: TransactionMarker) -> asyncio.Future[None] | None:
        """Write the end of a transaction into a partition of `__consumer_offsets`.

        Returns None when its offsets show, or the future of that. Raises KafkaError as
        `CoordinatorRuntime.write_marker`.
        """
        return self._runtime.write_marker(partition_index, marker)

    def shard_of(self, group_id: str) -> GroupCoordinatorShard:
        """Return the loaded partition that the group belongs to, if it exists. Raises KafkaError as `submit` does."""
        return self._runtime.shard_of(group_id)

    def shards(self) -> Iterator[GroupCoordinatorShard]:
        """All partitions that are loaded."""
        return iter([partition.shard for partition in self._runtime.loaded_partitions()])

    @property
    def is_fenced(self) -> bool:
        """Whether another broker may coordinate a partition that is loaded here."""
        return self._runtime.is_fenced

    @property
    def is_loading(self) -> bool:
        """Whether a partition that is led here is still being loaded."""
        return self._runtime.is_loading

    @property
    def has_topic(self) -> bool:
        """Whether `__consumer_offsets` exists, and is not just being created."""
        return self._runtime.has_topic

    async def create_topic(self, report: Report = no_report) -> None:
        """Create `__consumer_offsets`, and return when groups can be coordinated.

        Raises KafkaError COORDINATOR_NOT_AVAILABLE if it cannot be created, for any reason: clients retry.
        """
        await self._runtime.create_topic(report)

    def coordinator_of(self, group_id: str) -> int:
        """Return the node that coordinates the group, -1 if there is none now."""
        return self._runtime.coordinator_of(group_id)

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that has the group, or will have it once the topic exists."""
        topic = self._metadata.image.topics.get(CONSUMER_OFFSETS)
        count = self._config.offsets_topic_num_partitions if topic is None else len(topic.partitions)
        return self._runtime.topic.partition_of(group_id, count)

    def new_uuid(self) -> str:
        """Return a random UUID as Java prints it, for the ids of members."""
        text = self._metadata.randomness.uuid().hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    # --------------------------------------------------------------------------------------------- for tracing

    def add_observer(self, observer: ShardObserver[GroupCoordinatorShard]) -> None:
        """Pass the events and records of every partition through `observer`, those of later partitions, too."""
        self._runtime.add_observer(observer)

    def remove_observer(self, observer: ShardObserver[GroupCoordinatorShard]) -> None:
        """Pass nothing through `observer` any more. Raises ValueError if it was not added."""
        self._runtime.remove_observer(observer)

    # --------------------------------------------------------------------------------------------- metadata, time

    def image_changed(self, change: ImageChange) -> None:
        """Follow the leadership of the topic's partitions; pass changes of topics on to the groups."""
        self._runtime.image_changed(change)
        deleted = frozenset(old.name for old, new in change.topics() if old is not None and new is None)
        if deleted:
            self._delete_offsets(deleted)
        reassigned = frozenset(change.reassigned())
        if reassigned:
            self._notify_groups(reassigned, has_new_topics=any(old is None for old, _ in change.topics()))

    def stop(self) -> None:
        """Answer every request that waits NOT_COORDINATOR, so that clients look for another coordinator."""
        self._runtime.stop()

    async def unload(self) -> None:
        """Forget all groups; nothing is appended for them until `reload`."""
        await self._runtime.unload()

    async def reload(self) -> None:
        """Load all groups of this broker again from their logs, after `unload`."""
        await self._runtime.reload()

    def _delete_offsets(self, deleted: frozenset[str]) -> None:
        """Delete what was committed for deleted topics, by name."""
        for partition in self._runtime.loaded_partitions():
            for group_id in tuple(partition.shard.offsets.groups_with(deleted)):
                partition.submit(group_id, TopicsDeleted(PendingReply(), deleted))

    def _notify_groups(self, topics: frozenset[str], *, has_new_topics: bool) -> None:
        """Submit MetadataChanged to the groups that assign partitions themselves."""
        event = MetadataChanged(topics, has_new_topics)
        for partition in self._runtime.loaded_partitions():
            for group_id, group in tuple(partition.shard.groups.items()):
                if group.follows_metadata:
                    partition.submit(group_id, event)

    def keep_living(self, seconds: float) -> None:
        """Give members that were heard of within a heartbeat so many seconds more: the clock is about to move.

        See `sessions`. Silent members get none.
        """
        for partition in self._runtime.loaded_partitions():
            for group_id, group in partition.shard.groups.items():
                timers = partition.timers_of(group_id)
                if timers is not None:
                    keep_living(group.sessions(), timers, seconds)

    def end_session(self, group_id: str, timer: TimerKey) -> None:
        """End the session of a member now, as if it had been silent; `timer` is that of its `MemberSession`."""
        for partition in self._runtime.loaded_partitions():
            if group_id in partition.shard and (timers := partition.timers_of(group_id)) is not None:
                timers.expire(timer)

    async def expire(self) -> None:
        """Delete offsets and groups whose retention is over. Called every offsets.retention.check.interval.ms."""
        for partition in self._runtime.loaded_partitions():
            await self._expire(partition)

    async def _expire(self, partition: LoadedPartition[GroupCoordinatorShard], *, all_groups: bool = True) -> None:
        """Expire the offsets of all groups, or only of those with offsets of deleted topics."""
        retention_ms = self._config.offsets_retention_minutes * 60_000
        shard = partition.shard
        group_ids = tuple(shard.groups)
        for turn in range(0, len(group_ids), _GROUPS_A_TURN):
            is_of_deleted = of_deleted(self._metadata.image)
            for group_id in group_ids[turn : turn + _GROUPS_A_TURN]:
                if all_groups or shard.offsets.has_any_of_deleted(group_id, is_of_deleted):
                    partition.submit(group_id, ExpireOffsets(PendingReply(), retention_ms, is_of_deleted))
            await asyncio.sleep(0)
