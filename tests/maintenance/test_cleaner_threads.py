from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import CleanerSettings
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.handlers import configs
from tests.handlers.configs import set_to
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.wire import Wire

TOPIC = {
    "cleanup_policy": "compact",
    "segment_bytes": "150",
    "min_cleanable_dirty_ratio": "0.1",
    "max_compaction_lag_ms": "3600000",  # exceeded: otherwise a worker makes little progress on busy processors
}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with Broker({"log.dirs": str(tmp_path), "log.cleaner.backoff.ms": "1"}) as broker:
        yield broker


async def fill(broker: Broker, name: str = "t", count: int = 8) -> None:
    async with Wire("127.0.0.1", broker.port) as wire:
        await create(wire, name, **TOPIC)
        for index in range(count):
            await produce(wire, name, batch(b"%d" % index))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - a turn of the loop, not a pause
        await asyncio.sleep(0)


@pytest.mark.process
async def test_a_compacted_topic_is_compacted_while_the_broker_runs(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await fill(broker)
        log = broker.services.partitions.get("t", 0).log
        end = log.active_segment.base_offset
        await until(lambda: any(f" to {end}: " in record.getMessage() for record in caplog.records))
    async with Wire("127.0.0.1", broker.port) as wire:
        first = values_in(await fetch(wire, "t", 0))
    assert first == [b"%d" % (end - 1)]  # one key, so that one record remains
    assert log.cleaned_offset == end
    cleaner = broker.periodic_tasks.compaction.cleaner
    assert cleaner.report.last.seconds > 0
    assert cleaner.uncleanable(broker.log_dir) == (0, 0)
    checkpoint = (broker.log_dir.path / "cleaner-offset-checkpoint").read_text()
    assert f"t 0 {end}\n" in checkpoint


@pytest.mark.process
async def test_a_broker_stops_in_the_middle_of_compaction(tmp_path: Path) -> None:
    slow = {"log.dirs": str(tmp_path), "log.cleaner.backoff.ms": "1", "log.cleaner.io.max.bytes.per.second": "1"}
    async with Broker(slow) as broker:
        await fill(broker)
        await until(lambda: broker.services.partitions.get("t", 0).log.cleaning.is_in_progress)
    async with Broker({"log.dirs": str(tmp_path), "log.cleaner.enable": "false"}) as broker:
        assert broker.log_dir.was_clean
        assert broker.services.partitions.get("t", 0).log.log_end_offset == 8


def unfinished(path: Path) -> list[Path]:
    return list(path.glob("*-?/*.cleaned"))


def work_of(broker: Broker, name: str) -> CleaningState:
    return broker.services.partitions.get(name, 0).log.cleaning


@pytest.mark.process
@pytest.mark.parametrize("threads", [1, 2])
async def test_topics_that_are_deleted_and_created_again_in_the_middle_of_compaction(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, threads: int
) -> None:
    slow = {
        "log.dirs": str(tmp_path),
        "log.cleaner.backoff.ms": "1",
        "log.cleaner.io.max.bytes.per.second": "1",
        "log.cleaner.threads": str(threads),
    }
    names = ["a", "b"][:threads]
    async with Broker(slow) as broker, Wire("127.0.0.1", broker.port) as wire:
        for partitions in (1, 2, 1):
            for name in names:
                await create(wire, name, partitions, **TOPIC)
                for index in range(8):
                    await produce(wire, name, batch(b"%d" % index))
            for name in names:
                await until(lambda: work_of(broker, name).is_in_progress)  # noqa: B023 - called at once
            for name in names:
                await wire.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), 5)
        assert not broker.failed.is_set()
    assert unfinished(tmp_path) == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.process
async def test_compaction_of_a_log_ends_when_its_policy_changes(tmp_path: Path) -> None:
    slow = {"log.dirs": str(tmp_path), "log.cleaner.backoff.ms": "1", "log.cleaner.io.max.bytes.per.second": "1"}
    async with Broker(slow) as broker:
        await fill(broker)
        work = work_of(broker, "t")
        await until(lambda: work.is_in_progress)
        async with Wire("127.0.0.1", broker.port) as wire:
            await set_to(wire, configs.TOPIC, "t", cleanup_policy="delete", retention_ms="-1")
            await until(lambda: not work.is_in_progress)
            assert values_in(await fetch(wire, "t", 0))[0] == b"0"


async def test_limits_of_compaction_that_are_set_at_run_time_hold_from_the_next_round_on(tmp_path: Path) -> None:
    async with Broker({"log.dirs": str(tmp_path), "log.cleaner.threads": "2"}) as broker:
        async with Wire("127.0.0.1", broker.port) as wire:
            await set_to(
                wire,
                configs.BROKER,
                "",
                log_cleaner_dedupe_buffer_size="4000000",
                log_cleaner_io_buffer_load_factor="0.5",
                log_cleaner_io_max_bytes_per_second="3000",
                log_cleaner_backoff_ms="500",
            )
        assert broker.periodic_tasks.compaction.backoff_seconds == 0.5
        assert broker.periodic_tasks.compaction.settings == CleanerSettings(
            buffer_bytes=2_000_000, load_factor=0.5, bytes_per_second=1500.0
        )


async def test_nothing_is_compacted_if_the_cleaner_is_disabled(tmp_path: Path) -> None:
    off = {"log.dirs": str(tmp_path), "log.cleaner.enable": "false", "log.cleaner.backoff.ms": "0"}
    async with Broker(off) as broker:
        await fill(broker)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("cleaner")]


@pytest.mark.process
async def test_retention_deletes_segments_of_a_log_with_both_policies(tmp_path: Path) -> None:
    async with Broker({"log.dirs": str(tmp_path), "log.cleaner.backoff.ms": "1"}) as broker:
        async with Wire("127.0.0.1", broker.port) as wire:
            # The timestamps of the records are of 2023, long before the broker's clock.
            await create(wire, "t", **{**TOPIC, "cleanup_policy": "compact,delete", "retention_ms": "1000"})
            for index in range(8):
                await produce(wire, "t", batch(b"%d" % index))
        log = broker.services.partitions.get("t", 0).log
        await until(lambda: log.size_bytes == 0)
        assert (log.log_start_offset, log.log_end_offset) == (8, 8)
