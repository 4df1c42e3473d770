from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from odradek.broker.request.time_slices import SLICE_SECONDS, ClientDisconnected, TimeSlices
from odradek.broker.testing.clock import ManualClock


class Peer:
    is_disconnected = False


class Work:
    """Steps of a millisecond each."""

    def __init__(self, clock: ManualClock, count: int) -> None:
        self.clock = clock
        self.count = count
        self.done = 0
        self.closed = False

    def steps(self) -> Generator[None, None, str]:
        try:
            while self.done < self.count:
                self.clock.advance(1)
                self.done += 1
                yield
            return "result"
        finally:
            self.closed = True


def test_a_slice_ends_when_its_time_is_over() -> None:
    clock = ManualClock()
    work = Work(clock, 100)

    assert TimeSlices(clock).advance(work.steps()) is None

    assert work.done == SLICE_SECONDS * 1000


def test_work_that_ends_within_its_slice_returns_its_result() -> None:
    clock = ManualClock()

    assert TimeSlices(clock).advance(Work(clock, 1).steps()) == ("result",)


async def test_the_rest_is_done_a_slice_at_a_time() -> None:
    clock = ManualClock()
    work, other = Work(clock, 100), Work(clock, 100)
    slices = TimeSlices(clock)

    results = await asyncio.gather(slices.finish(work.steps(), Peer()), slices.finish(other.steps(), None))

    assert results == ["result", "result"]


async def test_work_is_closed_when_its_peer_has_disconnected() -> None:
    clock, peer = ManualClock(), Peer()
    work = Work(clock, 1_000_000)
    task = asyncio.ensure_future(TimeSlices(clock).finish(work.steps(), peer))
    while work.done < 10:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0)

    peer.is_disconnected = True

    with pytest.raises(ClientDisconnected):
        await task
    assert work.closed
    assert work.done < 20


async def test_a_coroutine_runs_within_its_slice_and_waits_for_the_next() -> None:
    clock, peer = ManualClock(), Peer()
    time_slice = TimeSlices(clock).begin(peer)
    turns: list[int] = []
    asyncio.get_running_loop().call_soon(turns.append, 1)

    await time_slice.step()
    assert not turns
    clock.advance(2)
    await time_slice.step()
    assert turns

    peer.is_disconnected = True
    with pytest.raises(ClientDisconnected):
        await time_slice.step()


async def test_a_cancelled_request_passes_its_turn_on() -> None:
    clock = ManualClock()
    slices = TimeSlices(clock)
    first = asyncio.ensure_future(slices.finish(Work(clock, 1_000_000).steps(), None))
    second = asyncio.ensure_future(slices.finish(Work(clock, 10).steps(), None))
    await asyncio.sleep(0)

    first.cancel()

    assert await second == "result"
    assert first.cancelled()


async def test_rows_are_mapped_a_slice_at_a_time() -> None:
    clock, peer, seen = ManualClock(), Peer(), list[str]()
    time_slice = TimeSlices(clock).begin(peer)
    asyncio.get_running_loop().call_soon(seen.append, "other")

    def double(row: int) -> int:
        clock.advance(1)
        seen.append("row")
        return 2 * row

    assert await time_slice.map(double, range(10)) == [2 * row for row in range(10)]
    assert seen.index("other") == SLICE_SECONDS * 1000
    assert seen.count("row") == 10


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 3500])
async def test_rows_are_sorted(count: int) -> None:
    rows = [row * 7919 % (count + 1) for row in range(count)]

    assert await TimeSlices(ManualClock()).begin(Peer()).sort(rows) == sorted(rows)


async def test_others_run_while_rows_are_sorted() -> None:
    clock, seen = ManualClock(), list[str]()
    time_slice = TimeSlices(clock).begin(Peer())
    asyncio.get_running_loop().call_soon(seen.append, "other")

    class Row(int):
        def __lt__(self, other: int) -> bool:
            clock.advance(1)
            seen.append("compared")
            return int(self) < int(other)

    await time_slice.sort([Row(row) for row in range(2000)])

    assert "compared" in seen[seen.index("other") :]
