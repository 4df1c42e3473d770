"""The periodic tasks on the logs of a broker.

| task | interval | where |
|---|---|---|
| write high watermarks | replica.high.watermark.checkpoint.interval.ms | thread |
| write recovery points | log.flush.offset.checkpoint.interval.ms | thread |
| write log start offsets | log.flush.start.offset.checkpoint.interval.ms | thread |
| flush logs that are due by flush.ms, or have rolled a segment | 1 s, or log.flush.scheduler.interval.ms if less |
thread |
| delete expired segments (`retention_check`) | log.retention.check.interval.ms | thread |
| compact logs (`cleaner_threads`) | log.cleaner.backoff.ms | own processes and threads |
| remove files of deleted segments and partitions whose delay is over | 1 s | thread |
| expire idempotent producers | 10 min | loop; for a log with many producers, thread |

Differs from Kafka: flush.ms of a topic holds even if log.flush.scheduler.interval.ms is not set. In Kafka the default
of that property, never, makes the topic's setting ineffective.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from odradek.broker.clock import Clock
from odradek.broker.maintenance.cleaner_threads import CleanerThreads
from odradek.broker.maintenance.producer_expiration import remove_expired_producers
from odradek.broker.maintenance.retention_check import RetentionCheck
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError

_FLUSH_CHECK_MS = 1_000
_DELETION_CHECK_MS = 1_000
_PRODUCER_CHECK_MS = 600_000
_SLICE = 200
"""The number of partitions handled in one turn of the loop: half a millisecond."""


class PeriodicTasks:
    """The periodic tasks of one broker.

    When the `BackgroundTasks` that they were started in have stopped, all writes to the disk have ended, except a
    flush: closing the log waits for it.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        partitions: Partitions,
        threads: DiskThreads,
        clock: Clock,
        config: CurrentConfig,
    ) -> None:
        self._log_dirs = log_dirs
        self._partitions = partitions
        self._threads = threads
        self.retention = RetentionCheck(log_dirs, partitions, threads)
        self.compaction = CleanerThreads(log_dirs.directories, self.retention, clock, config)
        self._config = config

    def start(self, tasks: BackgroundTasks) -> None:
        """Start all tasks; they run until `tasks` are stopped."""
        config, log_dirs, run = self._config.broker, self._log_dirs, self._threads.run_to_end
        tasks.every(
            "high watermark checkpoint",
            config.replica_high_watermark_checkpoint_interval_ms,
            lambda: run(log_dirs.checkpoint_high_watermarks),
        )
        tasks.every(
            "recovery point checkpoint",
            config.log_flush_offset_checkpoint_interval_ms,
            lambda: run(log_dirs.checkpoint_recovery_points),
        )
        tasks.every(
            "log start offset checkpoint",
            config.log_flush_start_offset_checkpoint_interval_ms,
            lambda: run(log_dirs.checkpoint_log_start_offsets),
        )
        tasks.every("flush", min(_FLUSH_CHECK_MS, config.log_flush_scheduler_interval_ms), self.flush_due)
        tasks.every(
            "retention",
            config.log_retention_check_interval_ms,
            self.retention.run,
            first_ms=config.log_initial_task_delay_ms,
        )
        self.compaction.start(tasks)
        tasks.every("file deletion", _DELETION_CHECK_MS, self.delete_due)
        tasks.every("producer expiration", _PRODUCER_CHECK_MS, self.expire_producers)

    async def flush_due(self) -> None:
        """Flush the logs that are due, except those of an offline log directory.

        A failure of the disk is logged already; any other error of a flush is raised. Checking thousands of partitions
        takes milliseconds, so requests run between slices of them.
        """
        flushes = []
        for number, partition in enumerate(tuple(self._partitions), 1):
            if not partition.offline and (flush := partition.appender.flush_if_due()) is not None:
                flushes.append(flush)
            if not number % _SLICE:
                await asyncio.sleep(0)
        if flushes:
            await asyncio.wait(flushes)  # a cancelled caller does not interrupt them
        for error in [flush.exception() for flush in flushes]:
            is_logged = isinstance(error, KafkaError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR
            if error is not None and not is_logged:
                raise error

    async def flush_all(self) -> None:
        """Flush all logs. Raises KafkaError if the disk fails."""
        await asyncio.gather(*(self._threads.run(log.flush) for log in self._log_dirs.unsynced()))

    def delete_due(self) -> Awaitable[object] | None:
        """Remove the files whose delay is over."""
        return self._threads.run_to_end(self._log_dirs.delete_due) if self._log_dirs.has_deletions else None

    async def expire_producers(self) -> None:
        """Expire producers that have not written for producer.id.expiration.ms; requests run between slices."""
        for number, partition in enumerate(tuple(self._partitions), 1):
            await remove_expired_producers(partition)
            if not number % _SLICE:
                await asyncio.sleep(0)
