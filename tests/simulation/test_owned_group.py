from __future__ import annotations

import pytest

from tests.simulation.owned_group import LATEST, OwnedGroup


@pytest.fixture
def failures() -> list[str]:
    return []


@pytest.fixture
def group(failures: list[str]) -> OwnedGroup:
    return OwnedGroup("g", failures.append)


def test_a_generation_has_one_owner_of_each_partition(group: OwnedGroup, failures: list[str]) -> None:
    group.assigned("a", 1, {0, 1})
    group.assigned("a", 2, {0})
    group.assigned("b", 2, {1})
    assert failures == []

    group.assigned("b", 1, {1})

    assert failures == ["group g: a and b own 1 in generation 1"]


def test_no_committed_offset_regresses(group: OwnedGroup, failures: list[str]) -> None:
    group.committed(0, 3, 7)
    group.fetched(0, 3, 7, group.least(3))
    group.fetched(0, 2, 6, group.least(2))
    assert failures == []

    group.fetched(0, LATEST, 6, group.least(LATEST))

    assert failures == [f"group g: 0 is at 6 in generation {LATEST}, where 7 was committed"]
