from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.log_changes import LogChanges
from odradek.broker.storage.disk.deletions import DeletionJob
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dirs import LogDirs
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.logs import TOPIC_ID, open_log_dir

CONFIG = LogConfig()


class CountedThreads(DiskThreads):
    jobs = 0

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> asyncio.Future[Any]:
        self.jobs += 1
        return super().run(function, *args, **kwargs)


@pytest.fixture
async def threads() -> AsyncIterator[CountedThreads]:
    opened = CountedThreads(asyncio.get_running_loop())
    yield opened
    await opened.close()


@pytest.fixture
async def log_dirs(tmp_path: Path, threads: CountedThreads) -> AsyncIterator[LogDirs]:
    log_dir = open_log_dir(tmp_path)
    yield LogDirs([log_dir])
    log_dir.close()


async def test_logs_of_one_turn_are_one_job(log_dirs: LogDirs, threads: CountedThreads) -> None:
    changes = LogChanges(log_dirs, threads)

    logs = await asyncio.gather(*(changes.create("t", index, TOPIC_ID, CONFIG) for index in range(20)))
    assert threads.jobs == 1
    later = await changes.create("t", 20, TOPIC_ID, CONFIG)

    assert threads.jobs == 2
    assert [log_dirs.logs["t", index] for index in range(21)] == [*logs, later]


async def test_logs_that_are_synced_have_a_job_each(log_dirs: LogDirs, threads: CountedThreads) -> None:
    changes = LogChanges(log_dirs, threads)

    await asyncio.gather(*(changes.create("t", index, TOPIC_ID, LogConfig(flush_messages=1)) for index in range(3)))

    assert threads.jobs == 3


async def test_deletions_of_one_turn_are_one_job(log_dirs: LogDirs, threads: CountedThreads) -> None:
    changes = LogChanges(log_dirs, threads)
    await asyncio.gather(*(changes.create("t", index, TOPIC_ID, CONFIG) for index in range(20)))
    threads.jobs = 0

    *jobs, missing = await asyncio.gather(
        *(changes.delete("t", index) for index in (*range(10), 99)), return_exceptions=True
    )

    assert threads.jobs == 1
    assert isinstance(missing, KafkaError)
    assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(index for _, index in log_dirs.logs) == list(range(10, 20))
    assert len({job for job in jobs if isinstance(job, DeletionJob)}) == 10


async def test_an_unexpected_error_of_a_job_is_raised_for_each_of_its_logs(
    log_dirs: LogDirs, threads: CountedThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: str, target: str) -> None:
        raise ValueError(f"{source} {target}")

    changes = LogChanges(log_dirs, threads)
    await asyncio.gather(*(changes.create("t", index, TOPIC_ID, CONFIG) for index in range(2)))
    monkeypatch.setattr(os, "rename", fail)

    errors = await asyncio.gather(*(changes.delete("t", index) for index in range(2)), return_exceptions=True)

    assert [type(error) for error in errors] == [ValueError, ValueError]


async def test_the_error_of_one_log_is_raised_for_it_alone(
    log_dirs: LogDirs, threads: CountedThreads, tmp_path: Path
) -> None:
    (tmp_path / "t-1" / "notes").mkdir(parents=True)
    changes = LogChanges(log_dirs, threads)

    first, second, third = await asyncio.gather(
        *(changes.create("t", index, TOPIC_ID, CONFIG) for index in range(3)), return_exceptions=True
    )

    assert isinstance(second, KafkaError)
    assert second.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [log_dirs.logs["t", 0], log_dirs.logs["t", 2]] == [first, third]


async def test_a_cancelled_creation_disturbs_no_other(log_dirs: LogDirs, threads: CountedThreads) -> None:
    changes = LogChanges(log_dirs, threads)
    cancelled, other = (asyncio.ensure_future(changes.create("t", index, TOPIC_ID, CONFIG)) for index in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()

    assert (await other) is log_dirs.logs["t", 1]
    assert cancelled.cancelled()
    assert ("t", 0) in log_dirs.logs


async def test_a_creation_after_the_end_of_the_threads_fails(log_dirs: LogDirs, threads: CountedThreads) -> None:
    changes = LogChanges(log_dirs, threads)
    await threads.close()

    with pytest.raises(RuntimeError):
        await changes.create("t", 0, TOPIC_ID, CONFIG)
