"""What happens to the events and timers of a group while its records are on their way to the log, or do not get there.

The group, the log and the event loop's timers are doubles, so that each test says when something ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import pytest

from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
from odradek.broker.coordinator.classic_group.stored_group import group_tombstone
from odradek.broker.coordinator.group_type import (
    CLASSIC,
    Effects,
    Event,
    PendingReply,
    TimerExpired,
    TimerKey,
    WorkFailed,
)
from odradek.broker.coordinator.partition_state import PartitionState
from odradek.broker.coordinator.records import CoordinatorRecord
from odradek.broker.coordinator.runtime.shard import TIMER_RETRY_MS, Shard
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.heartbeat import HeartbeatResponse

SESSION: TimerKey = ("session", "m")
DISK_FULL = KafkaError(ErrorCode.NOT_COORDINATOR, "the disk is full")


class Asked(Event, frozen=True):
    """A request."""


class ScriptedGroup:
    """Answers each event with the next effects of `script`; None stands for a defect."""

    group_id: ClassVar[str] = "g"
    group_type: ClassVar[str] = CLASSIC
    is_empty: ClassVar[bool] = False

    def __init__(self) -> None:
        self.script: list[Effects | None] = []
        self.events: list[Any] = []
        self.ends: list[ErrorCode | None] = []
        self.replayed: list[CoordinatorRecord] = []

    def handle(self, event: Any, now_ms: int) -> Effects:
        self.events.append(event)
        effects = self.script.pop(0)
        if effects is None:
            raise ZeroDivisionError
        return effects

    def stored(self, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        self.ends.append(error)
        return Effects()

    def replay(self, record: CoordinatorRecord) -> None:
        self.replayed.append(record)

    def unloaded(self) -> Effects:
        return Effects()


class SlowLog:
    """Appends end when a test says so; at once if `is_fast`."""

    def __init__(self) -> None:
        self.is_fast = False
        self.appends: list[asyncio.Future[int]] = []

    def append(self, records: Sequence[CoordinatorRecord]) -> int | asyncio.Future[int]:
        if self.is_fast:
            return 1
        self.appends.append(asyncio.get_running_loop().create_future())
        return self.appends[-1]


class StillLoop:
    """The timers of an event loop whose time passes by `advance`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._calls: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> asyncio.Handle:
        call = when, callback, args
        self._calls.append(call)
        return cast("asyncio.Handle", type("Handle", (), {"cancel": lambda _: self._calls.remove(call)})())

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for call in [call for call in self._calls if call[0] <= self.now]:
            self._calls.remove(call)
            call[1](*call[2])


class Bench:
    """A shard with one group."""

    def __init__(self) -> None:
        self.group = ScriptedGroup()
        self.log = SlowLog()
        self.loop = StillLoop()
        state = PartitionState({})
        state.groups["g"] = cast("Any", self.group)
        self.shard = Shard(state, cast("Any", self.log), ManualClock(0), cast("Any", self.loop), self._run)

    def ask(self, effects: Effects | None) -> PendingReply:
        """Let a request come that has these effects."""
        self.group.script.append(effects)
        pending_reply = PendingReply()
        self.shard.submit("g", Asked(pending_reply))
        return pending_reply

    @property
    def expired(self) -> list[TimerKey]:
        return [event.key for event in self.group.events if isinstance(event, TimerExpired)]

    async def append_ends(self, error: Exception | None = None) -> None:
        append = self.log.appends.pop(0)
        if error is None:
            append.set_result(0)
        else:
            append.set_exception(error)
        await asyncio.sleep(0)  # the callbacks of a future run in the loop's next turn

    @staticmethod
    def _run(work: Callable[[], Any]) -> asyncio.Future[Any]:
        done = asyncio.get_running_loop().create_future()
        try:
            done.set_result(work())
        except ArithmeticError as error:
            done.set_exception(error)
        return done


@pytest.fixture
async def bench() -> Bench:
    return Bench()


def written(**more: Any) -> Effects:
    """Effects that take an append."""
    return Effects(records=[group_tombstone("another")], **more)


