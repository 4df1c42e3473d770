"""One loaded partition: the order of events and records, appends that take long or fail, timers, work.

The log and the timers of the event loop are doubles, so that each test says when an append ends and time passes.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from odradek.broker.coordinator.runtime.events import PendingReply, ProducerIdAndEpoch, TimerKey
from odradek.broker.coordinator.runtime.loaded_partition import TIMER_RETRY_MS, LoadedPartition
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.storage.producers.verification_state import Verification
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.counters import REMINDER, Add, Break, Computed, Counters, CounterValue, Delete

TIMEOUT_MS = 5000
PRODUCER = ProducerIdAndEpoch(7, 0)
COMMIT = TransactionMarker(7, 0, committed=True, coordinator_epoch=0, transaction_version=1)
ABORT = COMMIT._replace(committed=False)
BUSY = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "busy")
DISK_FULL = KafkaError(ErrorCode.NOT_COORDINATOR, "the disk is full")


class ScriptedWriter:
    """A log whose appends end at once, or when a test says so if `is_slow`."""

    leader_epoch = 0

    def __init__(self) -> None:
        self.is_slow = False
        self.is_fenced = False
        self.appends: list[asyncio.Future[int]] = []
        self.end_offset = 0

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: ProducerIdAndEpoch | None = None,
        verification: Verification | None = None,
    ) -> int | asyncio.Future[int]:
        return self._append(len(records))

    def append_marker(self, marker: TransactionMarker) -> int | asyncio.Future[int]:
        return self._append(1)

    def _append(self, count: int) -> int | asyncio.Future[int]:
        self.end_offset += count
        if not self.is_slow:
            return self.end_offset - count
        self.appends.append(asyncio.get_running_loop().create_future())
        return self.appends[-1]


class StillLoop:
    """The timers of an event loop whose time passes by `advance`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._calls: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

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
    """A loaded partition of counters. `replies` are those given so far, a KafkaError by its code."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.writer = ScriptedWriter()
        self.loop = StillLoop()
        self.partition = LoadedPartition(
            self.counters,
            cast("Any", self.writer),
            ManualClock(0),
            cast("Any", self.loop),
            self._run,
            "counter",
            append_timeout_ms=TIMEOUT_MS,
        )
        self._answers: list[asyncio.Future[Any]] = []

    @property
    def replies(self) -> list[int | ErrorCode | None]:
        return [_outcome(answer) for answer in self._answers]

    def add(self, key: str, amount: int, **effects: Any) -> None:
        pending = PendingReply()
        self.partition.submit(key, Add(pending, amount, effects=effects))
        self._answers.append(_answer(pending))

    def add_in_transaction(self, key: str, amount: int) -> None:
        self.add(key, amount, producer=PRODUCER)

    def submit(self, key: str, event: type[Delete | Break]) -> None:
        pending = PendingReply()
        self.partition.submit(key, event(pending))
        self._answers.append(_answer(pending))

    async def end_append(self, error: Exception | None = None, index: int = 0) -> None:
        append = self.writer.appends.pop(index)
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


def _answer(pending: PendingReply) -> asyncio.Future[Any]:
    """Return the future of the reply, done already if the reply is there."""
    create_future = asyncio.get_running_loop().create_future
    try:
        answer = pending.result(create_future)
    except KafkaError as error:
        failed = create_future()
        failed.set_exception(error)
        return failed
    if isinstance(answer, asyncio.Future):
        return answer
    done = create_future()
    done.set_result(answer)
    return done


def _outcome(answer: asyncio.Future[Any]) -> int | ErrorCode | None:
    if not answer.done():
        return None
    error = answer.exception()
    if error is not None:
        assert isinstance(error, KafkaError)
        return error.code
    reply = answer.result()
    assert isinstance(reply, CounterValue)
    return reply.count


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
