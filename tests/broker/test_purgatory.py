from __future__ import annotations

import asyncio
from collections.abc import Hashable

import pytest

from odradek.broker.purgatory import DelayedOperation, Purgatory

LONG_MS = 60_000


class Countdown(DelayedOperation[str]):
    """Ready after so many touches."""

    def __init__(self, touches: int) -> None:
        self.left = touches
        self.answered = 0

    def is_ready(self, key: Hashable) -> bool:
        self.left -= 1
        return self.left <= 0

    def answer(self) -> str:
        self.answered += 1
        return "ready" if self.left <= 0 else "not ready"


class Broken(DelayedOperation[str]):
    def is_ready(self, key: Hashable) -> bool:
        return True

    def answer(self) -> str:
        raise ValueError("broken")


def purgatory() -> Purgatory[str]:
    loop = asyncio.get_running_loop()
    return Purgatory("Fetch", loop, loop)


async def test_a_touch_that_makes_it_ready_answers_it() -> None:
    waiting = purgatory()
    answer = waiting.park(Countdown(2), ["a"], LONG_MS)

    waiting.touch("a")
    await asyncio.sleep(0)
    assert not answer.done()
    waiting.touch("a")

    assert await answer == "ready"
    assert len(waiting) == 0


async def test_touches_of_one_turn_ask_once_whether_it_is_ready() -> None:
    waiting = purgatory()
    operation = Countdown(5)
    waiting.park(operation, ["a"], LONG_MS)

    for _ in range(3):
        waiting.touch("a")
    await asyncio.sleep(0)

    assert operation.left == 4
    waiting.close()


async def test_an_error_of_one_operation_is_its_answer_and_touches_no_other() -> None:
    class Undecided(Broken):
        def is_ready(self, key: Hashable) -> bool:
            raise ValueError("undecided")

    waiting = purgatory()
    broken, other = waiting.park(Undecided(), ["a"], LONG_MS), waiting.park(Countdown(1), ["a"], LONG_MS)

    waiting.touch("a")

    assert await other == "ready"
    with pytest.raises(ValueError, match="undecided"):
        await broken
    assert len(waiting) == 0


async def test_only_touches_of_its_own_keys_count() -> None:
    waiting = purgatory()
    answer = waiting.park(Countdown(1), ["a", "b"], LONG_MS)

    waiting.touch("c")
    await asyncio.sleep(0)
    assert not answer.done()
    waiting.touch("b")

    assert await answer == "ready"


async def test_it_is_answered_once_on_the_next_turn_however_often_it_is_touched() -> None:
    waiting = purgatory()
    operation = Countdown(1)
    answer = waiting.park(operation, ["a", "b"], LONG_MS)

    waiting.touch("a")
    waiting.touch("b")
    waiting.touch("a")
    assert not answer.done()
    await answer

    assert operation.answered == 1


async def test_it_is_answered_after_its_timeout() -> None:
    waiting = purgatory()
    answer = waiting.park(Countdown(5), ["a"], 1)

    assert await answer == "not ready"
    assert len(waiting) == 0


async def test_a_negative_timeout_counts_as_zero() -> None:
    waiting = purgatory()

    assert await waiting.park(Countdown(5), ["a"], -1) == "not ready"


async def test_cancelling_the_future_discards_the_operation() -> None:
    waiting = purgatory()
    operation = Countdown(1)
    answer = waiting.park(operation, ["a"], LONG_MS)

    answer.cancel()
    await asyncio.sleep(0)
    waiting.touch("a")
    await asyncio.sleep(0)

    assert len(waiting) == 0
    assert operation.answered == 0


async def test_cancelling_after_it_became_ready_is_harmless() -> None:
    waiting = purgatory()
    operation = Countdown(1)
    answer = waiting.park(operation, ["a"], LONG_MS)

    waiting.touch("a")
    answer.cancel()
    await asyncio.sleep(0)

    assert answer.cancelled()
    assert operation.answered == 0


async def test_releasing_a_key_answers_what_watches_it() -> None:
    waiting = purgatory()
    released = waiting.park(Countdown(5), ["a"], LONG_MS)
    left_alone = waiting.park(Countdown(5), ["b"], LONG_MS)

    waiting.release("a")

    assert await released == "not ready"
    assert not left_alone.done()
    waiting.close()
    assert await left_alone == "not ready"


async def test_operations_parked_after_close_are_answered_at_once() -> None:
    waiting = purgatory()
    waiting.close()

    assert await waiting.park(Countdown(5), ["a"], LONG_MS) == "not ready"
    assert len(waiting) == 0


async def test_an_exception_is_raised_from_its_future_only() -> None:
    waiting = purgatory()
    broken = waiting.park(Broken(), ["a"], LONG_MS)
    sound = waiting.park(Countdown(1), ["a"], LONG_MS)

    waiting.touch("a")

    with pytest.raises(ValueError, match="broken"):
        await broken
    assert await sound == "ready"


async def test_a_key_named_twice_is_watched_once() -> None:
    waiting = purgatory()
    answer = waiting.park(Countdown(2), ["a", "a"], LONG_MS)

    waiting.touch("a")
    await asyncio.sleep(0)

    assert not answer.done()
    answer.cancel()


async def test_nothing_is_watched_after_all_answers() -> None:
    waiting = purgatory()
    for _ in range(3):
        waiting.park(Countdown(1), ["a", "b"], LONG_MS)

    waiting.touch("a")
    await asyncio.sleep(0)

    assert len(waiting) == 0
    assert not waiting.watched
