"""Compaction while the broker runs: each of log.cleaner.threads compacts one log after the other, then rests.

| step | where |
|---|---|
| the log that needs it most, its job, the swaps | a thread of the cleaner's own |
| keys and records | a process of low priority for each thread, started with its first job (`storage.compaction`) |
| expired segments of compacted logs (cleanup.policy=compact,delete) deleted, if not in progress | `retention_check` |
| nothing to do: log.cleaner.backoff.ms | |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.config.broker_config import PROPERTIES
from odradek.broker.config.property import attribute_name
from odradek.broker.maintenance.retention_check import RetentionCheck
from odradek.broker.storage.compaction.cleaner import Cleaner, CleanerSettings
from odradek.broker.storage.compaction.cleaner_process import CleanerProcess
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks

_LOG = StructuredLogger(__name__)

_DYNAMIC = (
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.max.bytes.per.second",
)


class CompactionRounds:
    """The cleaner of one broker. `start` once, on the loop; it ends with the tasks that it was started in.

    `dynamic` tells which properties were set at run time, as text; each round asks again.
    """

    def __init__(
        self,
        log_dirs: Sequence[LogDir],
        retention: RetentionCheck,
        clock: Clock,
        dynamic: Callable[[], Mapping[str, str]],
    ) -> None:
        self.cleaner = Cleaner(log_dirs, clock)
        self._retention = retention
        self._dynamic = dynamic

    def start(self, tasks: BackgroundTasks, config: BrokerConfig) -> None:
        if not config.log_cleaner_enable:
            return
        threads = max(config.log_cleaner_threads, 1)
        for index in range(threads):
            tasks.start(f"cleaner {index}", self._work(config, threads))

    async def _work(self, config: BrokerConfig, threads: int) -> None:
        worker = CleanerProcess()
        with ThreadPoolExecutor(1, thread_name_prefix="cleaner") as thread:
            try:
                while True:
                    effective = _effective(config, self._dynamic())
                    settings = CleanerSettings(
                        buffer_bytes=effective["log.cleaner.dedupe.buffer.size"] // threads,
                        load_factor=effective["log.cleaner.io.buffer.load.factor"],
                        bytes_per_second=effective["log.cleaner.io.max.bytes.per.second"] / threads,
                    )
                    if not self.cleaner.has_work() or not await self._round(worker, thread, settings):
                        await asyncio.sleep(effective["log.cleaner.backoff.ms"] / 1000)
            finally:
                worker.close()

    async def _round(self, worker: CleanerProcess, thread: ThreadPoolExecutor, settings: CleanerSettings) -> bool:
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(thread, self.cleaner.run_once, worker.clean, settings)
        try:
            has_compacted = await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.stop()
            await asyncio.wait({running})
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the other logs must go on being compacted
            _LOG.exception("round of compaction failed", error)
            return False
        finally:
            self.cleaner.report.dead_workers += worker.deaths
            worker.deaths = 0
        await self._retention.run(lambda log: log.config.is_compacted)
        return has_compacted


def _effective(config: BrokerConfig, dynamic: Mapping[str, str]) -> dict[str, Any]:
    """The properties of each round, as they hold now."""
    return {
        name: PROPERTIES[name].parse(dynamic[name]) if name in dynamic else getattr(config, attribute_name(name))
        for name in _DYNAMIC
    }
