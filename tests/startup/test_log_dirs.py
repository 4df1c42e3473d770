from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.randomness import SeededRandomness
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.startup.log_dirs import make_log_dirs, open_log_dirs
from odradek.broker.testing.clock import ManualClock
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire


class HurriedClock(ManualClock):
    """A clock that advances a quarter of a second with each reading."""

    def monotonic(self) -> float:
        self.advance(250)
        return super().monotonic()


async def test_recovery_logs_its_progress_once_a_second(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    properties = {"log.dirs": str(tmp_path)}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        for _ in range(20):
            await produce(wire, "t", batch(b"value"))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").unlink()

    caplog.set_level("INFO")
    config, clock, threads = (
        BrokerConfig.load(None, properties),
        HurriedClock(),
        DiskThreads(asyncio.get_running_loop()),
    )
    log_dirs = make_log_dirs(
        config,
        read_only=False,
        max_open_files=100,
        clock=clock,
        randomness=SeededRandomness(1),
        metrics=Metrics(),
        on_failure=lambda log_dirs, index, error: None,
    )
    await open_log_dirs(log_dirs, config, threads, clock, None)
    await threads.run(log_dirs.close)
    await threads.close()
    logged = [message for message in caplog.messages if message.startswith("recovering topic=t ")]
    assert 2 <= len(logged) <= 6
