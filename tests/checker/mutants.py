"""Brokers with a defect in their transactions, each of which the checker must find.

`python -m tests.checker.mutants NAME --config FILE` runs a broker with the defect: its process can be killed and paused
like any other.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import msgspec

from odradek.broker.__main__ import main
from odradek.broker.coordinator.transactions import transaction
from odradek.broker.coordinator.transactions.events import EndTransaction
from odradek.broker.coordinator.transactions.local_markers import LocalMarkers
from odradek.broker.coordinator.transactions.transaction import Status, Transaction
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.coordinator.transactions.transaction_shard import TransactionShard
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.storage.log_reader import LogReader
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
