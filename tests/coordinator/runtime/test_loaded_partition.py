"""One loaded partition: the order of events and records, appends that take long or fail, timers, work.

The log and the timers of the event loop are doubles, so that each test says when an append ends and time passes.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any, cast

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.bench import (
    DISK_FULL,
    TIMEOUT_MS,
    Bench,
)
from tests.coordinator.runtime.counters import REMINDER, Break


@pytest.fixture
async def bench() -> Bench:
    return Bench()


# ---------------------------------------------------------------------------------------------------------------- order


async def test_an_append_that_ends_at_once_is_answered_at_once(bench: Bench) -> None:
    bench.add("a", 5)

    assert bench.replies == [5]
    assert bench.counters.counts == {"a": 5}


async def test_a_reply_is_refused_if_another_broker_may_lead_by_then(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 5)

    bench.writer.is_fenced = True
    await bench.end_append()

    assert bench.replies == [ErrorCode.NOT_COORDINATOR]
    assert bench.counters.counts == {"a": 5}  # as the log says


async def test_a_key_handles_one_event_at_a_time(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1)
    bench.add("a", 1)

    assert len(bench.writer.appends) == 1
    await bench.end_append()
    await bench.end_append()

    assert bench.replies == [1, 2]


async def test_records_are_replayed_in_the_order_of_the_log_when_a_later_append_ends_at_once(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1)
    bench.writer.is_slow = False
    bench.add("b", 2)

    assert bench.counters.replayed == []
    assert bench.replies == [None, None]
    await bench.end_append()

    assert bench.counters.replayed == [("a", 1), ("b", 2)]
    assert bench.replies == [1, 2]


async def test_records_are_replayed_in_the_order_of_the_log_when_appends_end_in_another_order(bench: Bench) -> None:
    bench.writer.is_slow = True
    for amount, key in enumerate("abc", 1):
        bench.add(key, amount)

    await bench.end_append(index=2)
    await bench.end_append(index=1)
    assert bench.counters.replayed == []
    await bench.end_append()

    assert bench.counters.replayed == [("a", 1), ("b", 2), ("c", 3)]


async def test_records_of_a_follow_up_are_replayed_after_those_appended_before_it(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1, follow_up="mine")
    bench.writer.is_slow = False
    bench.add("b", 2)
    bench.add("a", 10)

    await bench.end_append()

    assert bench.counters.replayed == [("a", 1), ("b", 2), ("a", 101), ("a", 111)]
    assert bench.counters.append_ends == [("mine", None)]


async def test_an_event_without_records_is_answered_while_appends_of_other_keys_are_pending(bench: Bench) -> None:
    bench.add("b", 2)
    bench.writer.is_slow = True
    bench.add("a", 1)

    bench.add("b", 0)

    assert bench.replies == [2, None, 2]


async def test_an_append_that_takes_too_long_is_refused_and_counts_when_it_ends(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 5)
    bench.add("a", 1)
    bench.add("b", 7)

    bench.loop.advance(TIMEOUT_MS / 1000)
    assert bench.replies == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    assert bench.counters.counts == {}
    bench.add("a", 2)
    assert bench.replies[3] is ErrorCode.COORDINATOR_NOT_AVAILABLE, "it would wait for as long"

    await bench.end_append()
    assert bench.counters.counts == {"a": 5}, "what was refused in the queue is not in the log"
    bench.writer.is_slow = False
    await bench.end_append()
    bench.add("a", 3)

    assert bench.replies[4] == 8
    assert bench.counters.counts == {"a": 8, "b": 7}


async def test_an_append_that_took_too_long_and_then_failed_changes_nothing(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 5)
    bench.loop.advance(TIMEOUT_MS / 1000)

    await bench.end_append(DISK_FULL)

    assert bench.replies == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    bench.writer.is_slow = False
    bench.add("a", 3)
    assert bench.counters.counts == {"a": 3}


async def test_the_time_limit_of_an_append_ends_with_it(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 5)
    await bench.end_append()
    bench.add("b", 5)
    bench.partition.unload()

    bench.loop.advance(TIMEOUT_MS / 1000)

    assert bench.replies == [5, ErrorCode.NOT_COORDINATOR]


async def test_a_timer_that_expires_behind_an_append_that_takes_too_long_is_handled_later(bench: Bench) -> None:
    bench.add("a", 5, timers={REMINDER: 1000})
    bench.writer.is_slow = True
    bench.add("a", 1)
    bench.loop.advance(TIMEOUT_MS / 1000)
    bench.writer.is_slow = False

    await bench.end_append()

    assert bench.counters.counts == {"a": 1006}, "the reminder adds a thousand"


# ------------------------------------------------------------------------------------------------------------- failures


async def test_an_append_that_fails_is_answered_at_once_and_those_behind_it_are_replayed(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1)
    bench.add("b", 2)
    bench.add("c", 3)
    await bench.end_append(index=2)

    await bench.end_append(DISK_FULL, index=1)
    assert bench.replies == [None, ErrorCode.NOT_COORDINATOR, None]
    await bench.end_append(DISK_FULL)

    assert bench.replies == [ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR, 3]
    assert bench.counters.replayed == [("c", 3)]
    assert bench.counters.completed == [
        ("b", ErrorCode.NOT_COORDINATOR),
        ("a", ErrorCode.NOT_COORDINATOR),
        ("c", None),
    ]


async def test_a_shard_gets_the_error_of_an_append_with_a_follow_up(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1, follow_up="mine")

    await bench.end_append(DISK_FULL)

    assert bench.counters.append_ends == [("mine", ErrorCode.NOT_COORDINATOR)]


async def test_an_event_that_is_refused_has_no_effects(bench: Bench) -> None:
    bench.add("a", -1)

    assert bench.replies == [ErrorCode.INVALID_REQUEST]
    assert bench.writer.end_offset == 0


async def test_a_defect_does_not_stop_the_events_behind_it(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1)
    bench.submit("a", Break)
    bench.add("a", 1)

    await bench.end_append()
    await bench.end_append()

    assert bench.replies == [1, ErrorCode.UNKNOWN_SERVER_ERROR, 2]


async def test_a_defect_in_replay_does_not_stop_the_writes_behind_it(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1, log_lines=[cast("Any", "no log line")])
    bench.add("b", 2)

    await bench.end_append(index=1)
    await bench.end_append()

    assert bench.counters.counts == {"a": 1, "b": 2}
    assert bench.replies[1] == 2


async def test_unloading_answers_everything_that_waits(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1, follow_up="mine")
    bench.add("a", 1)
    bench.writer.is_slow = False
    bench.add("b", 1)

    bench.partition.unload()

    assert bench.replies == [ErrorCode.NOT_COORDINATOR] * 3
    await bench.end_append()
    assert (bench.counters.replayed, bench.counters.append_ends) == ([], [])
    bench.add("c", 1)
    assert bench.replies[3] == ErrorCode.NOT_COORDINATOR


async def test_an_append_that_fails_after_unloading_is_not_reported_as_an_error_that_nobody_has_read(
    bench: Bench,
) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    bench.writer.is_slow = True
    bench.add("a", 1)
    bench.partition.unload()

    bench.writer.appends.pop().set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
    await asyncio.sleep(0)
    gc.collect()

    assert reported == []
