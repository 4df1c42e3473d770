from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from threading import Event
from typing import Any

import pytest

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.writer_thread import WriterThread


@pytest.fixture
async def writer() -> AsyncIterator[WriterThread]:
    made = WriterThread(asyncio.get_running_loop(), "writer")
    yield made
    await made.close()


async def test_work_and_the_reports_of_its_end_are_in_order(writer: WriterThread) -> None:
    done: list[int] = []
    reported: list[int] = []
    for number in range(100):
        writer.submit(partial(done.append, number), lambda *_, number=number: reported.append(number))
    assert writer.waiting == 100

    await writer.run(int)

    assert done == reported == list(range(100))
    assert writer.waiting == 0


async def test_an_exception_is_reported_and_the_thread_continues(writer: WriterThread) -> None:
    with pytest.raises(ZeroDivisionError):
        await writer.run(lambda: 1 // 0)

    assert await writer.run(lambda: 1) == 1


async def test_a_failing_callback_prevents_no_other_report(writer: WriterThread) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    def fail(result: int, _: object) -> None:
        raise RuntimeError(f"reported {result}")

    writer.submit(int, fail)

    assert await writer.run(lambda: 1) == 1
    assert isinstance(complaints[0]["exception"], RuntimeError)


async def test_a_buffer_is_released_when_the_end_is_reported(writer: WriterThread) -> None:
    buffer = bytearray(8)
    await writer.run(partial(len, memoryview(buffer)))
    await writer.run(int)

    buffer.append(0)  # raises BufferError while a view of it exists


async def test_work_whose_caller_was_cancelled_is_done(writer: WriterThread) -> None:
    go_on = Event()
    waiting = asyncio.ensure_future(writer.run(go_on.wait))
    done: list[int] = []
    writer.submit(partial(done.append, 1), lambda *_: None)
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.wait({waiting})
    go_on.set()
    await writer.close()

    assert done == [1]


async def test_a_blocked_writer_blocks_no_other(threads: DiskThreads) -> None:
    go_on = Event()
    busy = threads.least_busy_writer()
    held_up = asyncio.ensure_future(busy.run(go_on.wait))
    await asyncio.sleep(0)

    assert await threads.least_busy_writer().run(lambda: 1) == 1

    assert not held_up.done()
    go_on.set()
    assert await held_up
