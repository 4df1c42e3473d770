from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.testing.deadlines import Deadline, Deadlines


class Timed:
    """Deadlines that fire only when a test says so, and the names of those that fired."""

    def __init__(self) -> None:
        self.fired: list[str] = []
        self.deadlines = Deadlines(asyncio.get_running_loop(), lambda: 0.0)
        self.deadlines.hold()

    def add(self, when: float, name: str, then: Callable[[], object] | None = None) -> Deadline:
        def fire(name: str) -> None:
            self.fired.append(name)
            if then is not None:
                then()

        return self.deadlines.add(when, fire, (name,))


@pytest.fixture
async def timed() -> Timed:
    return Timed()


async def test_what_is_due_fires_in_the_order_of_the_deadlines_and_else_of_setting(timed: Timed) -> None:
    for when, name in [(3.0, "d"), (1.0, "a"), (2.0, "b"), (2.0, "c"), (4.0, "e")]:
        timed.add(when, name)

    timed.deadlines.fire(3.0)

    assert timed.fired == ["a", "b", "c", "d"]
    assert timed.deadlines.first() == 4.0


async def test_a_deadline_set_meanwhile_for_now_waits_for_the_next_time(timed: Timed) -> None:
    timed.add(1.0, "a", then=lambda: timed.add(1.0, "b"))

    timed.deadlines.fire(1.0)
    assert timed.fired == ["a"]
    timed.deadlines.fire(1.0)

    assert timed.fired == ["a", "b"]


async def test_a_deadline_may_cancel_one_that_is_due_at_the_same_time(timed: Timed) -> None:
    second: list[Deadline] = []
    timed.add(1.0, "a", then=lambda: [each.cancel() for each in second])
    second.append(timed.add(1.0, "b"))

    timed.deadlines.fire(1.0)

    assert timed.fired == ["a"]
    assert timed.deadlines.first() is None


async def test_cancelling_after_the_call_or_twice_does_nothing(timed: Timed) -> None:
    first, second = timed.add(1.0, "a"), timed.add(2.0, "b")
    timed.deadlines.fire(1.0)
    for _ in range(2):
        first.cancel()
        second.cancel()

    assert timed.deadlines.first() is None
    timed.add(3.0, "c")
    timed.deadlines.fire(3.0)
    assert timed.fired == ["a", "c"]


async def test_many_cancelled_deadlines_leave_the_others_in_order(timed: Timed) -> None:
    made = [timed.add(float(1000 - number), str(1000 - number)) for number in range(1000)]
    for deadline in made[:-3]:
        deadline.cancel()

    timed.deadlines.fire(1000.0)

    assert timed.fired == ["1", "2", "3"]


async def test_an_error_goes_to_the_handler_of_the_loop_and_the_next_deadline_fires(timed: Timed) -> None:
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    timed.deadlines.add(1.0, int, ("no number",))
    timed.add(1.0, "b")

    timed.deadlines.fire(1.0)

    assert timed.fired == ["b"]
    assert isinstance(errors[0]["exception"], ValueError)


async def test_real_time_fires_in_order_also_what_is_set_later_for_earlier() -> None:
    loop = asyncio.get_running_loop()
    deadlines, fired, done = Deadlines(loop, loop.time), [], asyncio.Event()
    now = loop.time()
    deadlines.add(now + 0.002, done.set, ())
    for number in (2, 1, 0):
        deadlines.add(now + number / 10_000, fired.append, (number,))

    await asyncio.wait_for(done.wait(), 60)

    assert fired == [0, 1, 2]


async def test_nothing_fires_by_real_time_while_held() -> None:
    loop = asyncio.get_running_loop()
    deadlines, fired = Deadlines(loop, loop.time), asyncio.Event()
    deadlines.hold()
    deadlines.add(loop.time(), fired.set, ())
    later = loop.create_future()
    loop.call_later(0.001, later.set_result, None)
    await later
    assert not fired.is_set()

    deadlines.release()

    await asyncio.wait_for(fired.wait(), 60)
