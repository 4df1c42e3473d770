from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_dir import LogDir
from tests.replication.appends.appending import LARGE, Appending
from tests.storage.logs import open_log_dir, values_of


async def test_with_flush_messages_an_append_counts_after_the_flush(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads, flush_messages=1)

    future = appending.append(b"a")
    assert isinstance(future, asyncio.Future)
    assert appending.reported == []

    await future
    assert appending.reported == [0]
    assert appending.log.recovery_point == 1


async def test_appends_during_a_flush_share_the_next_one(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads, flush_messages=1)

    futures = [appending.append(value) for value in (b"a", b"b", b"c", LARGE)]
    await asyncio.gather(*futures)  # type: ignore[arg-type]

    assert appending.reported == [0, 1, 2, 3]
    assert appending.log.recovery_point == 4
    assert values_of(appending.log) == [b"a", b"b", b"c", LARGE]


def block_until(condition: Callable[[], bool]) -> None:
    """Block the event loop until threads have made `condition` true."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("later", [b"d", LARGE], ids=["small", "large"])
async def test_an_append_behind_one_whose_flush_has_just_ended_counts_after_it(
    log_dir: LogDir, threads: DiskThreads, later: bytes
) -> None:
    appending = Appending(log_dir, threads, flush_messages=3)
    log = appending.log

    flushed = appending.append(b"a", b"b", b"c")
    block_until(lambda: log.recovery_point == 3)  # its callback on the event loop has not run
    behind = appending.append(later)
    block_until(lambda: log.log_end_offset == 4)
    assert appending.reported == []
    assert isinstance(flushed, asyncio.Future)
    assert isinstance(behind, asyncio.Future)
    await asyncio.gather(flushed, behind)

    assert appending.reported == [0, 3]


async def test_an_append_made_while_others_are_reported_counts_after_them(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    appending = Appending(log_dir, threads, flush_messages=2)
    reactions: list[AppendInfo | asyncio.Future[AppendInfo]] = []
    futures = [appending.append(b"a", b"b"), appending.append(b"c", b"d"), appending.append(b"e", b"f")]
    appending.on_reported[2] = lambda: reactions.append(appending.append(b"g"))

    await asyncio.gather(*futures)  # type: ignore[arg-type]
    (reaction,) = reactions
    assert isinstance(reaction, asyncio.Future)
    await reaction

    assert appending.reported == [0, 2, 4, 6]


async def test_a_flush_is_due_after_as_many_messages_as_configured(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads, flush_messages=3)

    assert isinstance(appending.append(b"a", b"b"), AppendInfo)
    flushed = appending.append(b"c")
    assert isinstance(flushed, asyncio.Future)
    await flushed

    assert appending.log.recovery_point == 3
    assert isinstance(appending.append(b"d"), AppendInfo)


async def test_drained_returns_at_once_without_appends(log_dir: LogDir, threads: DiskThreads) -> None:
    await Appending(log_dir, threads).appender.drained()


class ShortOfMemory(OsFiles):
    """The real file system; while it `is_short`, no file can be opened."""

    is_short = False

    def open(self, path: str, *, create: bool = False) -> int:
        if self.is_short:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return super().open(path, create=create)


@pytest.fixture
def files() -> ShortOfMemory:
    return ShortOfMemory()


@pytest.fixture
def short_dir(tmp_path: Path, files: ShortOfMemory) -> Iterator[LogDir]:
    opened = open_log_dir(tmp_path / "short", files=files, max_open_files=1)  # every use of a file opens it
    yield opened
    files.is_short = False
    opened.close()


@pytest.fixture
def has_failed(caplog: pytest.LogCaptureFixture) -> Callable[[], Awaitable[None]]:
    """Waits until a transient error was logged."""

    async def wait() -> None:
        async with asyncio.timeout(30):
            while "tried again" not in caplog.text:  # noqa: ASYNC110 - a thread logs it
                await asyncio.sleep(0.01)

    return wait


async def test_an_append_waits_for_a_flush_that_fails_for_a_moment(
    short_dir: LogDir, files: ShortOfMemory, threads: DiskThreads, has_failed: Callable[[], Awaitable[None]]
) -> None:
    """The next flush would commit it: reported as failed, it would be in the log, but not in a coordinator's memory."""
    appending = Appending(short_dir, threads, flush_messages=3)
    appending.append(b"a", b"b")

    files.is_short = True
    appending.appender.flush_messages = 1
    futures = [appending.append(b"c")]
    await has_failed()
    assert appending.reported == [0]
    files.is_short = False
    futures.append(appending.append(b"d"))
    await asyncio.gather(*futures)  # type: ignore[arg-type]

    assert appending.reported == [0, 2, 3]
    assert appending.log.recovery_point == 4


async def test_to_drain_ends_the_wait_for_a_flush_that_still_fails(
    short_dir: LogDir, files: ShortOfMemory, threads: DiskThreads, has_failed: Callable[[], Awaitable[None]]
) -> None:
    appending = Appending(short_dir, threads)
    appending.append(b"a")
    files.is_short = True
    appending.appender.flush_messages = 1
    second = appending.append(b"b")
    await has_failed()

    await appending.appender.drained()

    assert isinstance(second, asyncio.Future)
    with pytest.raises(TransientDiskError):
        await second
    assert appending.reported == [0]


async def test_the_end_of_the_log_counts_after_a_flush_that_failed_for_a_moment(
    short_dir: LogDir, files: ShortOfMemory, threads: DiskThreads, has_failed: Callable[[], Awaitable[None]]
) -> None:
    appending = Appending(short_dir, threads)
    appending.append(b"a")
    appending.appender.flush_messages = 1
    counted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    files.is_short = True

    appending.appender.count_end(counted.set_result)
    await has_failed()
    files.is_short = False

    assert await counted == 1


@pytest.mark.parametrize("how", ["another epoch", "resigned"])
async def test_no_end_counts_in_an_epoch_that_is_over(
    short_dir: LogDir, files: ShortOfMemory, threads: DiskThreads, has_failed: Callable[[], Awaitable[None]], how: str
) -> None:
    appending = Appending(short_dir, threads)
    appending.append(b"a")
    appending.appender.flush_messages = 1
    counted: list[int] = []
    files.is_short = True

    appending.appender.count_end(counted.append)
    await has_failed()
    if how == "resigned":
        appending.appender.resign()
    else:
        appending.appender.leader_epoch = 1
    files.is_short = False
    later: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    threads.retry_later(lambda: threads.retry_later(lambda: later.set_result(None)))
    await later

    assert counted == []
