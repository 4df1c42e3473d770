from __future__ import annotations

import asyncio
import gc

from odradek.broker.clock import SystemClock
from odradek.broker.replication.partition_changes import PartitionChanges
from odradek.broker.tasks import BackgroundTasks


async def test_changes_of_a_broker_that_stops_at_once_are_cancelled() -> None:
    failed: list[str] = []
    tasks = BackgroundTasks(lambda name, _: failed.append(name))
    changes = PartitionChanges(tasks, SystemClock())
    ended: list[str] = []

    async def change() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("change")

    changes.run([change])
    await tasks.stop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()  # warns of a coroutine that was never awaited, and warnings are errors

    assert ended == ["change"]
    assert failed == []
