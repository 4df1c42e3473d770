"""Mutual exclusion of compaction and retention, and aborts by truncation or deletion."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from tests.storage.conftest import NewLog
from tests.storage.logs import append


def test_one_at_a_time_is_in_progress() -> None:
    state = CleaningState()
    assert state.begin()
    assert not state.begin()
    state.end()
    assert state.begin()


def test_nothing_begins_until_every_pause_has_ended() -> None:
    state = CleaningState()
    state.pause()
    with state.paused():
        assert not state.begin()
    assert not state.begin()
    state.resume()
    assert state.begin()


def test_a_pause_stops_the_work_and_waits_for_its_end() -> None:
    state = CleaningState()
    is_stopped = Event()
    state.begin()
    state.when_aborted(is_stopped.set)
    with ThreadPoolExecutor(1) as thread:
        pausing = thread.submit(state.pause)
        assert is_stopped.wait(30)
        assert state.is_aborted
        assert not pausing.done()
        state.end()
        pausing.result()
    assert not state.begin()


def test_work_that_was_aborted_before_it_could_be_stopped_is_stopped_when_it_can() -> None:
    state = CleaningState()
    stops: list[str] = []
    state.begin()
    state.abort()
    state.when_aborted(lambda: stops.append("stop"))
    state.abort()
    assert stops == ["stop"]


def test_an_abort_does_not_affect_later_work() -> None:
    state = CleaningState()
    stops: list[str] = []
    state.begin()
    state.when_aborted(lambda: stops.append("stop"))
    state.end()
    state.abort()
    assert state.begin()
    assert not state.is_aborted
    assert stops == []


# ------------------------------------------------------------------------------------------------------------- of a log


def lose_compaction(log: Log) -> None:
    log.configure(LogConfig())


ENDS: list[Callable[[Log], object]] = [
    Log.close,
    Log.release,
    lose_compaction,
    lambda log: log.truncate_to(0),
    lambda log: log.truncate_fully_and_start_at(9),
]


@pytest.mark.parametrize("change", ENDS, ids=["close", "release", "configure", "truncate", "start over"])
def test_truncating_closing_or_reconfiguring_a_log_aborts_the_work_on_it(
    new_log: NewLog, change: Callable[[Log], object]
) -> None:
    log = new_log(segment_bytes=100, cleanup_policy=frozenset({"compact"}))
    for index in range(4):
        append(log, b"%d" % index)
    log.cleaning.begin()
    is_stopped = Event()
    log.cleaning.when_aborted(is_stopped.set)
    with ThreadPoolExecutor(1) as thread:
        changing = thread.submit(change, log)
        assert is_stopped.wait(30)
        log.cleaning.end()
        changing.result()


def test_truncating_the_active_segment_and_raising_the_start_abort_nothing(new_log: NewLog) -> None:
    log = new_log(segment_bytes=100, cleanup_policy=frozenset({"compact"}))
    for index in range(4):
        append(log, b"%d" % index)
    log.advance_high_watermark(4)
    log.cleaning.begin()
    log.update_log_start_offset(2)
    log.truncate_to(3)
    log.roll()
    assert not log.cleaning.is_aborted
    assert (log.log_start_offset, log.log_end_offset) == (2, 3)
