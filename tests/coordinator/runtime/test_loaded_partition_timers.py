"""One loaded partition: timers, work beside it, transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.coordinator.runtime.events import TimerKey
from odradek.broker.coordinator.runtime.loaded_partition import TIMER_RETRY_MS
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.bench import (
    ABORT,
    BUSY,
    COMMIT,
    DISK_FULL,
    Bench,
)
from tests.coordinator.runtime.counters import REMINDER, Computed, Delete


@pytest.fixture
async def bench() -> Bench:
    return Bench()


# --------------------------------------------------------------------------------------------------------- timers, work


async def test_a_timer_expires_once(bench: Bench) -> None:
    bench.add("a", 1, timers={REMINDER: 1_000})

    bench.loop.advance(0.9)
    assert bench.counters.expired == []
    bench.loop.advance(0.1)
    bench.loop.advance(10)

    assert bench.counters.expired == [REMINDER]
    assert bench.counters.counts == {"a": 1001}


@pytest.mark.parametrize("moved_to", [9_000, None])
async def test_a_timer_that_an_earlier_queued_event_moves_is_not_delivered(bench: Bench, moved_to: int | None) -> None:
    bench.add("a", 1, timers={REMINDER: 1_000})
    bench.writer.is_slow = True
    bench.add("a", 1)
    bench.add("a", 0, timers={REMINDER: moved_to})  # waits for the append

    bench.loop.advance(1)  # behind it waits the end of the timer
    await bench.end_append()

    assert bench.counters.expired == []
    bench.loop.advance(9)
    assert bench.counters.expired == ([] if moved_to is None else [REMINDER])


async def test_a_timer_that_expires_while_its_key_is_busy_is_delivered_later(bench: Bench) -> None:
    bench.add("a", 1, timers={REMINDER: 1_000})
    bench.writer.is_slow = True
    bench.add("a", 1)

    bench.loop.advance(1)
    assert bench.counters.expired == []
    await bench.end_append()

    assert bench.counters.expired == [REMINDER]


async def test_a_timer_whose_records_cannot_be_written_expires_again(bench: Bench) -> None:
    bench.add("a", 1, timers={REMINDER: 1_000})
    bench.writer.is_slow = True
    bench.loop.advance(1)
    await bench.end_append(DISK_FULL)
    assert bench.counters.expired == [REMINDER]

    bench.loop.advance(TIMER_RETRY_MS / 1000)

    assert bench.counters.expired == [REMINDER, REMINDER]


async def test_timers_are_set_when_the_records_are_in_the_log(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add("a", 1, timers={REMINDER: 1_000})
    bench.loop.advance(5)
    assert bench.counters.expired == []

    await bench.end_append()
    bench.loop.advance(1)

    assert bench.counters.expired == [REMINDER]


@pytest.mark.parametrize(("replay_records", "expired"), [(True, []), (False, [REMINDER])])
async def test_timers_of_an_append_that_fails_are_set_if_the_effects_survive_it(
    bench: Bench, replay_records: bool, expired: list[TimerKey]
) -> None:
    bench.add("a", 1)
    bench.writer.is_slow = True
    bench.add("a", 1, timers={REMINDER: 1_000}, replay_records=replay_records)

    await bench.end_append(DISK_FULL)
    bench.loop.advance(1)

    assert bench.counters.expired == expired


async def test_the_timers_of_a_key_that_is_deleted_are_cancelled(bench: Bench) -> None:
    bench.add("a", 1, timers={REMINDER: 1_000})

    bench.submit("a", Delete)
    bench.loop.advance(1)

    assert bench.counters.expired == []
    assert bench.counters.counts == {}


async def test_the_result_of_work_is_an_event_of_its_key(bench: Bench) -> None:
    bench.add("a", 1, work=lambda: Computed(41))

    await asyncio.sleep(0)

    assert bench.counters.counts == {"a": 42}


async def test_a_shard_gets_an_event_if_its_work_fails(bench: Bench) -> None:
    bench.add("a", 1, work=lambda: 1 // 0)

    await asyncio.sleep(0)

    assert bench.counters.failed_works == 1


async def test_an_action_runs_when_the_replies_are_complete_and_its_events_are_handled_at_once(bench: Bench) -> None:
    replies: list[list[int | ErrorCode | None]] = []

    def action(submit: Callable[[Any], None]) -> None:
        replies.append(bench.replies)
        submit(Computed(10))
        assert bench.counters.counts == {"a": 11}

    bench.writer.is_slow = True
    bench.add("a", 1, action=action)
    bench.add("a", 100)
    assert replies == []
    bench.writer.is_slow = False
    await bench.end_append()

    assert replies == [[1, None]]
    assert bench.counters.replayed == [("a", 1), ("a", 11), ("a", 111)]
    assert bench.replies == [1, 111]


async def test_an_action_does_not_run_if_the_records_cannot_be_written(bench: Bench) -> None:
    ran: list[object] = []
    bench.writer.is_slow = True
    bench.add("a", 1, action=ran.append)

    await bench.end_append(DISK_FULL)

    assert ran == []


async def test_an_event_that_an_action_submits_later_waits_while_the_key_is_busy(bench: Bench) -> None:
    submits: list[Callable[[Any], None]] = []
    bench.add("a", 1, action=submits.append)
    bench.writer.is_slow = True
    bench.add("a", 1)

    submits[0](Computed(10))
    assert len(bench.writer.appends) == 1
    bench.writer.is_slow = False
    await bench.end_append()

    assert bench.counters.counts == {"a": 12}


async def test_a_shard_may_refuse_requests_of_a_busy_key_but_not_the_results_of_its_own_work(bench: Bench) -> None:
    bench.counters.refuse_when_busy = BUSY
    bench.add("a", 1)
    bench.writer.is_slow = True
    bench.add("a", 1)
    bench.add("a", 1)
    bench.partition.submit("a", Computed(10))
    bench.writer.is_slow = False
    bench.add("b", 5)

    await bench.end_append()

    assert bench.replies == [1, 2, ErrorCode.CONCURRENT_TRANSACTIONS, 5]
    assert bench.counters.counts == {"a": 12, "b": 5}


# --------------------------------------------------------------------------------------------------------- transactions


async def test_records_of_a_transaction_count_when_its_marker_commits_it(bench: Bench) -> None:
    bench.add_in_transaction("a", 1)
    assert bench.replies == [1]
    assert bench.counters.counts == {}

    assert bench.partition.write_marker(COMMIT) is None

    assert bench.counters.counts == {"a": 1}


async def test_records_of_a_transaction_are_discarded_when_its_marker_aborts_it(bench: Bench) -> None:
    bench.add_in_transaction("a", 1)

    assert bench.partition.write_marker(ABORT) is None
    assert bench.partition.write_marker(COMMIT) is None

    assert bench.counters.counts == {}


async def test_a_marker_that_ends_at_once_is_replayed_after_the_records_before_it(bench: Bench) -> None:
    bench.writer.is_slow = True
    bench.add_in_transaction("a", 1)
    bench.writer.is_slow = False
    shown = bench.partition.write_marker(COMMIT)
    bench.add("b", 2)

    assert shown is not None
    assert not shown.done()
    await bench.end_append()

    assert shown.done()
    assert bench.counters.counts == {"a": 1, "b": 2}
    assert bench.replies == [1, 2]


async def test_a_marker_that_takes_long_is_replayed_before_the_records_behind_it(bench: Bench) -> None:
    bench.add_in_transaction("a", 1)
    bench.writer.is_slow = True
    shown = bench.partition.write_marker(COMMIT)
    bench.add_in_transaction("b", 2)  # of the next transaction

    await bench.end_append(index=1)
    assert bench.replies == [1, None]
    await bench.end_append()

    assert shown is not None
    assert shown.done()
    assert bench.counters.counts == {"a": 1}
    assert bench.partition.write_marker(ABORT) is not None
    await bench.end_append()
    assert bench.counters.counts == {"a": 1}


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.NOT_COORDINATOR])
async def test_a_marker_that_fails_ends_nothing(bench: Bench, code: ErrorCode) -> None:
    bench.add_in_transaction("a", 1)
    bench.writer.is_slow = True
    shown = bench.partition.write_marker(COMMIT)
    bench.writer.is_slow = False
    bench.add("b", 2)

    await bench.end_append(KafkaError(code))

    assert shown is not None
    error = shown.exception()
    assert isinstance(error, KafkaError)
    assert error.code is code
    assert bench.counters.counts == {"b": 2}
    assert bench.partition.write_marker(COMMIT) is None
    assert bench.counters.counts == {"a": 1, "b": 2}


async def test_unloading_refuses_the_markers_that_wait_and_those_that_come_later(bench: Bench) -> None:
    bench.writer.is_slow = True
    shown = bench.partition.write_marker(COMMIT)

    bench.partition.unload()

    assert shown is not None
    error = shown.exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.NOT_COORDINATOR
    with pytest.raises(KafkaError) as later:
        bench.partition.write_marker(COMMIT)
    assert later.value.code is ErrorCode.NOT_COORDINATOR


async def test_a_marker_is_replayed_even_if_its_requester_has_stopped_waiting(bench: Bench) -> None:
    bench.add_in_transaction("a", 1)
    bench.writer.is_slow = True
    shown = bench.partition.write_marker(COMMIT)

    assert shown is not None
    shown.cancel()
    await bench.end_append()

    assert bench.counters.counts == {"a": 1}
