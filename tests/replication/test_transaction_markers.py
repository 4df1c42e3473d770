"""Markers of transactions, appended by the leader of a partition with three replicas, or with one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.transaction_markers import TransactionMarker, append_marker, write_marker
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_header import read_batch_header
from tests.replication.leading import OTHER, SELF, THIRD, Leading
from tests.storage.logs import NOW, batch

COMMIT = TransactionMarker(9, 4, committed=True, coordinator_epoch=7, transaction_version=2)


class LeadingWithPurgatory(Leading):
    """A partition whose moves of the high watermark touch a purgatory, as in the broker."""

    def __init__(self, log_dir: LogDir, threads: DiskThreads, **properties: Any) -> None:
        loop = asyncio.get_running_loop()
        self.purgatory: Purgatory[bool] = Purgatory("test", loop, loop)
        super().__init__(log_dir, threads, **properties)

    def advanced(self, partition: Partition) -> None:
        self.purgatory.touch(partition)


@pytest.fixture
async def leading(log_dir: LogDir, threads: DiskThreads) -> LeadingWithPurgatory:
    made = LeadingWithPurgatory(log_dir, threads, min_insync_replicas=2)
    made.apply()
    open_transaction(made.partition)
    return made


def open_transaction(partition: Partition, sequence: int = 0) -> None:
    data = batch(b"a", producer_id=9, producer_epoch=3, base_sequence=sequence, is_transactional=True)
    assert isinstance(partition.append_as_leader(data, 1, NOW), AppendInfo)


def write(
    leading: LeadingWithPurgatory, marker: TransactionMarker = COMMIT, timeout_ms: int = 60_000
) -> ErrorCode | asyncio.Future[ErrorCode]:
    return write_marker(leading.partition, marker, NOW, leading.purgatory, timeout_ms)


async def test_a_marker_is_a_control_batch_of_the_producer(leading: LeadingWithPurgatory) -> None:
    leading.fetched(OTHER, 1)
    info = append_marker(leading.partition, COMMIT, NOW)
    assert isinstance(info, AppendInfo)
    leading.fetched(OTHER, 2)
    leading.fetched(THIRD, 2)

    data = leading.partition.read_for_fetch(1, 1000, True, False).records
    header = read_batch_header(data if isinstance(data, bytes) else data.read())
    assert (header.attributes, header.producer_id, header.producer_epoch, header.base_sequence) == (0x30, 9, 4, -1)
    assert (header.records_count, header.max_timestamp, header.base_offset) == (1, NOW, 1)
    [entry] = leading.partition.log.producers
    assert (entry.epoch, entry.coordinator_epoch, entry.transaction_first_offset) == (4, 7, -1)


async def test_a_marker_that_needs_no_other_replica_shows_at_once(log_dir: LogDir, threads: DiskThreads) -> None:
    leading = LeadingWithPurgatory(log_dir, threads)
    leading.apply(SELF)
    open_transaction(leading.partition)

    assert write(leading) is ErrorCode.NONE
    assert leading.partition.readable_end_offset(read_committed=True) == 2


async def test_a_marker_shows_when_every_in_sync_replica_has_it(leading: LeadingWithPurgatory) -> None:
    written = write(leading)
    assert isinstance(written, asyncio.Future)
    leading.fetched(OTHER, 2)
    leading.fetched(THIRD, 1)
    await asyncio.sleep(0)
    assert not written.done()
    assert leading.partition.readable_end_offset(read_committed=True) == 0

    leading.fetched(THIRD, 2)

    assert await written is ErrorCode.NONE
    assert leading.partition.readable_end_offset(read_committed=True) == 2


async def test_a_marker_that_replicas_do_not_fetch_times_out(leading: LeadingWithPurgatory) -> None:
    written = write(leading, timeout_ms=1)
    assert isinstance(written, asyncio.Future)
    assert await written is ErrorCode.REQUEST_TIMED_OUT

    again = write(leading)
    assert isinstance(again, asyncio.Future)
    leading.fetched(OTHER, 3)
    leading.fetched(THIRD, 3)
    assert await again is ErrorCode.NONE


async def test_a_marker_fails_when_another_broker_leads(leading: LeadingWithPurgatory) -> None:
    written = write(leading)
    assert isinstance(written, asyncio.Future)
    await asyncio.sleep(0)

    leading.apply(leader=OTHER, epoch=1)
    leading.purgatory.release(leading.partition)

    assert await written is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert write(leading) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_marker_needs_as_many_replicas_as_acks_all(leading: LeadingWithPurgatory) -> None:
    leading.apply(SELF)
    assert write(leading) is ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize(
    ("marker", "code"),
    [
        (COMMIT._replace(producer_epoch=3), ErrorCode.INVALID_PRODUCER_EPOCH),
        (COMMIT._replace(producer_epoch=2, transaction_version=0), ErrorCode.INVALID_PRODUCER_EPOCH),
        (COMMIT._replace(coordinator_epoch=6), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
async def test_a_marker_of_an_older_epoch_is_refused(
    leading: LeadingWithPurgatory, marker: TransactionMarker, code: ErrorCode
) -> None:
    append_marker(leading.partition, COMMIT._replace(producer_epoch=3, transaction_version=0), NOW)
    open_transaction(leading.partition, 1)

    assert write(leading, marker) is code


async def test_a_marker_behind_a_large_append_waits_for_it(log_dir: LogDir, threads: DiskThreads) -> None:
    leading = LeadingWithPurgatory(log_dir, threads)
    leading.apply(SELF)
    open_transaction(leading.partition)
    large = leading.partition.append_as_leader(batch(bytes(LARGE_APPEND_BYTES)), 1, NOW)
    assert isinstance(large, asyncio.Future)

    refused, written = write(leading, COMMIT._replace(producer_epoch=3)), write(leading)

    assert isinstance(refused, asyncio.Future)
    assert isinstance(written, asyncio.Future)
    assert await refused is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await written is ErrorCode.NONE
    assert (await large).base_offset == 1
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        open_transaction(leading.partition)
