from __future__ import annotations

from odradek.broker.explain.events import FileOperation, GroupTransition, TraceEvent
from odradek.broker.explain.file_runs import MOST_IN_A_RUN, FileRuns
from odradek.broker.explain.text import event_lines

TRANSITION = GroupTransition(0, None, "g", "classic", ("Empty",), 0, 0, "")


def operation(cause: int | None = None) -> FileOperation:
    return FileOperation(0, cause, "fsync", "a")


def recorded(*events: TraceEvent) -> list[TraceEvent]:
    seen: list[TraceEvent] = []
    runs = FileRuns(seen.append)
    for event in events:
        runs.record(event)
    return seen


def test_a_long_run_ends_with_the_number_of_the_others() -> None:
    run = [operation() for _ in range(MOST_IN_A_RUN + 7)]

    *shown, more, last = recorded(*run, TRANSITION)

    assert shown == run[:MOST_IN_A_RUN]
    assert event_lines(more)[0].endswith("… 7 more file operations")
    assert last is TRANSITION


def test_operations_of_another_request_are_another_run() -> None:
    run = [operation(1) for _ in range(MOST_IN_A_RUN)] + [operation(2) for _ in range(MOST_IN_A_RUN)]

    assert recorded(*run, TRANSITION) == [*run, TRANSITION]


def test_other_events_end_a_run() -> None:
    events = [each for _ in range(MOST_IN_A_RUN * 2) for each in (operation(), TRANSITION)]

    assert recorded(*events) == events
