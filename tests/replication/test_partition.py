from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.broker.metadata.image import PartitionImage
from odradek.broker.metrics.counts.metrics import TopicMetrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.fetch.fetched_records import FetchedRecords
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.partition import ACKS_ALL, Partition
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_slice import LogSlice
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.logs import NOW, TOPIC_ID, batch, marker, records_in

SELF, OTHER = 1, 2


def image(
    leader: int = SELF, epoch: int = 0, isr: tuple[int, ...] = (SELF,), partition_epoch: int = 0
) -> PartitionImage:
    replicas = [SELF] if isr == (SELF,) else [SELF, OTHER]
    return PartitionImage(leader, epoch, replicas, dict.fromkeys(isr, 7), partition_epoch)


class Advances:
    """The events of a partition; it notes the high watermark when that moves."""

    def __init__(self, advances: list[int] | None) -> None:
        self._advances = advances

    def advanced(self, partition: Partition) -> None:
        if self._advances is not None:
            self._advances.append(partition.high_watermark)

    def appended(self, partition: Partition) -> None:
        pass

    def followed(self, partition: Partition) -> None:
        pass

    def may_join(self, partition: Partition, replica: int) -> None:
        raise AssertionError


def partition(log_dir: LogDir, threads: DiskThreads, advances: list[int] | None = None, **properties: Any) -> Partition:
    """One that notes in `advances` when its high watermark moves."""
    return Partition(
        "t",
        TOPIC_ID,
        0,
        log_dir.create_log("t", 0, TOPIC_ID, LogConfig(**properties)),
        node_id=SELF,
        metrics=TopicMetrics(),
        threads=threads,
        followers=Followers(SELF, ManualClock(), {}.get),
        events=Advances(advances),
    )


def produce(replica: Partition, *values: bytes, acks: int = 1) -> AppendInfo | asyncio.Future[AppendInfo]:
    return replica.append_as_leader(batch(*values), acks, NOW)


def fetch(
    replica: Partition, offset: int, max_bytes: int = 1 << 20, *, read_committed: bool = False, **epochs: int
) -> FetchedRecords:
    return replica.read_for_fetch(offset, max_bytes, True, read_committed, **epochs)


@pytest.fixture
def advances() -> list[int]:
    return []


@pytest.fixture
def replica(log_dir: LogDir, threads: DiskThreads, advances: list[int]) -> Partition:
    made = partition(log_dir, threads, advances)
    made.apply(image())
    return made


def values_in(fetched: FetchedRecords) -> list[bytes | None]:
    if not isinstance(fetched.records, LogSlice):
        return []
    with fetched.records as data:
        return [record.value for record in records_in(data.read())]


def refusal(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, match=code.name)


async def test_the_high_watermark_of_a_single_replica_follows_at_once(replica: Partition, advances: list[int]) -> None:
    info = produce(replica, b"a", b"b")

    assert isinstance(info, AppendInfo)
    assert replica.high_watermark == replica.log.high_watermark == 2
    assert advances == [2]
    assert replica.acknowledgement(2, 0) is ErrorCode.NONE


async def test_the_high_watermark_waits_for_the_other_in_sync_replicas(replica: Partition, advances: list[int]) -> None:
    replica.apply(image(isr=(SELF, OTHER), partition_epoch=1))

    produce(replica, b"a")

    assert replica.high_watermark == 0
    assert advances == []
    assert replica.acknowledgement(1, 0) is None


async def test_it_moves_when_the_other_replica_leaves_the_in_sync_set(replica: Partition, advances: list[int]) -> None:
    replica.apply(image(isr=(SELF, OTHER), partition_epoch=1))
    produce(replica, b"a")

    replica.apply(PartitionImage(SELF, 0, [SELF, OTHER], {SELF: 7}, 2))

    assert replica.high_watermark == 1
    assert advances == [1]


async def test_an_older_image_changes_nothing(replica: Partition) -> None:
    replica.apply(image(epoch=3, partition_epoch=5))

    assert not replica.apply(image(leader=OTHER, epoch=2, partition_epoch=6))
    assert not replica.apply(image(leader=OTHER, epoch=3, partition_epoch=4))
    assert replica.is_leader
    assert replica.leader_epoch == 3


async def test_only_the_leader_appends_and_reads(replica: Partition) -> None:
    assert replica.apply(image(leader=OTHER, epoch=1, isr=(SELF, OTHER), partition_epoch=1))

    with refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        produce(replica, b"a")
    with refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        fetch(replica, 0)


async def test_another_leader_epoch_is_refused(replica: Partition) -> None:
    replica.apply(image(epoch=4, partition_epoch=1))

    with refusal(ErrorCode.FENCED_LEADER_EPOCH):
        fetch(replica, 0, current_leader_epoch=3)
    with refusal(ErrorCode.UNKNOWN_LEADER_EPOCH):
        fetch(replica, 0, current_leader_epoch=5)
    assert values_in(fetch(replica, 0, current_leader_epoch=4)) == []


async def test_acks_all_needs_enough_in_sync_replicas(log_dir: LogDir, threads: DiskThreads) -> None:
    replica = partition(log_dir, threads, min_insync_replicas=2)
    replica.apply(PartitionImage(SELF, 0, [SELF, OTHER], {SELF: 7}, 0))

    with refusal(ErrorCode.NOT_ENOUGH_REPLICAS):
        produce(replica, b"a", acks=ACKS_ALL)
    assert replica.log.log_end_offset == 0
    assert isinstance(produce(replica, b"a", acks=1), AppendInfo)
    assert replica.acknowledgement(1, 0) is None


