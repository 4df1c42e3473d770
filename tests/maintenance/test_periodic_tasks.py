from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.maintenance.periodic_tasks import PeriodicTasks
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.startup.machine import Machine
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log import Log
from odradek.broker.storage.names import RECOVERY_POINTS
from odradek.broker.tasks import BackgroundTasks
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.handlers.requests import batch, create, new_producer_id, produce
from tests.wire import Wire

SECOND, DAY = 1_000, 86_400_000


class Kept:
    """A broker whose clock stands still, with one topic, whose periodic tasks run only when a test calls them."""

    def __init__(self, broker: Broker, wire: Wire, clock: ManualClock) -> None:
        self.broker = broker
        self.wire = wire
        self.clock = clock
        self.periodic_tasks = broker.periodic_tasks

    @property
    def log(self) -> Log:
        return self.broker.services.partitions.get("t", 0).log


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    clock = ManualClock()
    async with Broker({"log.dirs": str(tmp_path)}, clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
        yield Kept(broker, wire, clock)


async def test_a_log_is_flushed_after_flush_ms(kept: Kept) -> None:
    await create(kept.wire, "t", flush_ms="5000")
    await produce(kept.wire, "t", batch(b"a"))

    await kept.periodic_tasks.flush_due()
    assert not kept.broker.services.partitions.get("t", 0).appender.is_busy
    kept.clock.advance(5 * SECOND)
    await kept.periodic_tasks.flush_due()
    assert kept.log.recovery_point == 1


async def test_a_rolled_segment_is_flushed(kept: Kept) -> None:
    await create(kept.wire, "t", segment_bytes="150")
    for value in (b"a" * 60, b"b" * 60):
        await produce(kept.wire, "t", batch(value))

    await kept.periodic_tasks.flush_due()
    assert kept.log.recovery_point == 1


async def test_a_topic_may_be_deleted_while_it_is_flushed(kept: Kept) -> None:
    for _ in range(20):
        await create(kept.wire, "t", flush_ms="0")
        await produce(kept.wire, "t", batch(b"a"))
        flushing = asyncio.create_task(kept.periodic_tasks.flush_due())

        await kept.wire.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 4)
        await flushing

    assert not kept.broker.failed.is_set()
    assert kept.broker.log_dir.failure.error is None


async def test_the_files_of_a_deleted_topic_are_deleted_after_file_delete_delay_ms(kept: Kept) -> None:
    await create(kept.wire, "t", file_delete_delay_ms="60000")
    await produce(kept.wire, "t", batch(b"a"))
    await kept.wire.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 4)

    def left() -> list[str]:
        return [path.name for path in kept.broker.log_dir.path.glob("t-0.*-delete")]

    assert len(left()) == 1
    kept.clock.advance(59 * SECOND)
    removing = kept.periodic_tasks.delete_due()
    assert removing is not None
    await removing
    assert len(left()) == 1
    kept.clock.advance(SECOND)
    removing = kept.periodic_tasks.delete_due()
    assert removing is not None
    await removing
    assert left() == []
    assert kept.periodic_tasks.delete_due() is None


async def test_idempotent_producers_expire(kept: Kept) -> None:
    await create(kept.wire, "t")
    producer_id = await new_producer_id(kept.wire)
    await produce(kept.wire, "t", batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0))

    kept.clock.advance(DAY // 2)
    await kept.periodic_tasks.expire_producers()
    assert len(kept.log.producers) == 1
    kept.clock.advance(DAY)
    await kept.periodic_tasks.expire_producers()
    assert len(kept.log.producers) == 0


async def test_checkpoints_have_the_offsets_of_the_logs(kept: Kept) -> None:
    await create(kept.wire, "t")
    await produce(kept.wire, "t", batch(b"a", b"b"))
    await kept.periodic_tasks.flush_all()
    kept.broker.log_dir.checkpoint()

    def offsets(name: str) -> list[str]:
        return (kept.broker.log_dir.path / name).read_text().splitlines()[2:]

    assert offsets("recovery-point-offset-checkpoint") == ["t 0 2"]
    assert offsets("replication-offset-checkpoint") == ["t 0 2"]


class SlowCheckpoints(OsFiles):
    """A disk that, once it `is_slow`, blocks writes of recovery points until `may_go` is set."""

    def __init__(self) -> None:
        self.is_slow = False
        self.has_begun = Event()
        self.may_go = Event()

    def rename(self, source: str, target: str) -> None:
        if self.is_slow and target.endswith(RECOVERY_POINTS):
            self.has_begun.set()
            assert self.may_go.wait(30)
        super().rename(source, target)


async def test_the_tasks_stop_after_a_running_checkpoint_is_written(tmp_path: Path) -> None:
    files = SlowCheckpoints()
    properties = {"log.dirs": str(tmp_path), "log.flush.offset.checkpoint.interval.ms": "1"}
    async with Broker({"log.dirs": str(tmp_path)}, machine=Machine(new_files=lambda: files)) as broker:
        files.is_slow = True
        tasks, threads = BackgroundTasks(lambda name, error: None), DiskThreads(asyncio.get_running_loop())
        config = CurrentConfig(BrokerConfig.load(None, properties))
        PeriodicTasks(broker.log_dirs, broker.services.partitions, threads, ManualClock(), config).start(tasks)
        await asyncio.to_thread(files.has_begun.wait)
        stopping = asyncio.ensure_future(tasks.stop())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not stopping.done()
        files.may_go.set()
        await stopping
        await threads.close()
