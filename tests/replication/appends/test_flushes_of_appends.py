from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.log_dir import LogDir
from tests.replication.appends.appending import LARGE, Appending
from tests.storage.logs import values_of


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