async def test_min_insync_replicas_is_limited_to_the_replicas(log_dir: LogDir, threads: DiskThreads) -> None:
    replica = partition(log_dir, threads, min_insync_replicas=2)
    replica.apply(image())

    assert isinstance(produce(replica, b"a", acks=ACKS_ALL), AppendInfo)
    assert replica.acknowledgement(1, 0) is ErrorCode.NONE


async def test_a_waiting_producer_is_answered_when_another_broker_leads(replica: Partition) -> None:
    replica.apply(image(isr=(SELF, OTHER), partition_epoch=1))
    produce(replica, b"a")

    replica.apply(image(leader=OTHER, epoch=1, isr=(SELF, OTHER), partition_epoch=2))

    assert replica.acknowledgement(1, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_reading_starts_at_the_batch_that_holds_the_offset(replica: Partition) -> None:
    produce(replica, b"a", b"b")
    produce(replica, b"c")

    assert values_in(fetch(replica, 0)) == [b"a", b"b", b"c"]
    assert values_in(fetch(replica, 1)) == [b"a", b"b", b"c"]
    assert values_in(fetch(replica, 2)) == [b"c"]
    assert values_in(fetch(replica, 3)) == []


async def test_offsets_outside_the_log_are_refused(replica: Partition) -> None:
    produce(replica, b"a", b"b")
    replica.log.update_log_start_offset(1)

    with refusal(ErrorCode.OFFSET_OUT_OF_RANGE):
        fetch(replica, 0)
    with refusal(ErrorCode.OFFSET_OUT_OF_RANGE):
        fetch(replica, 3)
    with refusal(ErrorCode.OFFSET_OUT_OF_RANGE):
        fetch(replica, -1)


async def test_consumers_read_up_to_the_high_watermark(replica: Partition) -> None:
    produce(replica, b"a")
    replica.apply(image(isr=(SELF, OTHER), partition_epoch=1))
    produce(replica, b"b")

    assert values_in(fetch(replica, 0)) == [b"a"]
    assert values_in(fetch(replica, 1)) == []
    assert values_in(fetch(replica, 2)) == []  # at the log end: not there for consumers yet, but not out of range


async def test_a_fetch_returns_the_offsets_of_the_log(replica: Partition) -> None:
    produce(replica, b"a", b"b", b"c")
    replica.log.update_log_start_offset(1)

    fetched = fetch(replica, 3)

    assert (fetched.log_start_offset, fetched.last_stable_offset, fetched.high_watermark) == (1, 3, 3)


async def test_without_room_nothing_is_read_unless_one_batch_must_be(replica: Partition) -> None:
    produce(replica, b"a")
    produce(replica, b"b")

    assert values_in(replica.read_for_fetch(0, 0, False, False)) == []
    assert values_in(replica.read_for_fetch(0, 0, True, False)) == [b"a"]


async def test_read_committed_stops_before_an_open_transaction(replica: Partition) -> None:
    produce(replica, b"a")
    replica.append_as_leader(
        batch(b"b", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True), 1, NOW
    )
    replica.apply(image(partition_epoch=1))

    assert values_in(fetch(replica, 0)) == [b"a", b"b"]
    assert values_in(fetch(replica, 0, read_committed=True)) == [b"a"]
    assert replica.readable_end_offset(read_committed=True) == 1

    replica.append_as_leader(marker(5, 0, commit=True), 1, NOW, Origin.COORDINATOR)
    replica.apply(image(partition_epoch=2))
    assert values_in(fetch(replica, 0, read_committed=True)) == [b"a", b"b"]


async def test_an_epoch_ends_where_the_next_one_starts(replica: Partition) -> None:
    produce(replica, b"a", b"b")
    replica.apply(image(epoch=2, partition_epoch=1))
    produce(replica, b"c")

    assert replica.end_offset_for_epoch(0) == (0, 2)
    assert replica.end_offset_for_epoch(1) == (0, 2)
    assert replica.end_offset_for_epoch(2) == (2, 3)
    assert replica.end_offset_for_epoch(3) == (-1, -1)


async def test_the_current_epoch_ends_at_the_log_end_before_its_first_batch_too(replica: Partition) -> None:
    produce(replica, b"a")
    replica.apply(image(epoch=2, partition_epoch=1))

    assert replica.end_offset_for_epoch(2) == (2, 1)


async def test_a_diverged_fetcher_gets_the_diverging_epoch(replica: Partition) -> None:
    produce(replica, b"a", b"b")
    replica.apply(image(epoch=2, partition_epoch=1))
    produce(replica, b"c")

    assert fetch(replica, 3, last_fetched_epoch=0).diverging_epoch == (0, 2)
    assert fetch(replica, 3, last_fetched_epoch=1).diverging_epoch == (0, 2)
    assert fetch(replica, 2, last_fetched_epoch=0).diverging_epoch is None
    with refusal(ErrorCode.OFFSET_OUT_OF_RANGE):
        fetch(replica, 3, last_fetched_epoch=9)


async def test_only_replicas_may_follow(replica: Partition) -> None:
    with refusal(ErrorCode.UNKNOWN_LEADER_EPOCH):
        replica.check_follower(OTHER, 0)
    with refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        replica.check_follower(OTHER, -1)

    replica.apply(image(isr=(SELF, OTHER), partition_epoch=1))
    replica.check_follower(OTHER, 0)


async def test_a_failed_disk_refuses_every_request(replica: Partition) -> None:
    replica.offline = True

    with refusal(ErrorCode.KAFKA_STORAGE_ERROR):
        produce(replica, b"a")
    with refusal(ErrorCode.KAFKA_STORAGE_ERROR):
        fetch(replica, 0)
    assert replica.acknowledgement(0, 0) is ErrorCode.KAFKA_STORAGE_ERROR
