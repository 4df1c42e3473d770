from __future__ import annotations

import asyncio

import pytest

from odradek.broker.maintenance.producer_expiration import remove_expired_producers
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.log_dir import LogDir
from tests.replication.conftest import log_dir, threads
from tests.replication.leading import SELF, Leading
from tests.storage.logs import NOW, batch, crowd

__all__ = ["log_dir", "threads"]


@pytest.fixture
def replica(log_dir: LogDir, threads: DiskThreads) -> Partition:
    leading = Leading(log_dir, threads)
    leading.apply(SELF)
    return leading.partition


async def test_appends_run_while_many_producers_are_removed(replica: Partition) -> None:
    crowd(replica.log, 50_000, timestamp=0)
    data = batch(b"v", producer_id=1, producer_epoch=1, base_sequence=0)

    forgetting = asyncio.create_task(remove_expired_producers(replica))
    await asyncio.sleep(0)
    assert replica.appender.is_busy
    appended = replica.append_as_leader(data, 1, NOW)
    assert isinstance(appended, asyncio.Future)
    await appended
    assert not forgetting.done()
    assert 1 in replica.log.producers.entries
    await forgetting

    assert [(entry.producer_id, entry.epoch) for entry in replica.log.producers] == [(1, 1)]


async def test_producers_of_a_busy_partition_are_removed_in_order_with_appends(replica: Partition) -> None:
    crowd(replica.log, 2, timestamp=0)
    large = replica.append_as_leader(batch(bytes(LARGE_APPEND_BYTES)), 1, NOW)
    assert isinstance(large, asyncio.Future)

    await remove_expired_producers(replica)

    assert large.done()
    assert not len(replica.log.producers)
