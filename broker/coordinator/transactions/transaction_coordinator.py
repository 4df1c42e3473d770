"""The coordinator of transactions: the runtime of `__transaction_state`, and what concerns all ids of this broker.

Handlers use `submit` for requests that change a transaction, and `shard_of` or `shards` for those that only read. What
a transaction does is up to `transaction` and `end_transaction`; this module allocates the producer ids that a
transition needs before it submits the event, and passes decided transactions to the sender of markers. Used on the
event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.runtime.coordinator_shard import ShardObserver
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.coordinator.runtime.internal_topic import InternalTopic
from odradek.broker.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.broker.coordinator.transactions.events import (
    AbortTimedOut,
    AddPartitions,
    EndTransaction,
    Expire,
    InitProducerId,
    MarkersRefused,
    MarkersWritten,
)
from odradek.broker.coordinator.transactions.marker_sender import MarkerSender
from odradek.broker.coordinator.transactions.transaction import (
    FIRST_VERSION_WITH_EPOCH_BUMPS,
    NO_PRODUCER_ID,
    Status,
    TopicPartition,
    Transaction,
    check_partitions,
)
from odradek.broker.coordinator.transactions.transaction_shard import TransactionShard
from odradek.broker.metadata.administration.topic_names import TRANSACTION_STATE
from odradek.broker.metadata.administration.topic_writes import Report, no_report
from odradek.broker.metadata.image import ImageChange
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.producer_id_blocks import ProducerIdBlocks
from odradek.broker.metrics.counts.transactions import TransactionCounts
from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.schema import Structure
from odradek.protocol.stored_records.record_types import TRANSACTION_RECORDS

if TYPE_CHECKING:
    from odradek.broker.replication.appends.disk_threads import DiskThreads
    from odradek.broker.replication.partitions import Partitions

_IDS_A_TURN = 500
"""Transactional ids that are checked for expiry in one turn of the event loop."""

PartitionErrors = Mapping[TopicPartition, KafkaError | None]


def transaction_state_topic(config: BrokerConfig) -> InternalTopic:
    return InternalTopic(
        TRANSACTION_STATE,
        TRANSACTION_RECORDS,
        partitions_count=config.transaction_state_log_num_partitions,
        replication_factor=config.transaction_state_log_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
        last_record_counts=True,
        load_buffer_bytes=config.transaction_state_log_load_buffer_size,
    )


class TransactionCoordinator:
    """The coordinator of one broker. `image_changed` must be called for every metadata image, `stop` once."""

    def __init__(
        self,
        *,
        clock: Clock,
        metadata: Metadata,
        partitions: Partitions,
        threads: DiskThreads,
        tasks: BackgroundTasks,
        purgatory: Purgatory[bool],
        producer_ids: ProducerIdBlocks,
        markers: MarkerSender,
        counts: TransactionCounts,
        read_only: bool = False,
    ) -> None:
        """With `read_only`, refuse all changes, and end no transaction."""
        config = metadata.config
        self._clock = clock
        self._metadata = metadata
        self._tasks = tasks
        self._producer_ids = producer_ids
        self._read_only = read_only
        self.markers = markers
        self._counts = counts
        self._runtime = CoordinatorRuntime(
            transaction_state_topic(config),
            lambda: TransactionShard(
                lambda: metadata.image.transaction_version, self._send_markers, markers.call_again
            ),
            key_name="transactional_id",
            node_id=config.node_id,
            clock=clock,
            metadata=metadata,
            partitions=partitions,
            threads=threads,
            tasks=tasks,
            purgatory=purgatory,
        )

    # --------------------------------------------------------------------------------------------- for handlers

    def submit(
        self, transactional_id: str, event: InitProducerId | AddPartitions | EndTransaction
    ) -> Structure | Awaitable[Structure]:
        """Handle the event; return its reply, or an awaitable of it.

        Raises KafkaError, from here or from the awaitable: the errors of the transaction, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        if self._read_only:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "this broker only reads its log directory (--read-only)")
        if isinstance(event, InitProducerId) or (
            isinstance(event, EndTransaction) and event.version >= FIRST_VERSION_WITH_EPOCH_BUMPS
        ):
            state = self._runtime.shard_of(transactional_id).transactions.get(transactional_id)
            if (state is None and isinstance(event, InitProducerId)) or _needs_producer_id(state):
                return self._submit_with_id(transactional_id, event)
        return self._runtime.submit(transactional_id, event)

    async def _submit_with_id(self, transactional_id: str, event: InitProducerId | EndTransaction) -> Structure:
        new_id = await self._producer_ids.next()
        reply = self._runtime.submit(transactional_id, replace(event, new_producer_id=new_id))
        return await reply if isinstance(reply, asyncio.Future) else reply

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> PartitionErrors | Awaitable[PartitionErrors]:
        """Add partitions to the transaction, for version 2 of the protocol, or check whether they are in it.

        Returns the error of each. A partition that is not in the transaction is TRANSACTION_ABORTABLE.
        """
        if not transactional_id:
            return dict.fromkeys(partitions, KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty"))
        try:
            if not adds:
                state = self._runtime.shard_of(transactional_id).transactions.get(transactional_id)
                return check_partitions(state, producer_id, producer_epoch, partitions)
            event = AddPartitions(
                PendingReply(), producer_id, producer_epoch, frozenset(partitions), FIRST_VERSION_WITH_EPOCH_BUMPS
            )
            reply = self._runtime.submit(transactional_id, event)
        except KafkaError as error:
            return dict.fromkeys(partitions, error)
        return _errors_of(reply, partitions) if isinstance(reply, asyncio.Future) else dict.fromkeys(partitions)

    def shard_of(self, transactional_id: str) -> TransactionShard:
        """Return the loaded partition that the id belongs to. Raises KafkaError as `submit` does."""
        return self._runtime.shard_of(transactional_id)

    def shards(self) -> Iterator[TransactionShard]:
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
    def longest_load_seconds(self) -> float:
        """The longest time that loading one partition took."""
        return self._runtime.longest_load_seconds

    @property
    def has_topic(self) -> bool:
        """Whether `__transaction_state` exists, and is not just being created."""
        return self._runtime.has_topic

    async def create_topic(self, report: Report = no_report) -> None:
        """Create `__transaction_state`, and return when transactions can be coordinated.

        Raises KafkaError COORDINATOR_NOT_AVAILABLE if it cannot be created, for any reason: clients retry.
        """
        await self._runtime.create_topic(report)

    def coordinator_of(self, transactional_id: str) -> int:
        """Return the node that coordinates the id, -1 if there is none now."""
        return self._runtime.coordinator_of(transactional_id)

    # --------------------------------------------------------------------------------------------- for tracing

    def add_observer(self, observer: ShardObserver[TransactionShard]) -> None:
        """Pass the events and records of every partition through `observer`, those of later partitions, too."""
        self._runtime.add_observer(observer)

    def remove_observer(self, observer: ShardObserver[TransactionShard]) -> None:
        """Pass nothing through `observer` any more. Raises ValueError if it was not added."""
        self._runtime.remove_observer(observer)

    # --------------------------------------------------------------------------------------------- metadata, time

    def image_changed(self, change: ImageChange) -> None:
        """Follow the leadership of the topic's partitions."""
        self._runtime.image_changed(change)

    def start(self) -> None:
        """Start to check time-outs and expiry periodically."""
        config = self._metadata.config
        interval_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._tasks.every("transaction time-outs", interval_ms, self.abort_timed_out)
        interval_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
        self._tasks.every("transactional id expiration", interval_ms, self.expire)

    def stop(self) -> None:
        """Answer every request that waits NOT_COORDINATOR, and send no more markers."""
        self._runtime.stop()
        self.markers.stop()

    async def unload(self) -> None:
        """Forget all transactions, and send no more markers for them; nothing is appended until `reload`."""
        self.markers.forget()
        await self._runtime.unload()

    async def reload(self) -> None:
        """Load the transactions of this broker again from their logs, after `unload`."""
        await self._runtime.reload()

    async def abort_timed_out(self) -> None:
        """Fence and abort the transactions that are open for longer than their timeouts."""
        now_ms = self._clock.time_ms()
        for partition in self._runtime.loaded_partitions():
            shard = partition.shard
            for transactional_id in tuple(shard.open):
                state = shard.transactions.get(transactional_id)
                if state is not None and state.is_timed_out(now_ms):
                    new_id = await self._producer_ids.next() if _needs_producer_id(state) else NO_PRODUCER_ID
                    partition.submit(transactional_id, AbortTimedOut(self._count_timed_out, new_id))

    def _count_timed_out(self) -> None:
        self._counts.timed_out += 1

    async def expire(self) -> None:
        """Forget the ids that have been idle for transactional.id.expiration.ms."""
        expiration_ms = self._metadata.config.transactional_id_expiration_ms
        for partition in self._runtime.loaded_partitions():
            shard = partition.shard
            ids = tuple(shard.transactions)
            for turn in range(0, len(ids), _IDS_A_TURN):
                now_ms = self._clock.time_ms()
                for transactional_id in ids[turn : turn + _IDS_A_TURN]:
                    state = shard.transactions.get(transactional_id)
                    if state is not None and state.is_expired(now_ms, expiration_ms):
                        partition.submit(transactional_id, Expire(expiration_ms))
                await asyncio.sleep(0)

    # ------------------------------------------------------------------------------------------------------- markers

    def _send_markers(self, transactional_id: str, state: Transaction, submit: Callable[[Any], None]) -> None:
        """Send the markers of a decided transaction, whose Prepare record is in the log."""
        leader_epoch = self._runtime.leader_epoch_of(transactional_id)
        if leader_epoch is None or self._read_only:
            return  # the partition is not loaded here any more: the next coordinator sends them
        self.markers.send(
            transactional_id,
            TransactionMarker(
                state.producer_id,
                state.producer_epoch,
                state.status is Status.PREPARE_COMMIT,
                leader_epoch,
                state.client_version,
            ),
            state.partitions,
            lambda: self._runtime.leader_epoch_of(transactional_id) == leader_epoch,
            lambda: self._runtime.confirm_leader_epoch(transactional_id, leader_epoch),
            partial(self._markers_ended, state, submit, self._clock.monotonic()),
        )

    def _markers_ended(
        self, state: Transaction, submit: Callable[[Any], None], decided_at: float, all_written: bool
    ) -> None:
        if all_written:
            self._counts.completed.record_all([self._clock.monotonic() - decided_at])
        ended = MarkersWritten if all_written else MarkersRefused
        submit(ended(state.producer_id, state.producer_epoch))


def _needs_producer_id(state: Transaction | None) -> bool:
    """Return whether the next epoch of this id belongs to another producer id."""
    return state is not None and state.is_exhausted


async def _errors_of(reply: asyncio.Future[Structure], partitions: Sequence[TopicPartition]) -> PartitionErrors:
    try:
        await reply
    except KafkaError as error:
        return dict.fromkeys(partitions, error)
    return dict.fromkeys(partitions)
