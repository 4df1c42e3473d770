"""What a broker does for its logs at intervals, without being asked.

| work | every | where |
|---|---|---|
| high watermarks written | replica.high.watermark.checkpoint.interval.ms | thread |
| recovery points written | log.flush.offset.checkpoint.interval.ms | thread |
| log start offsets written | log.flush.start.offset.checkpoint.interval.ms | thread |
| logs flushed, if due by flush.ms or a rolled segment | 1 s, or log.flush.scheduler.interval.ms if less | thread |
| expired segments deleted | log.retention.check.interval.ms | thread |
| compacted topics compacted | log.cleaner.backoff.ms | process, and threads of its own |
| files of deleted segments and partitions removed, when their time has come | 1 s | thread |
| idempotent producers that have not written for long forgotten | 10 min | loop; of a log with many, thread |

Differs from Kafka: flush.ms of a topic holds whether or not log.flush.scheduler.interval.ms is set. In Kafka that
property's default, never, makes the topic's setting idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from odradek.broker.clock import Clock
from odradek.broker.maintenance.cleaner_threads import CleanerThreads
from odradek.broker.maintenance.retention_check import RetentionCheck
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.replication.disk_threads import DiskThreads
from odradek.broker.replication.partitions import Partitions
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError

_FLUSH_CHECK_MS = 1_000
_DELETION_CHECK_MS = 1_000
_PRODUCER_CHECK_MS = 600_000
_SLICE = 200
"""Partitions that are looked at in one turn of the loop: half a millisecond."""


class PeriodicTasks:
    """The chores of the log directories.

    Chores that write to the disk have ended when the tasks that they were started in have stopped, except for a flush:
    a log that is closed waits for it.
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
        """Begin, until `tasks` are stopped."""
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
        tasks.every("producer expiration", _PRODUCER_CHECK_MS, self.forget_producers)

    async def flush_due(self) -> None:
        """Flush the logs that should be by now; those of a log directory that is offline are passed over.

        A disk that fails under a flush has been logged by then. Raises what else a flush does.

        Looking at thousands of partitions takes milliseconds, so requests have their turns between slices of them.
        """
        flushes = []
        for number, partition in enumerate(tuple(self._partitions), 1):
            if not partition.offline and (flush := partition.flush_if_due()) is not None:
                flushes.append(asyncio.shield(flush))  # a flush ends, whoever waits
            if not number % _SLICE:
                await asyncio.sleep(0)
        for result in await asyncio.gather(*flushes, return_exceptions=True):
            is_logged = isinstance(result, KafkaError) and result.code is ErrorCode.KAFKA_STORAGE_ERROR
            if isinstance(result, BaseException) and not is_logged:
                raise result

    async def flush_all(self) -> None:
        """Flush everything; raises KafkaError if the disk fails."""
        await asyncio.gather(*(self._threads.run(log.flush) for log in self._log_dirs.unsynced()))

    def delete_due(self) -> Awaitable[object] | None:
        """Remove the files whose time has come."""
        return self._threads.run_to_end(self._log_dirs.delete_due) if self._log_dirs.has_deletions else None

    async def forget_producers(self) -> None:
        """Forget idempotent producers that have not written for producer.id.expiration.ms, with turns as above."""
        for number, partition in enumerate(tuple(self._partitions), 1):
            await partition.forget_expired_producers()
            if not number % _SLICE:
                await asyncio.sleep(0)
