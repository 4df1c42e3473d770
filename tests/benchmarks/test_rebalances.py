"""The table of rebalances: its columns from events, its schedules, and a short run of the bundled consumer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rebalances.columns import Columns, compute, medians
from benchmarks.rebalances.members import VARIANTS
from benchmarks.rebalances.run import run
from benchmarks.rebalances.schedule import Step, first_members, schedule

BEGUN = {"at": 10.0, "event": "begun"}
OVER = {"at": 20.0, "event": "over"}


def event(at: float, member: str, event: str, *partitions: str, **fields: Any) -> dict[str, Any]:
    return {"at": at, "member": member, "event": event, "partitions": partitions, **fields}


def columns(*events: dict[str, Any], created: tuple[str, ...] = ("t-0",), **written: int) -> Columns:
    """The columns of these events between 10 and 20 s, with records by partition `t_0`."""
    by_partition = {name.replace("_", "-"): count for name, count in written.items()}
    return compute([event(0, "", "created", *created), BEGUN, *events, OVER], by_partition)


def read(member: str, *numbers: int) -> dict[str, Any]:
    return event(15, member, "read", partition="t-0", numbers=numbers)


def test_each_further_read_of_a_record_is_a_duplicate() -> None:
    assert columns(read("a", 0, 1, 2), read("b", 1, 2), read("c", 2), t_0=3).duplicates == 3


def test_a_written_record_that_no_member_read_is_lost() -> None:
    assert columns(read("a", 0, 2), t_0=4).lost == 2


def test_errors_and_crashes_count() -> None:
    assert columns(event(11, "a", "error", error="x"), event(12, "b", "crashed", error="y")).errors == 2


def test_a_partition_has_no_owner_before_the_first_assignment_and_after_the_last_revocation() -> None:
    found = columns(event(11, "a", "assigned", "t-0"), event(17, "a", "revoking", "t-0"))
    assert (found.longest_without_owner, found.without_owner) == (3, 4)


def test_time_before_the_beginning_and_before_the_creation_of_a_partition_does_not_count() -> None:
    found = columns(
        event(8, "a", "assigned", "t-0"),
        event(13, "", "created", "t-1"),
        event(15, "a", "assigned", "t-1"),
    )
    assert found.without_owner == 2


def test_members_that_follow_each_other_at_once_leave_no_gap() -> None:
    found = columns(
        event(9, "a", "assigned", "t-0"),
        event(12, "a", "revoking", "t-0"),
        event(12, "a", "revoked", "t-0"),
        event(12, "b", "assigned", "t-0"),
    )
    assert (found.without_owner, found.two_owners) == (0, 0)


def test_a_killed_a_closed_and_a_crashed_member_own_nothing() -> None:
    for end in ("killed", "closed", "crashed"):
        assert columns(event(9, "a", "assigned", "t-0"), event(14, "a", end)).without_owner == 6


def test_a_paused_member_owns_nothing_meanwhile() -> None:
    found = columns(
        event(9, "a", "assigned", "t-0"),
        event(12, "a", "paused"),
        event(14, "b", "assigned", "t-0"),
        event(18, "a", "resumed"),
        event(19, "a", "lost", "t-0"),
    )
    assert found[2:5] == (2, 2, 1)


def test_a_member_holds_a_partition_until_its_listener_returns_but_reads_it_no_more() -> None:
    found = columns(
        event(9, "a", "assigned", "t-0"),
        event(12, "a", "revoking", "t-0"),
        event(13, "b", "assigned", "t-0"),
        event(16, "a", "revoked", "t-0"),
    )
    assert found[2:5] == (1, 1, 3)


def test_three_owners_count_once_as_two() -> None:
    owners = [event(at, member, "assigned", "t-0") for at, member in ((9, "a"), (11, "b"), (12, "c"))]
    ends = [event(at, member, "lost", "t-0") for at, member in ((14, "a"), (15, "b"), (19, "c"))]
    assert columns(*owners, *ends).two_owners == 4


def test_partitions_are_added_up() -> None:
    found = columns(created=("t-0", "t-1"))
    assert (found.longest_without_owner, found.without_owner) == (10, 20)


def test_the_table_has_medians_but_the_most_lost_records() -> None:
    runs = [Columns(value, lost, value, value, value, value) for value, lost in ((1, 0), (2, 7), (9, 1))]
    assert medians(runs) == Columns(2, 7, 2, 2, 2, 2)


def test_a_seed_has_one_schedule() -> None:
    assert schedule(3) == schedule(3) != schedule(4)


def test_a_step_is_for_a_member_that_runs_and_is_not_paused() -> None:
    for seed in range(200):
        running, paused = set(first_members()), set[str]()
        for step in schedule(seed):
            match step.action:
                case "start":
                    assert step.member not in running
                    running.add(step.member)
                case "kill" | "close":
                    assert step.member in running - paused
                    running.remove(step.member)
                case "pause":
                    assert step.member in running - paused
                    paused.add(step.member)
                case "resume":
                    paused.remove(step.member)
                case "slow":
                    assert step.member in running - paused
        assert not paused
        assert running.isdisjoint(first_members()), "the last block restarts all"


@pytest.mark.process
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
async def test_a_short_run_reads_every_record(variant: Any, tmp_path: Path) -> None:
    steps = [
        Step(0, "kill", "m4"),
        Step(0, "add_partitions"),
        Step(0, "slow", "m2", 0.5),
        Step(0.5, "close", "m1"),
        Step(0.5, "create_topic"),
        Step(1, "start", "m5"),
        Step(1, "pause", "m3"),
        Step(2, "resume", "m3"),
    ]
    async with asyncio.timeout(200):
        found = await run("ours", variant, steps, tmp_path / "run", settle_seconds=1)
    assert found.lost == 0
    assert found.longest_without_owner > 0
