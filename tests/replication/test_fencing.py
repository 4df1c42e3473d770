"""A leader whose session may have ended: whom it serves, and whom it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.metadata.image import PartitionImage
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.fencing import Fencing
from odradek.broker.replication.offset_lookup import find_offset
from odradek.broker.replication.partition import ACKS_ALL
from odradek.broker.replication.record_deletion import delete_records
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.replication.leading import EPOCHS, OTHER, SELF, THIRD, Leading
from tests.storage.logs import NOW, batch

LATEST = -1
WAIT_MS = 500
LONGER_THAN_TWO_FETCHES_MS = 1_001


class SleepingClock(ManualClock):
    """A clock of a machine that sleeps sometimes."""

    asleep = 0.0

    def boot_time(self) -> float:
        return super().boot_time() + self.asleep


class Lease:
    """The lease of a broker; it lasts for 10 s unless `renew` is called."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.deadline = 0.0
        self.renew()

    def renew(self) -> None:
        self.deadline = self._clock.boot_time() + 10

    def lapse(self) -> None:
        self.deadline = self._clock.boot_time()


@pytest.fixture
def clock() -> SleepingClock:
    return SleepingClock()


@pytest.fixture
def lease(clock: SleepingClock) -> Lease:
    return Lease(clock)


def leading_with(log_dir: LogDir, threads: DiskThreads, clock: SleepingClock, lease: Lease, mode: str) -> Leading:
    fencing = Fencing(clock, lambda: lease.deadline, mode=mode, replica_fetch_wait_max_ms=WAIT_MS)
    made = Leading(log_dir, threads, clock, fencing)
    made.apply()
    return made


@pytest.fixture
def leading(log_dir: LogDir, threads: DiskThreads, clock: SleepingClock, lease: Lease) -> Leading:
    return leading_with(log_dir, threads, clock, lease, "isr")


def vouch(leading: Leading, offset: int = 0, replicas: tuple[int, ...] = (OTHER, THIRD)) -> None:
    """Fetch twice by each: the second fetch was sent after the answer to the first."""
    for replica in replicas * 2:
        leading.fetched(replica, offset)


def refused() -> Any:
    return pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER")


async def assert_refused(leading: Leading) -> None:
    """Assert that every request of a client is refused."""
    partition = leading.partition
    assert partition.is_fenced
    with refused():
        partition.append_as_leader(batch(b"a"), 1, NOW)
    with refused():
        partition.append_as_leader(batch(b"a"), ACKS_ALL, NOW)
    with refused():
        partition.read_for_fetch(0, 1 << 20, True, False)
    with refused():
        find_offset(partition, LATEST, read_committed=False)
    with refused():
        partition.end_offset_for_epoch(0)
    with refused():
        await delete_records(partition, 0)


async def test_nobody_is_refused_before_the_deadline(leading: Leading, clock: SleepingClock) -> None:
    clock.advance(9_999)

    leading.append(b"a")
    assert leading.partition.read_for_fetch(0, 1 << 20, True, False).records == b""


async def test_clients_are_refused_after_the_deadline(leading: Leading, clock: SleepingClock, lease: Lease) -> None:
    leading.append(b"a")
    clock.advance(10_000)

    await assert_refused(leading)

    lease.renew()
    leading.append(b"b")


async def test_the_time_of_the_machines_sleep_counts(leading: Leading, clock: SleepingClock) -> None:
    vouch(leading)

    clock.asleep = 11.0

    await assert_refused(leading)


async def test_clients_are_served_while_all_in_sync_replicas_fetch(
    leading: Leading, clock: SleepingClock, lease: Lease
) -> None:
    lease.lapse()
    vouch(leading, 0, (OTHER,))
    await assert_refused(leading)

    vouch(leading, 0, (THIRD,))
    leading.append(b"a")
    vouch(leading, 1)
    assert leading.partition.acknowledgement(1, 0) is ErrorCode.NONE
    assert find_offset(leading.partition, LATEST, read_committed=False).offset == 1

    clock.advance(LONGER_THAN_TWO_FETCHES_MS)
    await assert_refused(leading)


async def test_fetches_that_a_paused_leader_receives_late_do_not_vouch(
    leading: Leading, clock: SleepingClock, lease: Lease
) -> None:
    vouch(leading)
    clock.asleep = 11.0  # each follower has sent one more fetch, to a leader that does not receive it yet

    for replica in (OTHER, THIRD):
        leading.fetched(replica, 0)
    await assert_refused(leading)

    for replica in (OTHER, THIRD):
        leading.fetched(replica, 0)
    leading.append(b"a")


async def test_fetches_of_an_earlier_epoch_do_not_vouch(leading: Leading, lease: Lease) -> None:
    vouch(leading)
    lease.lapse()

    leading.apply(epoch=1)

    await assert_refused(leading)


async def test_a_proposed_member_of_the_in_sync_set_must_vouch_too(leading: Leading, lease: Lease) -> None:
    leading.apply(SELF, OTHER)
    vouch(leading, 0, (OTHER,))
    lease.lapse()
    assert not leading.partition.is_fenced

    leading.partition.propose_isr(EPOCHS)

    await assert_refused(leading)


async def test_a_leader_that_is_alone_in_the_in_sync_set_is_refused(leading: Leading, lease: Lease) -> None:
    leading.apply(SELF)
    vouch(leading)

    lease.lapse()

    await assert_refused(leading)


async def test_a_partition_with_a_single_replica_is_served(leading: Leading, lease: Lease) -> None:
    leading.partition.apply(PartitionImage(SELF, 1, [SELF], {SELF: EPOCHS[SELF]}, 7))

    lease.lapse()

    leading.append(b"a")


async def test_the_strict_mode_refuses_all_clients_at_the_deadline(
    log_dir: LogDir, threads: DiskThreads, clock: SleepingClock, lease: Lease
) -> None:
    leading = leading_with(log_dir, threads, clock, lease, "strict")
    vouch(leading)
    leading.append(b"a")

    lease.lapse()

    await assert_refused(leading)
    leading.partition.apply(PartitionImage(SELF, 1, [SELF], {SELF: EPOCHS[SELF]}, 7))
    await assert_refused(leading)


async def test_followers_are_never_refused(leading: Leading, lease: Lease) -> None:
    leading.append(b"a")
    lease.lapse()

    leading.partition.check_leader(0)
    assert leading.partition.read_for_fetch(0, 1 << 20, True, False, 0, -1, OTHER).records
    vouch(leading, 1)
    assert leading.partition.high_watermark == 1


async def test_a_committed_append_is_not_acknowledged_by_a_leader_for_which_nobody_vouches(
    leading: Leading, clock: SleepingClock, lease: Lease
) -> None:
    leading.append(b"a")
    vouch(leading, 1)
    clock.advance(LONGER_THAN_TWO_FETCHES_MS)

    lease.lapse()

    assert leading.partition.acknowledgement(1, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leading.partition.acknowledgement(2, 0) is None
