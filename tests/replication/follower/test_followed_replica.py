"""The effects of each row of a leader's response on the log of a follower."""

from __future__ import annotations

import asyncio

import pytest

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES
from odradek.broker.replication.follower.followed_replica import FollowedReplica
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from tests.replication.follower.following import diverging, follower_of, lead, records, row
from tests.replication.leading import OTHER, SELF, THIRD
from tests.storage.logs import batch, values_of

MAX_BYTES = 1 << 20


@pytest.fixture
async def partition(log_dir: LogDir, threads: DiskThreads) -> Partition:
    return follower_of(log_dir, threads)


@pytest.fixture
async def replica(partition: Partition) -> FollowedReplica:
    made = FollowedReplica(partition, MAX_BYTES)
    await made.prepare()
    return made


async def answered(replica: FollowedReplica, *rows: PartitionData) -> None:
    """Handle each row as the answer to the request that precedes it."""
    for each in rows:
        await replica.handle(replica.wanted(), each)


async def test_batches_keep_their_offsets_epochs_and_bytes(replica: FollowedReplica) -> None:
    first, second = records(b"a", b"b", base_offset=0, epoch=0), records(b"c", base_offset=7)

    await answered(replica, row(first, second, high_watermark=5))

    log = replica.partition.log
    assert log.bytes_of(log.read(0, MAX_BYTES, 100)) == first + second
    assert (log.log_end_offset, log.leader_epochs) == (8, [(0, 0), (1, 7)])
    assert (replica.partition.high_watermark, log.high_watermark) == (5, 5)


async def test_the_next_fetch_names_the_end_and_the_epoch_of_the_last_record(replica: FollowedReplica) -> None:
    first = replica.wanted()
    assert (first.current_leader_epoch, first.fetch_offset, first.last_fetched_epoch) == (1, 0, -1)
    assert (first.log_start_offset, first.partition_max_bytes) == (0, MAX_BYTES)

    await answered(replica, row(records(b"a", b"b", base_offset=0, epoch=0)))

    second = replica.wanted()
    assert (second.fetch_offset, second.last_fetched_epoch) == (2, 0)