@pytest.mark.parametrize("moved_to", [9_000, None])
async def test_a_timer_that_is_moved_by_an_event_before_it_in_the_queue_has_not_expired(
    bench: Bench, moved_to: int | None
) -> None:
    bench.ask(Effects(timers={SESSION: 1_000}))
    bench.ask(written())
    bench.ask(Effects(timers={SESSION: moved_to}))  # waits for the append

    bench.loop.advance(1)  # behind it: the end of the session
    await bench.append_ends()

    assert bench.expired == []
    bench.group.script.append(Effects())
    bench.loop.advance(9)
    assert bench.expired == ([] if moved_to is None else [SESSION])


async def test_a_timer_that_expires_while_its_group_is_busy_counts_later(bench: Bench) -> None:
    bench.ask(Effects(timers={SESSION: 1_000}))
    bench.ask(written())

    bench.loop.advance(1)
    assert bench.expired == []
    bench.group.script.append(Effects())
    await bench.append_ends()

    assert bench.expired == [SESSION]


async def test_a_timer_whose_records_cannot_be_written_expires_again(bench: Bench) -> None:
    bench.ask(Effects(timers={SESSION: 1_000}))
    bench.group.script += [written(), Effects()]
    bench.loop.advance(1)
    await bench.append_ends(DISK_FULL)
    assert bench.expired == [SESSION]

    bench.loop.advance(TIMER_RETRY_MS / 1000)

    assert bench.expired == [SESSION, SESSION]


async def test_a_migration_that_cannot_be_written_leaves_group_and_timers_as_they_were(bench: Bench) -> None:
    bench.ask(Effects(timers={SESSION: 1_000}))
    bench.ask(written(timers={SESSION: None}, become=cast("Any", ScriptedGroup()), is_applied=True))

    await bench.append_ends(DISK_FULL)

    assert bench.shard.state.groups["g"] is cast("Any", bench.group)
    bench.group.script.append(Effects())
    bench.loop.advance(1)
    assert bench.expired == [SESSION]


async def test_a_group_that_was_unloaded_does_not_hear_of_an_append_that_fails_later(bench: Bench) -> None:
    bench.ask(written(follow_up="mine"))
    bench.shard.unload()

    await bench.append_ends(DISK_FULL)

    assert bench.group.ends == []


async def test_a_group_hears_of_an_append_that_fails(bench: Bench) -> None:
    bench.ask(written(follow_up="mine"))

    await bench.append_ends(DISK_FULL)

    assert bench.group.ends == [ErrorCode.NOT_COORDINATOR]


async def test_a_group_hears_that_its_work_failed(bench: Bench) -> None:
    bench.ask(Effects(work=lambda: 1 // 0))
    bench.group.script.append(Effects())

    await asyncio.sleep(0)

    assert isinstance(bench.group.events[-1], WorkFailed)


async def test_an_event_that_meets_a_defect_does_not_take_those_behind_it_along(bench: Bench) -> None:
    reply = HeartbeatResponse()
    bench.ask(written())
    failing, next_one = bench.ask(None), PendingReply()
    bench.group.script.append(Effects(replies=[(next_one, reply)]))
    bench.shard.submit("g", Asked(next_one))

    await bench.append_ends()

    with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
        failing.result(asyncio.get_running_loop().create_future)
    assert next_one.result(asyncio.get_running_loop().create_future) is reply


@pytest.mark.parametrize("error", [None, DISK_FULL])
async def test_an_append_that_ends_at_once_is_replayed_after_an_earlier_one_of_another_group(
    bench: Bench, error: Exception | None
) -> None:
    replayed: list[str] = []
    replies: dict[str, PendingReply] = {}
    for group_id in ("g", "h"):
        group = ScriptedGroup()
        group.replay = lambda _, group_id=group_id: replayed.append(group_id)  # type: ignore[method-assign, misc]
        bench.shard.state.groups[group_id] = cast("Any", group)
        replies[group_id] = PendingReply()
        record = ClassicGroup(group_id, ClassicSettings(), 0).record_of_new_group()
        group.script = [Effects(records=[record], replies=[(replies[group_id], HeartbeatResponse())]), Effects()]
    bench.shard.submit("g", Asked(replies["g"]))
    bench.log.is_fast = True

    bench.shard.submit("h", Asked(replies["h"]))
    bench.shard.submit("h", Asked(PendingReply()))

    assert replayed == []
    answered = replies["h"].result(asyncio.get_running_loop().create_future)
    await bench.append_ends(error)
    assert replayed == (["g", "h"] if error is None else ["h"])
    assert await cast("asyncio.Future[Any]", answered) == HeartbeatResponse()
