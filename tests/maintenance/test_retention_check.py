from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import current_thread, main_thread

import pytest

from odradek.broker.broker import Broker
from odradek.broker.replication.partition import Partition
from odradek.broker.startup.machine import Machine
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.wire import Wire

HOUR, DAY = 3_600_000, 86_400_000


class Aging:
    """A broker whose clock stands still; retention runs only when a test calls it."""

    def __init__(self, broker: Broker, wire: Wire, clock: ManualClock) -> None:
        self.broker = broker
        self.wire = wire
        self.clock = clock

    def partition(self, topic: str = "t") -> Partition:
        return self.broker.services.partitions.get(topic, 0)

    async def check(self) -> int:
        return await self.broker.periodic_tasks.retention.run()

    def checkpointed(self) -> list[str]:
        return (self.broker.log_dir.path / "log-start-offset-checkpoint").read_text().splitlines()[2:]


@pytest.fixture
async def aging(tmp_path: Path) -> AsyncIterator[Aging]:
    clock = ManualClock()
    async with Broker({"log.dirs": str(tmp_path)}, clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
        yield Aging(broker, wire, clock)


async def test_segments_a_week_old_are_deleted_and_the_log_continues(aging: Aging) -> None:
    await create(aging.wire, "t")
    await produce(aging.wire, "t", batch(b"a", b"b"))
    aging.clock.advance(7 * DAY)
    assert await aging.check() == 0
    aging.clock.advance(2)

    assert await aging.check() == 1  # the active segment, which was rolled first
    assert (await fetch(aging.wire, "t", 0)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (await produce(aging.wire, "t", batch(b"c"))).base_offset == 2
    assert values_in(await fetch(aging.wire, "t", 2)) == [b"c"]


async def test_a_topics_own_retention_applies_only_to_it(aging: Aging) -> None:
    await create(aging.wire, "t", retention_ms="3600000")
    await create(aging.wire, "kept", retention_ms="-1")
    for topic in ("t", "kept"):
        await produce(aging.wire, topic, batch(b"a"))
    aging.clock.advance(30 * DAY)
    await aging.check()
    assert (aging.partition("t").log.log_start_offset, aging.partition("kept").log.log_start_offset) == (1, 0)


async def test_the_oldest_segments_of_a_log_that_is_too_large_are_deleted(aging: Aging) -> None:
    await create(aging.wire, "t", retention_bytes="250", segment_bytes="150")
    for index in range(6):
        await produce(aging.wire, "t", batch(b"%d" % index * 50))
    assert await aging.check() > 0
    log = aging.partition().log
    assert 250 <= log.size_bytes < 400
    assert values_in(await fetch(aging.wire, "t", 5)) == [b"5" * 50]


async def test_segments_below_the_log_start_are_deleted_under_any_policy(aging: Aging) -> None:
    await create(aging.wire, "t", cleanup_policy="compact", segment_bytes="100")
    for index in range(4):
        await produce(aging.wire, "t", batch(b"%d" % index))
    log = aging.partition().log
    log.update_log_start_offset(2)
    assert await aging.check() == 2
    assert log.first_base_offset == 2


async def test_log_starts_are_checkpointed_before_segments_are_deleted(
    aging: Aging, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(aging.wire, "t", segment_bytes="100", retention_bytes="0")
    for index in range(3):
        await produce(aging.wire, "t", batch(b"%d" % index))
    log = aging.partition().log
    seen: list[tuple[list[str], int]] = []
    delete = log.delete_segments

    def deleting(segments: list[object]) -> None:
        seen.append((aging.checkpointed(), log.segments_count))
        delete(segments)  # type: ignore[arg-type]

    monkeypatch.setattr(log, "delete_segments", deleting)
    await aging.check()
    assert seen == [(["t 0 3"], 4)]


async def test_appends_during_a_check_are_kept(aging: Aging) -> None:
    await create(aging.wire, "t", retention_ms="0", segment_bytes="1000")
    appended = 0

    async def append() -> None:
        nonlocal appended
        for _ in range(100):
            aging.clock.advance(1)
            row = await produce(aging.wire, "t", batch(b"v"))
            assert (row.error_code, row.base_offset) == (ErrorCode.NONE, appended)
            appended += 1

    appending = asyncio.create_task(append())
    while not appending.done():
        await aging.check()
    await appending
    assert aging.partition().log.log_end_offset == appended == 100


async def test_a_log_that_is_being_compacted_is_skipped(aging: Aging) -> None:
    await create(aging.wire, "t", cleanup_policy="compact,delete", segment_bytes="100", retention_ms="1000")
    for index in range(3):
        await produce(aging.wire, "t", batch(b"%d" % index))
    aging.clock.advance(1001)
    log = aging.partition().log
    log.cleaning.begin()
    assert await aging.check() == 0
    assert (log.log_start_offset, len(values_in(await fetch(aging.wire, "t", 0)))) == (0, 1)
    log.cleaning.end()
    assert await aging.check() == 3
    assert log.log_start_offset == 3
    assert not log.cleaning.is_in_progress


class InterruptedClock(ManualClock):
    """A clock that calls `interruption` once, when another thread than the main one reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.interruption: Callable[[], object] = bool

    def time_ms(self) -> int:
        if current_thread() is not main_thread():
            interruption, self.interruption = self.interruption, bool
            interruption()
        return super().time_ms()


async def test_a_log_whose_compaction_begins_during_a_check_is_skipped(tmp_path: Path) -> None:
    clock = InterruptedClock()
    async with Broker({"log.dirs": str(tmp_path)}, clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
        aging = Aging(broker, wire, clock)
        await create(wire, "t", cleanup_policy="compact,delete", segment_bytes="100", retention_ms="1000")
        for index in range(3):
            await produce(wire, "t", batch(b"%d" % index))
        clock.advance(1001)
        log = aging.partition().log
        clock.interruption = log.cleaning.begin
        assert await aging.check() == 0
        assert log.cleaning.is_in_progress
        assert (log.log_start_offset, log.first_base_offset) == (0, 0)
        log.cleaning.end()
        assert await aging.check() == 3


class CountingFiles(OsFiles):
    """Counts reads of files."""

    def __init__(self) -> None:
        self.reads = 0

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        self.reads += 1
        return super().pread(descriptor, length, position)


async def test_the_second_check_of_a_log_reads_no_file(tmp_path: Path) -> None:
    files = CountingFiles()
    machine = Machine(new_files=lambda: files)
    for topic, retention_ms in (("t", "-1"), ("u", "604800000")):
        async with (
            Broker({"log.dirs": str(tmp_path)}, machine=machine) as broker,
            Wire("127.0.0.1", broker.port) as wire,
        ):
            await create(wire, topic, 20, retention_ms=retention_ms)
            for index in range(20):
                await produce(wire, topic, batch(b"a"), partition=index)
    async with Broker({"log.dirs": str(tmp_path)}, clock=ManualClock(), machine=machine) as broker:
        check = broker.periodic_tasks.retention.run
        assert await check() == 0
        reads, files.reads = files.reads, 0
        assert await check() == 0
        assert (reads > 0, files.reads) == (True, 0)