async def test_a_batch_of_an_epoch_that_was_never_appended_is_not_named(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", base_offset=0, epoch=0)))
    replica.partition.log.begin_epoch(1)  # the disk failed before the batch was written

    assert replica.wanted().last_fetched_epoch == 0


async def test_an_incomplete_batch_at_the_end_is_fetched_again(replica: FollowedReplica) -> None:
    first, second = records(b"a", base_offset=0), records(b"b", base_offset=1)

    await answered(replica, row(first, second[:-1]))
    assert replica.partition.log.log_end_offset == 1
    await answered(replica, row(second))

    assert values_of(replica.partition.log) == [b"a", b"b"]


async def test_large_batches_are_appended_in_order(replica: FollowedReplica) -> None:
    large = b"x" * LARGE_APPEND_BYTES

    await answered(replica, row(records(large, base_offset=0)), row(records(b"b", base_offset=1)))

    assert values_of(replica.partition.log) == [large, b"b"]


async def test_a_batch_of_a_later_epoch_than_the_leaders_is_not_appended(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", base_offset=0), records(b"b", base_offset=1, epoch=2)))

    assert values_of(replica.partition.log) == [b"a"]


async def test_a_corrupt_batch_is_not_appended(replica: FollowedReplica) -> None:
    spoiled = bytearray(records(b"a", base_offset=0))
    spoiled[-1] ^= 1

    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        await answered(replica, row(bytes(spoiled)))

    assert replica.partition.log.log_end_offset == 0
    await answered(replica, row(records(b"a", base_offset=0)))


async def test_records_are_synced_before_the_next_fetch_if_flush_messages_demands_it(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    replica = FollowedReplica(follower_of(log_dir, threads, flush_messages=1), MAX_BYTES)
    await replica.prepare()

    await answered(replica, row(records(b"a", base_offset=0)))

    assert replica.wanted().fetch_offset == replica.partition.log.recovery_point == 1


async def test_records_of_an_earlier_epoch_are_synced_before_the_first_fetch(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    partition = follower_of(log_dir, threads, flush_messages=1)
    partition.log.append_as_follower(bytearray(records(b"a", base_offset=0)))

    replica = FollowedReplica(partition, MAX_BYTES)
    await replica.prepare()

    assert replica.wanted().fetch_offset == partition.log.recovery_point == 1


async def test_records_above_the_high_watermark_stay_until_the_leader_shows_that_it_lacks_them(
    partition: Partition,
) -> None:
    partition.log.append_as_follower(bytearray(records(b"a", base_offset=0)))

    replica = FollowedReplica(partition, MAX_BYTES)
    await replica.prepare()

    assert (partition.high_watermark, replica.wanted().fetch_offset) == (0, 1)


async def test_the_first_fetch_waits_for_the_appends_of_a_former_leader(partition: Partition) -> None:
    lead(partition, SELF, 2)
    appending = partition.append_as_leader(batch(b"x" * LARGE_APPEND_BYTES), 1, 0)
    assert isinstance(appending, asyncio.Future)
    lead(partition, OTHER, 3)

    replica = FollowedReplica(partition, MAX_BYTES)
    await replica.prepare()

    assert appending.done()
    appending.exception()
    assert replica.wanted().fetch_offset == partition.log.log_end_offset


async def test_a_diverged_log_is_truncated_to_the_point_of_divergence(replica: FollowedReplica) -> None:
    await answered(
        replica,
        row(records(b"a", b"b", base_offset=0, epoch=0)),
        row(records(b"c", base_offset=2, epoch=1)),
        row(high_watermark=1),
        diverging(0, 2),
    )

    assert values_of(replica.partition.log) == [b"a", b"b"]
    wanted = replica.wanted()
    assert (wanted.fetch_offset, wanted.last_fetched_epoch) == (2, 0)
    assert replica.partition.high_watermark == 1  # truncation is by epoch: record b is above it, and stays


async def test_a_log_is_never_truncated_below_its_high_watermark(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", base_offset=0, epoch=0), records(b"b", base_offset=1), high_watermark=2))

    with pytest.raises(KafkaError, match="below its high watermark"):
        await answered(replica, diverging(0, 1))

    assert replica.is_stopped
    await answered(replica, row(records(b"c", base_offset=2)))
    assert values_of(replica.partition.log) == [b"a", b"b"]


async def test_an_unclean_election_may_truncate_below_the_high_watermark(partition: Partition) -> None:
    lead(partition, OTHER, 2, rec=1)
    replica = FollowedReplica(partition, MAX_BYTES)
    await replica.prepare()
    await answered(replica, row(records(b"a", base_offset=0, epoch=0), records(b"b", base_offset=1), high_watermark=2))

    await answered(replica, diverging(0, 1))

    assert values_of(partition.log) == [b"a"]
    assert partition.high_watermark == 1


def out_of_range(start: int, end: int) -> PartitionData:
    bounds = EpochEndOffset(1, end)
    return PartitionData(
        0, ErrorCode.OFFSET_OUT_OF_RANGE, -1, log_start_offset=start, diverging_epoch=bounds, records=b""
    )


async def test_a_log_below_the_start_of_its_leader_begins_anew_there(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", b"b", base_offset=0), high_watermark=2), out_of_range(10, 20))

    log = replica.partition.log
    assert (log.log_start_offset, log.log_end_offset, replica.partition.high_watermark) == (10, 10, 10)
    await answered(replica, row(records(b"c", base_offset=10), log_start_offset=10, high_watermark=11))
    assert values_of(log) == [b"c"]


async def test_a_log_above_the_end_of_its_leader_is_cut_to_it(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", base_offset=0), records(b"b", base_offset=1)), out_of_range(0, 1))

    assert values_of(replica.partition.log) == [b"a"]


async def test_a_log_above_the_end_of_its_leader_is_not_cut_below_its_high_watermark(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", base_offset=0), records(b"b", base_offset=1), high_watermark=2))

    with pytest.raises(KafkaError, match="below its high watermark"):
        await answered(replica, out_of_range(0, 1))

    assert values_of(replica.partition.log) == [b"a", b"b"]


async def test_out_of_range_without_bounds_changes_nothing(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", base_offset=0)))

    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        await answered(replica, out_of_range(-1, -1))

    assert replica.partition.log.log_end_offset == 1


async def test_the_start_of_the_log_follows_the_leaders_up_to_the_high_watermark(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", b"b", b"c", base_offset=0), high_watermark=2, log_start_offset=1))
    assert replica.wanted().log_start_offset == 1

    await answered(replica, row(high_watermark=2, log_start_offset=3))
    assert replica.wanted().log_start_offset == 2


async def test_the_high_watermark_does_not_fall_when_a_new_leader_has_a_lower_one(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", b"b", base_offset=0), high_watermark=2), row(high_watermark=1))

    assert replica.partition.high_watermark == 2


async def test_the_high_watermark_is_within_the_log(replica: FollowedReplica) -> None:
    await answered(replica, row(records(b"a", base_offset=0), high_watermark=9))

    assert (replica.partition.high_watermark, replica.lag) == (1, 8)


@pytest.mark.parametrize(("leader", "epoch"), [(OTHER, 2), (THIRD, 2), (SELF, 2)])
async def test_an_answer_is_discarded_if_the_epoch_has_moved(replica: FollowedReplica, leader: int, epoch: int) -> None:
    requested = replica.wanted()
    lead(replica.partition, leader, epoch)

    for answer in (row(records(b"a", base_offset=0), high_watermark=1), diverging(0, 0), out_of_range(10, 10)):
        assert await replica.handle(requested, answer) == 0

    assert replica.partition.log.log_end_offset == 0


async def test_an_answer_to_another_offset_is_discarded(replica: FollowedReplica) -> None:
    requested = replica.wanted()
    await answered(replica, row(records(b"a", b"b", base_offset=0)))

    await replica.handle(requested, diverging(0, 0))

    assert replica.partition.log.log_end_offset == 2
