"""A partition that this broker leads, with followers: what their fetches move, and what they do not."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from odradek.broker.metadata.values import STARTING
from odradek.broker.replication.appends.disk_threads import DISK_THREADS, DiskThreads
from odradek.broker.replication.partition import ACKS_ALL
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_slice import LogSlice
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.replication.leading import EPOCHS, OTHER, SELF, THIRD, Leading, broker
from tests.storage.logs import NOW, append, batch, records_in


@pytest.fixture
def leading(log_dir: LogDir, threads: DiskThreads) -> Leading:
    made = Leading(log_dir, threads)
    made.apply()
    return made


def test_a_record_is_committed_when_every_in_sync_replica_has_it(leading: Leading) -> None:
    leading.append(b"a", b"b")

    assert leading.partition.acknowledgement(2, 0) is None
    assert leading.fetched(OTHER, 2) == 0
    assert leading.fetched(THIRD, 1) == 1
    assert leading.partition.acknowledgement(2, 0) is None
    assert leading.fetched(THIRD, 2) == 2
    assert leading.partition.acknowledgement(2, 0) is ErrorCode.NONE


@pytest.mark.parametrize("broker_epoch", [-1, 11, 14])
def test_a_fetch_with_another_broker_epoch_than_the_registered_one_moves_nothing(
    leading: Leading, broker_epoch: int
) -> None:
    leading.append(b"a")
    leading.fetched(THIRD, 1)

    assert leading.fetched(OTHER, 1, broker_epoch=broker_epoch) == 0
    assert leading.fetched(OTHER, 1) == 1


def test_a_fetch_of_a_broker_that_is_not_registered_moves_nothing(leading: Leading) -> None:
    leading.append(b"a")
    leading.fetched(THIRD, 1)
    del leading.brokers[OTHER]

    assert leading.fetched(OTHER, 1) == 0


@pytest.mark.parametrize("epoch", [-1, 0, 2])
def test_a_fetch_with_another_leader_epoch_moves_nothing(leading: Leading, epoch: int) -> None:
    leading.apply(epoch=1)
    leading.append(b"a")
    leading.fetched(THIRD, 1, epoch=1)

    assert leading.fetched(OTHER, 1, epoch=epoch) == 0
    assert leading.fetched(OTHER, 1, epoch=1) == 1


def test_a_replica_that_is_proposed_to_leave_the_isr_still_counts(leading: Leading) -> None:
    leading.append(b"a")
    leading.fetched(OTHER, 1)

    leading.partition.propose_isr({SELF: 11, OTHER: 12})
    assert leading.fetched(OTHER, 1) == 0

    leading.apply(SELF, OTHER)
    assert leading.partition.high_watermark == 1


def test_a_replica_that_is_proposed_to_join_the_isr_counts_at_once(leading: Leading) -> None:
    leading.apply(SELF, OTHER)
    leading.append(b"a")
    leading.fetched(OTHER, 1)
    assert leading.partition.high_watermark == 1
    leading.clock.advance(31_000)

    leading.partition.propose_isr(EPOCHS)
    leading.append(b"b")
    assert leading.fetched(OTHER, 2) == 1

    leading.partition.propose_isr(None)
    assert leading.partition.high_watermark == 2


def test_the_high_watermark_waits_for_a_caught_up_replica_that_is_about_to_join(leading: Leading) -> None:
    leading.apply(SELF, OTHER)
    leading.fetched(THIRD, 0)
    leading.append(b"a")

    assert leading.fetched(OTHER, 1) == 0
    assert leading.fetched(THIRD, 1) == 1


@pytest.mark.parametrize("why", ["lags", "gone", "restarted", "starting"])
def test_the_high_watermark_does_not_wait_for_a_replica_that_cannot_join(leading: Leading, why: str) -> None:
    leading.apply(SELF, OTHER)
    leading.fetched(THIRD, 0)
    leading.append(b"a")
    if why == "lags":
        leading.clock.advance(31_000)
    elif why == "gone":
        del leading.brokers[THIRD]
    else:
        leading.brokers[THIRD] = broker(THIRD, *((14,) if why == "restarted" else (13, STARTING)))

    assert leading.fetched(OTHER, 1) == 1


def test_the_wait_for_a_replica_that_is_gone_ends_with_the_next_check_of_the_isr(leading: Leading) -> None:
    leading.apply(SELF)
    leading.fetched(THIRD, 0)
    leading.append(b"a")
    assert leading.partition.high_watermark == 0

    del leading.brokers[THIRD]

    assert leading.partition.lagging_replicas() == set()
    assert leading.partition.high_watermark == 1


def test_the_high_watermark_does_not_move_while_the_isr_is_smaller_than_min_insync_replicas(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    leading = Leading(log_dir, threads, min_insync_replicas=2)
    leading.apply(SELF)
    leading.append(b"a")

    assert leading.partition.high_watermark == 0
    with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS"):
        leading.partition.append_as_leader(batch(b"b"), ACKS_ALL, NOW)

    leading.apply(SELF, OTHER)
    assert leading.fetched(OTHER, 1) == 1


def test_the_high_watermark_does_not_move_while_there_are_eligible_leader_replicas(leading: Leading) -> None:
    """One of them may be elected; min.insync.replicas may have been lowered since."""
    leading.apply(SELF, eligible=[OTHER])
    leading.append(b"a")
    assert leading.partition.high_watermark == 0

    leading.apply(SELF)

    assert leading.partition.high_watermark == 1


def test_the_high_watermark_never_falls_in_an_epoch(leading: Leading) -> None:
    leading.append(b"a", b"b")
    leading.fetched(OTHER, 2)
    assert leading.fetched(THIRD, 2) == 2

    assert leading.fetched(THIRD, 0) == 2


def test_in_a_new_epoch_followers_count_as_unknown(leading: Leading) -> None:
    leading.append(b"a")
    leading.fetched(OTHER, 1)
    leading.fetched(THIRD, 0)

    leading.apply(epoch=1)
    assert leading.fetched(THIRD, 1, epoch=1) == 0
    assert leading.fetched(OTHER, 1, epoch=1) == 1


def test_followers_read_to_the_end_of_the_log(leading: Leading) -> None:
    leading.append(b"a")
    read = leading.partition.read_for_fetch

    fetched = read(0, 1 << 20, True, False, 0, -1, OTHER)

    assert isinstance(fetched.records, LogSlice)
    with fetched.records as data:
        assert [record.value for record in records_in(data.read())] == [b"a"]
    assert read(0, 1 << 20, True, False, 0, -1).records == b""


def test_an_append_is_reported_although_the_high_watermark_does_not_move(leading: Leading) -> None:
    leading.append(b"a")

    assert leading.appends == 1


def test_a_replica_may_join_the_isr_when_it_has_reached_the_high_watermark(leading: Leading) -> None:
    leading.append(b"a")
    for replica in (OTHER, THIRD):
        leading.fetched(replica, 1)
    leading.apply(SELF, OTHER)
    assert leading.joinable == []

    leading.fetched(THIRD, 0)
    assert leading.joinable == []
    leading.fetched(THIRD, 1)
    assert leading.joinable == [THIRD]


def test_a_replica_may_join_the_isr_only_behind_the_start_of_the_leader_epoch(leading: Leading) -> None:
    leading.append(b"a")
    leading.apply(SELF, OTHER, epoch=1)
    assert (leading.partition.epoch_start_offset, leading.partition.high_watermark) == (1, 0)

    leading.fetched(THIRD, 0, epoch=1)
    assert leading.joinable == []
    leading.fetched(THIRD, 1, epoch=1)
    assert leading.joinable == [THIRD]


@pytest.mark.parametrize("why", ["starting", "proposed"])
def test_a_replica_does_not_join_while_it_starts_or_a_change_is_proposed(leading: Leading, why: str) -> None:
    leading.apply(SELF, OTHER)
    if why == "starting":
        leading.brokers[THIRD] = broker(THIRD, state=STARTING)
    else:
        leading.partition.propose_isr({SELF: 11})

    leading.fetched(THIRD, 0)

    assert leading.joinable == []


def test_in_sync_replicas_that_lag_are_found(leading: Leading) -> None:
    leading.append(b"a")
    leading.clock.advance(20_000)
    leading.fetched(OTHER, 1)
    leading.append(b"b")
    leading.clock.advance(10_000)
    assert leading.partition.lagging_replicas() == set()

    leading.clock.advance(1)
    assert leading.partition.lagging_replicas() == {THIRD}
    leading.partition.propose_isr({SELF: 11, OTHER: 12})
    assert leading.partition.lagging_replicas() == set()


def test_an_epoch_without_a_batch_is_known_at_once(leading: Leading) -> None:
    append(leading.partition.log, b"a", leader_epoch=0)
    leading.apply(epoch=5)

    assert leading.partition.epoch_start_offset == 1
    assert leading.partition.end_offset_for_epoch(5) == (5, 1)
    assert leading.partition.end_offset_for_epoch(3) == (0, 1)
    diverged = leading.partition.read_for_fetch(2, 1 << 20, True, False, 5, 3, OTHER)
    assert diverged.diverging_epoch == (0, 1)


def test_the_own_end_is_the_end_of_the_log_after_having_followed(leading: Leading) -> None:
    leading.append(b"a")
    leading.apply(leader=OTHER, epoch=1)
    append(leading.partition.log, b"b", b"c", leader_epoch=1)  # as the follower does

    leading.apply(SELF, epoch=2)

    assert leading.partition.high_watermark == 3


async def test_an_append_that_is_queued_fails_if_its_epoch_ends_before_its_turn(leading: Leading) -> None:
    is_blocked = Event()
    blocking = leading.partition.appender.run_between_appends(is_blocked.wait)
    queued = leading.partition.append_as_leader(batch(b"a"), 1, NOW)
    assert isinstance(queued, asyncio.Future)

    leading.apply(epoch=1)
    assert leading.partition.epoch_start_offset == -1
    later = leading.partition.append_as_leader(batch(b"b", b"c"), 1, NOW)
    assert isinstance(later, asyncio.Future)
    is_blocked.set()
    await blocking

    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        await queued
    assert (await later).base_offset == 0
    assert leading.partition.epoch_start_offset == 0
    assert leading.partition.log.leader_epochs == [(1, 0)]


async def test_an_append_that_is_queued_fails_on_a_broker_that_follows(leading: Leading) -> None:
    is_blocked = Event()
    blocking = leading.partition.appender.run_between_appends(is_blocked.wait)
    queued = leading.partition.append_as_leader(batch(b"a"), 1, NOW)
    assert isinstance(queued, asyncio.Future)

    leading.apply(leader=OTHER, epoch=1)
    is_blocked.set()
    await blocking

    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        await queued
    assert leading.partition.log.log_end_offset == 0


async def test_records_that_wait_for_an_fsync_do_not_count_in_a_new_epoch_of_the_same_leader(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    leading = Leading(log_dir, threads, flush_messages=1)
    leading.apply(SELF)
    appending = leading.partition.append_as_leader(batch(b"a"), 1, NOW)
    assert isinstance(appending, asyncio.Future)

    leading.apply(SELF, epoch=1)
    assert leading.partition.high_watermark == 0
    await appending

    assert leading.partition.high_watermark == 1


async def test_a_follower_that_leads_while_its_fsync_runs_counts_its_records_when_they_are_synced(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    leading = Leading(log_dir, threads, flush_messages=1)
    leading.apply(leader=OTHER, epoch=1)
    append(leading.partition.log, b"a", leader_epoch=1)  # as the follower does; it has not synced yet

    leading.apply(SELF, epoch=2)

    assert (leading.partition.high_watermark, leading.partition.epoch_start_offset) == (0, 1)
    async with asyncio.timeout(30):
        while not leading.partition.high_watermark:  # noqa: ASYNC110 - a turn of the loop, not a pause
            await asyncio.sleep(0)
    assert leading.partition.log.recovery_point == 1


async def test_what_was_synced_in_an_earlier_epoch_does_not_count_in_a_later_one(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    is_blocked = Event()
    blocking = [threads.run(is_blocked.wait) for _ in range(DISK_THREADS)]
    leading = Leading(log_dir, threads, flush_messages=1)
    leading.apply(leader=OTHER, epoch=1)
    append(leading.partition.log, b"a", leader_epoch=1)
    leading.apply(SELF, epoch=2)

    leading.apply(leader=OTHER, epoch=3)
    leading.partition.log.truncate_to(0)
    leading.apply(SELF, epoch=4)
    is_blocked.set()
    await asyncio.gather(*blocking)
    for _ in range(100):
        await threads.run(int)

    assert leading.partition.high_watermark == 0


def test_the_isr_vouches_while_all_of_its_other_members_fetch(leading: Leading) -> None:
    def vouches() -> bool:
        return leading.partition.followers.vouch(leading.partition.maximal_isr(), 1.0)

    def fetch_twice(replica: int) -> None:  # the second fetch was sent after the answer to the first
        leading.fetched(replica, 0)
        leading.fetched(replica, 0)

    assert not vouches()
    fetch_twice(OTHER)
    assert not vouches()
    fetch_twice(THIRD)
    assert vouches()

    leading.clock.advance(1_001)
    assert not vouches()
    for replica in (OTHER, THIRD):  # sent before the leader was paused for a second, for all that it knows
        leading.fetched(replica, 0)
    assert not vouches()
    for replica in (OTHER, THIRD):
        leading.fetched(replica, 0)
    assert vouches()
    leading.apply(SELF)
    assert not vouches()


def test_the_low_watermark_is_the_smallest_start_of_the_live_replicas(leading: Leading) -> None:
    leading.append(b"a", b"b")
    followers = leading.partition.followers
    assert followers.low_watermark(0) == -1

    leading.partition.record_follower_fetch(OTHER, EPOCHS[OTHER], 0, 2, 1)
    leading.partition.record_follower_fetch(THIRD, EPOCHS[THIRD], 0, 2, 0)

    assert followers.low_watermark(2) == 0
    leading.brokers[THIRD] = broker(THIRD, state=STARTING)
    assert followers.low_watermark(2) == 1
    del leading.brokers[OTHER]
    assert followers.low_watermark(2) == 2
