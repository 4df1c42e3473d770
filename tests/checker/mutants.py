"""Brokers with a defect in their transactions, each of which the checker must find.

`python -m tests.checker.mutants NAME --config FILE` runs a broker with the defect: its process can be killed and paused
like any other.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import msgspec

from odradek.broker.__main__ import main
from odradek.broker.coordinator.runtime.loaded_partition import LoadedPartition
from odradek.broker.coordinator.transactions import transaction
from odradek.broker.coordinator.transactions.events import EndTransaction
from odradek.broker.coordinator.transactions.local_markers import LocalMarkers
from odradek.broker.coordinator.transactions.transaction import Status, Transaction
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.coordinator.transactions.transaction_shard import TransactionShard
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_reader import LogReader
from odradek.broker.storage.producers.producer_state import ProducerState
from odradek.protocol.errors import ErrorCode
from tests.peers.server import Server

Patch = tuple[Any, str, Any]


def no_marker(self: LocalMarkers, topic: str, index: int, marker: TransactionMarker) -> ErrorCode:
    return ErrorCode.NONE


_end_of = TransactionShard._end_of


def end_in_any_epoch(
    self: TransactionShard, before: Transaction | None, event: EndTransaction, now_ms: int, *, is_busy: bool = False
) -> Transaction | None:
    if before is not None:
        event = msgspec.structs.replace(event, producer_epoch=before.producer_epoch)
    return _end_of(self, before, event, now_ms, is_busy=is_busy)


_check_producer = transaction.check_producer


def producer_of_any_epoch(state: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    epoch = producer_epoch if state is None else state.producer_epoch
    return _check_producer(state, producer_id, epoch)


def end_without_a_new_epoch(
    self: TransactionShard, before: Transaction | None, event: EndTransaction, now_ms: int, *, is_busy: bool = False
) -> Transaction | None:
    """End every transaction as in version 1 of the protocol."""
    return _end_of(self, before, msgspec.structs.replace(event, version=0), now_ms, is_busy=is_busy)


_initialize = transaction.initialize


def initialize_without_a_new_epoch(before: Transaction | None, *arguments: Any) -> Transaction:
    after = _initialize(before, *arguments)
    if before is None or after.status is not Status.EMPTY or after.producer_id != before.producer_id:
        return after
    return msgspec.structs.replace(after, producer_epoch=before.producer_epoch)


def marker_of_any_epoch(self: ProducerState, header: object, marker: object, transaction_version: int = 0) -> None:
    """Check nothing."""


_append = Log.append_as_leader


def slow_large_append(self: Log, records: memoryview, *arguments: Any, **more: Any) -> AppendInfo:
    """Append large batches, which threads do, as slowly as a disk that is busy."""
    if len(records) >= LARGE_APPEND_BYTES:
        time.sleep(0.05)
    return _append(self, records, *arguments, **more)


def marker_replayed_at_once(self: LoadedPartition[Any], marker: TransactionMarker) -> asyncio.Future[None] | None:
    """Replay a marker although appends before it are still under way."""
    appended = self._writer.append_marker(marker)
    self._replay_marker(marker)
    return None if isinstance(appended, int) else asyncio.ensure_future(_end_of_append(appended))


async def _end_of_append(appended: asyncio.Future[int]) -> None:
    await appended


_submit = TransactionCoordinator.submit


def marker_before_prepare(self: TransactionCoordinator, transactional_id: str, event: Any) -> Any:
    """Write the first marker, and the decision a little later."""
    if not isinstance(event, EndTransaction):
        return _submit(self, transactional_id, event)
    state = self.shard_of(transactional_id).transactions.get(transactional_id)
    if state is None or state.status is not Status.ONGOING or state.producer_epoch != event.producer_epoch:
        return _submit(self, transactional_id, event)
    epoch = state.producer_epoch + (event.version == transaction.FIRST_VERSION_WITH_EPOCH_BUMPS)
    marker = TransactionMarker(state.producer_id, epoch, event.is_commit, 0, event.version)
    self.markers._local.write(*min(state.partitions), marker)
    return _submit_later(self, transactional_id, event)


async def _submit_later(coordinator: TransactionCoordinator, transactional_id: str, event: EndTransaction) -> Any:
    await asyncio.sleep(0.1)
    reply = _submit(coordinator, transactional_id, event)
    return await reply if asyncio.iscoroutine(reply) or isinstance(reply, asyncio.Future) else reply


MUTANTS: Mapping[str, tuple[Patch, ...]] = {
    "no marker": ((LocalMarkers, "write", no_marker),),
    "the epoch is ignored": (
        (TransactionShard, "_end_of", end_in_any_epoch),
        (transaction, "check_producer", producer_of_any_epoch),
    ),
    "the last stable offset is the high watermark": (
        (LogReader, "last_stable_offset", property(lambda log: log.high_watermark)),
    ),
    "no bump by an end": ((TransactionShard, "_end_of", end_without_a_new_epoch),),
    "no bump by a start": ((transaction, "initialize", initialize_without_a_new_epoch),),
    "the epoch of markers is ignored": ((ProducerState, "check_marker", marker_of_any_epoch),),
    "a marker is replayed out of order": (
        (Log, "append_as_leader", slow_large_append),
        (LoadedPartition, "write_marker", marker_replayed_at_once),
    ),
    "a marker before the decision": ((TransactionCoordinator, "submit", marker_before_prepare),),
}


def mutated(server: Server, name: str) -> Server:
    """Return the server with a defect; it must be Odradek, and not started yet."""
    _, _, _, *arguments = server.command
    return replace(server, command=[sys.executable, "-m", "tests.checker.mutants", name, *arguments])


if __name__ == "__main__":
    for owner, attribute, replacement in MUTANTS[sys.argv[1]]:
        mock.patch.object(owner, attribute, replacement).start()
    sys.exit(main(sys.argv[2:]))
