"""The loops that run compaction: each of log.cleaner.threads compacts one log after another.

| step | where |
|---|---|
| choose the log that needs it most, prepare its job, swap the new segments in | a thread of each loop |
| read keys, write records | a process of low priority for each loop, started with the first job (`storage.compaction`)
|
| delete expired segments of compacted logs (cleanup.policy=compact,delete) that are not being compacted |
`retention_check` |
| without a log that needs it: sleep log.cleaner.backoff.ms | |
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from odradek.broker.clock import Clock
from odradek.broker.maintenance.retention_check import RetentionCheck
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.storage.compaction.cleaner import Cleaner, CleanerSettings
from odradek.broker.storage.compaction.cleaner_process import CleanerProcess
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks, outcome_of
from odradek.broker.waiting import pause

_LOG = StructuredLogger(__name__)


class CleanerThreads:
    """The compaction of one broker. Call `start` once, on the event loop; it ends with its tasks.

    Each round reads its properties from `config` again.
    """

    def __init__(
        self,
        log_dirs: Sequence[LogDir],
        retention: RetentionCheck,
        clock: Clock,
        config: CurrentConfig,
    ) -> None:
        self.cleaner = Cleaner(log_dirs, clock)
        self._retention = retention
        self._clock = clock
        self._config = config
        self._threads = max(config.broker.log_cleaner_threads, 1)

    def start(self, tasks: BackgroundTasks) -> None:
        if self._config.broker.log_cleaner_enable:
            for index in range(self._threads):
                tasks.start(f"cleaner {index}", self._work())

    @property
    def settings(self) -> CleanerSettings:
        """The limits of one thread in a round that begins now."""
        config = self._config.broker
        return CleanerSettings(
            buffer_bytes=config.log_cleaner_dedupe_buffer_size // self._threads,
            load_factor=config.log_cleaner_io_buffer_load_factor,
            bytes_per_second=config.log_cleaner_io_max_bytes_per_second / self._threads,
        )

    @property
    def backoff_seconds(self) -> float:
        """The length of a pause that begins now."""
        return self._config.broker.log_cleaner_backoff_ms / 1000

    async def _work(self) -> None:
        worker = CleanerProcess()
        with ThreadPoolExecutor(1, thread_name_prefix="cleaner") as thread:
            try:
                while True:
                    if not self.cleaner.has_work() or not await self._round(worker, thread, self.settings):
                        await pause(self._clock, self.backoff_seconds)
            finally:
                worker.close()

    async def _round(self, worker: CleanerProcess, thread: ThreadPoolExecutor, settings: CleanerSettings) -> bool:
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(thread, self.cleaner.run_once, worker.clean, settings)
        try:
            has_compacted = await outcome_of(running)
        except asyncio.CancelledError:
            worker.stop()
            await asyncio.wait({running})
            raise
        except Exception as error:  # noqa: BLE001 - the other logs must still be compacted
            _LOG.exception("round of compaction failed", error)
            return False
        finally:
            self.cleaner.report.dead_workers += worker.deaths
            worker.deaths = 0
        await self._retention.run(lambda log: log.config.is_compacted)
        return has_compacted
