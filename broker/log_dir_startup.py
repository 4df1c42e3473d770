"""The log directories of a broker that starts: made as its configuration says, and opened, with recovery, on a thread.

After a crash that may take long: its progress is logged, and it ends early if the start is cancelled.
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
from odradek.broker.replication.disk_threads import DiskThreads
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_TOLD_EVERY = 1.0  # seconds


class StartGivenUpError(Exception):
    """Recovery was interrupted because the start was cancelled; the next start begins it again."""


def make_log_dirs(
    config: BrokerConfig,
    *,
    read_only: bool,
    max_open_files: int,
    clock: Clock,
    randomness: Randomness,
    metrics: Metrics,
    on_failure: Callable[[LogDirs, int, OSError], None],
) -> LogDirs:
    """Make what log.dirs names; nothing is opened yet.

    Each keeps up to `max_open_files` files open that nobody uses. When one fails later, `on_failure` gets its index, on
    the event loop. Raises OSError if one that is to be read only is not there.
    """
    loop = asyncio.get_running_loop()

    def failed(index: int, error: OSError) -> None:  # on whatever thread saw it
        loop.call_soon_threadsafe(on_failure, log_dirs, index, error)

    directories = []
    for index, path in enumerate(config.log_dirs):
        files = ReadOnlyFiles() if read_only else OsFiles()
        if read_only:
            files.scan(path)  # raises if it is not there; a log directory that is opened is made
        directories.append(
            LogDir(
                path,
                clock=clock,
                randomness=randomness,
                files=files,
                max_open_files=max_open_files,
                on_failure=partial(failed, index),
                on_flush=metrics.log_flush.note,
            )
        )
    log_dirs = LogDirs(directories)
    return log_dirs


async def open_log_dirs(log_dirs: LogDirs, config: BrokerConfig, threads: DiskThreads, clock: Clock) -> None:
    """Open and recover them. If this is cancelled, recovery ends at its next batch, and they are closed.

    Raises `LogDirRefusedError` or `OSError`.
    """
    defaults = log_config(config)
    given_up = False
    told = clock.monotonic()

    def progress(topic: str, partition: int, segment: int, done: int, total: int) -> None:  # after each batch
        nonlocal told
        if given_up:
            raise StartGivenUpError
        if clock.monotonic() - told >= _TOLD_EVERY:
            told = clock.monotonic()
            _LOG.info("recovering", topic=topic, partition=partition, segment=segment, done=done, total=total)

    opening = threads.run(
        log_dirs.open,
        lambda _: defaults,
        node_id=config.node_id,
        cluster_id=config.cluster_id,
        progress=progress,
    )
    try:
        await asyncio.shield(opening)
    except asyncio.CancelledError:
        given_up = True
        await asyncio.wait({opening})
        if opening.exception() is None:
            await threads.run(log_dirs.close)
        raise
