"""The log directories of a starting broker: created from its configuration, and opened, with recovery, on a thread.

Recovery after a crash may take long. Its progress is logged, and it ends early if the start is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.config.topic_config import log_config
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.randomness import Randomness
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.startup.worker_directories import check_workers
from odradek.broker.storage.disk.files import Files, OsFiles
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import outcome_of

_LOG = StructuredLogger(__name__)

_LOG_PROGRESS_SECONDS = 1.0


class StartCancelledError(Exception):
    """Recovery was interrupted because the start was cancelled; the next start repeats it."""


def make_log_dirs(
    config: BrokerConfig,
    *,
    read_only: bool,
    new_files: Callable[[], Files] = OsFiles,
    max_open_files: int,
    clock: Clock,
    randomness: Randomness,
    metrics: Metrics,
    on_failure: Callable[[LogDirs, int, OSError], None],
) -> LogDirs:
    """Create the directories in log.dirs as objects; nothing is opened yet.

    Each keeps up to `max_open_files` unused files open. When one fails later, `on_failure` is called with its index, on
    the event loop. Raises OSError if a directory of a read-only broker does not exist, and `LogDirRefusedError` for any
    other while the partitions of workers are not where `num.workers` has them.
    """
    loop = asyncio.get_running_loop()

    def failed(index: int, error: OSError) -> None:  # called on any thread
        loop.call_soon_threadsafe(on_failure, log_dirs, index, error)

    directories = []
    for index, path in enumerate(config.log_dirs):
        files = ReadOnlyFiles() if read_only else new_files()
        if read_only:
            files.scan(path)  # raises if it does not exist; opening it would create it
        else:
            check_workers(path, config.num_workers, files)
        directories.append(
            LogDir(
                path,
                clock=clock,
                randomness=randomness,
                files=files,
                max_open_files=max_open_files,
                on_failure=partial(failed, index),
                on_flush=metrics.log_flush.record,
            )
        )
    log_dirs = LogDirs(directories)
    return log_dirs


async def open_log_dirs(
    log_dirs: LogDirs, config: BrokerConfig, threads: DiskThreads, clock: Clock, cluster_id: str | None
) -> None:
    """Open and recover them; `cluster_id` must be theirs, and new ones get it.

    On cancellation, recovery ends at its next batch, and they are closed. Raises `LogDirRefusedError` or `OSError`.
    """
    defaults = log_config(config)
    is_cancelled = False
    logged_at = clock.monotonic()

    def progress(topic: str, partition: int, segment: int, done: int, total: int) -> None:  # after each batch
        nonlocal logged_at
        if is_cancelled:
            raise StartCancelledError
        if clock.monotonic() - logged_at >= _LOG_PROGRESS_SECONDS:
            logged_at = clock.monotonic()
            _LOG.info("recovering", topic=topic, partition=partition, segment=segment, done=done, total=total)

    opening = threads.run(
        log_dirs.open,
        lambda _: defaults,
        node_id=config.node_id,
        cluster_id=cluster_id,
        progress=progress,
    )
    try:
        await outcome_of(opening)
    except asyncio.CancelledError:
        is_cancelled = True
        await asyncio.wait({opening})
        if opening.exception() is None:
            await threads.run(log_dirs.close)
        raise
