from __future__ import annotations

from typing import Any, cast

import pytest

from odradek.broker.coordinator.runtime.timers import KeyTimers
from odradek.broker.coordinator.sessions import MemberSession, keep_living
from tests.coordinator.runtime.bench import StillLoop

SESSION_MS = 45_000
JOIN = ("join", "")


class Sessions:
    """The timers of one group, whose time stands still."""

    def __init__(self) -> None:
        self.loop = StillLoop()
        self.expired: list[tuple[str, str]] = []
        self.timers = KeyTimers(cast("Any", self.loop), self.expired.append)

    def session(self, member_id: str, *, silent_for: float = 0, is_parked: bool = False) -> MemberSession:
        timer = ("session", member_id)
        self.timers.set(timer, SESSION_MS - round(silent_for * 1000))
        awaited = () if is_parked else (JOIN,)
        return MemberSession(member_id, "client", timer, SESSION_MS, SESSION_MS / 3, is_parked, awaited)


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


@pytest.mark.parametrize(("silent_for", "is_kept"), [(0, True), (15, True), (18, True), (20, False), (44, False)])
def test_a_member_heard_of_within_a_heartbeat_keeps_the_rest_of_its_session(
    sessions: Sessions, silent_for: float, is_kept: bool
) -> None:
    session = sessions.session("m", silent_for=silent_for)
    keep_living([session], sessions.timers, 3600)

    sessions.loop.advance(3600)
    assert sessions.expired == ([] if is_kept else [session.timer])
    sessions.loop.advance(45 - silent_for)

    assert sessions.expired == [session.timer]


def test_a_parked_member_lives_however_long_it_has_been_silent(sessions: Sessions) -> None:
    session = sessions.session("m", silent_for=44, is_parked=True)
    keep_living([session], sessions.timers, 3600)
    sessions.loop.advance(3600)
    assert sessions.expired == []


def test_the_group_waits_longer_for_what_a_living_member_has_not_done(sessions: Sessions) -> None:
    sessions.timers.set(JOIN, 5_000)
    living, silent = sessions.session("a"), sessions.session("b", silent_for=40)
    keep_living([living, silent], sessions.timers, 3600)

    sessions.loop.advance(3600)
    assert sessions.expired == [silent.timer]
    sessions.loop.advance(5)

    assert sessions.expired == [silent.timer, JOIN]


def test_the_group_waits_no_longer_if_all_that_live_are_parked(sessions: Sessions) -> None:
    sessions.timers.set(JOIN, 5_000)
    parked, silent = sessions.session("a", is_parked=True), sessions.session("b", silent_for=40)
    keep_living([parked, silent], sessions.timers, 3600)

    sessions.loop.advance(5)

    assert sorted(sessions.expired) == [JOIN, silent.timer]


def test_a_member_whose_timer_is_not_set_is_no_living_one(sessions: Sessions) -> None:
    session = sessions.session("m")
    sessions.timers.cancel(session.timer)
    assert not session.is_living(sessions.timers)
