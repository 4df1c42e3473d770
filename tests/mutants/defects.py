"""The code of the defects: what replaces a function of the broker in a mutant, under the name of what it does."""

from __future__ import annotations

from typing import Any

import msgspec

from odradek.broker.coordinator.runtime import runtime
from odradek.broker.coordinator.runtime.coordinator_shard import CoordinatorShard
from odradek.broker.coordinator.runtime.internal_topic import InternalTopic
from odradek.broker.coordinator.runtime.loading import LoadedLog
from odradek.broker.coordinator.runtime.partition_writer import PartitionWriter
from odradek.broker.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.broker.coordinator.transactions.events import Transition
from odradek.broker.coordinator.transactions.transaction import PREPARED, Transaction
from odradek.broker.coordinator.transactions.transaction_shard import TransactionShard
from odradek.broker.metadata.administration.topic_names import TRANSACTION_STATE
from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leaders import leadership
from odradek.broker.metadata.leaders.controller import Controller
from odradek.broker.metadata.leaders.leadership import Decision
from odradek.broker.replication import isr_changes
from odradek.broker.replication.appends.log_appender import LogAppender
from odradek.broker.replication.follower.followed_replica import FollowedReplica
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.checkpoints.checkpoints import Checkpoints
from odradek.broker.storage.log import Log
from odradek.broker.storage.producers.producer_state import ProducerState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.control_records import EndTxnMarker


def acknowledge_at_once(self: Partition, next_offset: int, leader_epoch: int) -> ErrorCode:
    return ErrorCode.NONE


def count_proposed(self: Partition) -> set[int]:
    return set(self.isr if self.proposed_isr is None else self.proposed_isr)


_isr_change = isr_changes.isr_change


def change_without_compare(*arguments: Any) -> isr_changes.IsrChange:
    return _isr_change(*arguments)._replace(when=())


def no_divergence(self: Partition, last_fetched_epoch: int, fetch_offset: int) -> None:
    return None


_prepare = FollowedReplica.prepare


async def truncate_to_high_watermark(self: FollowedReplica) -> None:
    await _prepare(self)
    log = self.partition.log
    if self.partition.high_watermark < log.log_end_offset:
        await self.partition.appender.run_between_appends(log.truncate_to, self.partition.high_watermark)


_leader_epoch_of = CoordinatorRuntime.leader_epoch_of


def no_epoch_while_fenced(self: CoordinatorRuntime[Any], key: str) -> int | None:
    return None if self.is_fenced else _leader_epoch_of(self, key)


def elect_any(
    partition: PartitionImage, brokers: dict[int, BrokerImage], *, unclean: bool = False, min_insync: int = 1
) -> Decision | None:
    everybody = {replica: partition.isr.get(replica, 1 << 40) for replica in partition.replicas}
    return leadership.choose_leader(msgspec.structs.replace(partition, isr=everybody), brokers, unclean=unclean)


_record = Followers.record


def record_any_broker_epoch(
    self: Followers, replica_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int, leader_end: int
) -> Any:
    broker = self._brokers(replica_id)
    epoch = broker_epoch if broker is None else broker.epoch
    return _record(self, replica_id, epoch, fetch_offset, log_start_offset, leader_end)


_record_fetch, _read_for_fetch = Partition.record_follower_fetch, Partition.read_for_fetch


def record_any_leader_epoch(
    self: Partition, replica_id: int, broker_epoch: int, leader_epoch: int, fetch_offset: int, log_start_offset: int
) -> None:
    _record_fetch(self, replica_id, broker_epoch, self.leader_epoch, fetch_offset, log_start_offset)


def read_in_any_epoch(
    self: Partition,
    fetch_offset: int,
    max_bytes: int,
    minimum_one_batch: bool,
    read_committed: bool,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    replica_id: int = -1,
) -> Any:
    return _read_for_fetch(
        self, fetch_offset, max_bytes, minimum_one_batch, read_committed, -1, last_fetched_epoch, replica_id
    )


def join_without_epoch_start(end: int, high_watermark: int, epoch_start_offset: int) -> bool:
    return end >= high_watermark


def replicated_end_of_any_isr(self: Partition) -> int:
    return self.followers.high_watermark(self._own_end, self.log.log_end_offset, self.maximal_isr())


_replicated_end = Partition._replicated_end


def replicated_end_beside_eligible(self: Partition) -> int:
    image = self.image
    if image is not None:
        self.image = msgspec.structs.replace(image, eligible_leader_replicas={})
    try:
        return _replicated_end(self)
    finally:
        self.image = image


def electable_although_lost(replica: int, epoch_in_isr: int, brokers: dict[int, BrokerImage]) -> bool:
    return replica in brokers and not brokers[replica].is_draining


def always_enough(self: Partition) -> bool:
    return True


_controller_commit = Controller._commit


async def commit_without_compare(self: Controller, when: Any, then: Any) -> Any:
    return await _controller_commit(self, when if self.epoch == 0 else (), then)


def committed_at_once(self: PartitionWriter, end_offset: int) -> bool:
    return True


_transition = TransactionShard._transition


def send_markers_before_the_decision(
    self: TransactionShard, transactional_id: str, after: Transaction, *reply: Any
) -> Transition:
    if after.status in PREPARED:
        self._send_markers(transactional_id, after, lambda _: None)
    return _transition(self, transactional_id, after, *reply)


_load = runtime.load


def serve_transactions_without_loading(
    topic: InternalTopic, log: Log, shard: CoordinatorShard, now_ms: int
) -> LoadedLog:
    if topic.name != TRANSACTION_STATE:
        return _load(topic, log, shard, now_ms)
    return LoadedLog(0, log.log_end_offset)


_check_marker = ProducerState.check_marker


def check_marker_of_any_coordinator(
    self: ProducerState, header: BatchHeader, marker: EndTxnMarker, transaction_version: int = 0
) -> None:
    latest = EndTxnMarker(marker.type, 1 << 30)
    _check_marker(self, header, latest, transaction_version)


def append_in_any_epoch(
    self: LogAppender, records: memoryview, leader_epoch: int, now_ms: int, *origin: Any
) -> AppendInfo:
    return self._log.append_as_leader(records, leader_epoch, now_ms, *origin)


async def no_sync(self: LogAppender) -> None:
    return None


_update = Partitions._update


def take_log_by_name(self: Partitions, topic: Any, index: int, image: Any, *, had_log: bool) -> Any:
    log = self._log_dirs.logs.get((topic.name, index))
    if log is not None and log.topic_id != topic.topic_id and index not in self._by_id.get(topic.topic_id, {}):
        self.add(topic, index, image, log)
        return None
    return _update(self, topic, index, image, had_log=had_log)


_remove = Partitions._remove


def remove_with_log(self: Partitions, topic: Any, index: int, *, deletes_log: bool) -> Any:
    return _remove(self, topic, index, deletes_log=True)


async def delete_in_place_of_setting_aside(self: Partitions, topic: str, index: int) -> None:
    await self._delete_log(topic, index)


def keep_rows(self: Checkpoints, partitions: Any) -> None:
    """Leave the rows of logs that are gone."""
