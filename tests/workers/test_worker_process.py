"""One worker of a supervisor whose processes cannot be started."""

from __future__ import annotations

import asyncio
import resource

import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.workers.worker_process import WorkerProcess


async def test_without_descriptors_it_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    worker = WorkerProcess(1, [], SystemClock())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        keeping = asyncio.get_running_loop().create_task(worker.keep())
        async with asyncio.timeout(20):
            while caplog.text.count("worker cannot be started") < 2:  # noqa: ASYNC110 - two attempts
                await asyncio.sleep(0.01)
        worker.stop()
        assert await keeping == 127
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "Too many open files" in caplog.text
