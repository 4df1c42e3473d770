from __future__ import annotations

import pytest

from odradek.broker.replication.replica_state import ReplicaState

LAG = 30.0


def fetched(*fetches: tuple[float, int, int], last_caught_up_time: float = float("-inf")) -> ReplicaState:
    """A follower after these fetches: time, fetch offset, end of the leader."""
    state = ReplicaState(last_caught_up_time)
    for now, offset, leader_end in fetches:
        state.fetched(offset, 0, leader_end, 9, now)
    return state


@pytest.mark.parametrize(
    ("fetches", "caught_up_at"),
    [
        ([(1, 10, 10)], 1),
        ([(1, 10, 10), (2, 10, 15)], 1),  # at the end of the first fetch, at its time
        ([(1, 10, 20), (2, 20, 30), (3, 30, 40)], 2),  # under load, it reaches each end one fetch later
        ([(1, 10, 20), (2, 19, 30)], float("-inf")),
        ([(1, 10, 20)], float("-inf")),
        ([(1, 10, 10), (2, 5, 10)], 1),  # truncated, and behind since then
    ],
)
def test_a_follower_is_caught_up_to_the_end_of_the_leader_at_its_previous_fetch(
    fetches: list[tuple[float, int, int]], caught_up_at: float
) -> None:
    assert fetched(*fetches).last_caught_up_time == caught_up_at


def test_the_end_of_a_follower_is_its_last_fetch_offset() -> None:
    state = fetched((1, 10, 10), (2, 5, 10))

    assert (state.log_end_offset, state.broker_epoch) == (5, 9)


def test_a_follower_is_caught_up_for_the_longest_lag_after_it_was() -> None:
    state = fetched((1, 10, 10), (2, 10, 15))

    assert state.is_caught_up(15, 31, LAG)
    assert not state.is_caught_up(15, 31.5, LAG)


def test_a_follower_at_the_end_of_an_idle_leader_is_always_caught_up() -> None:
    assert fetched((1, 10, 10)).is_caught_up(10, 1_000_000, LAG)


def test_a_follower_that_has_not_fetched_is_caught_up_only_since_the_begin_of_the_epoch() -> None:
    assert not ReplicaState().is_caught_up(0, 0, LAG)
    assert ReplicaState(100).is_caught_up(50, 130, LAG)
    assert not ReplicaState(100).is_caught_up(50, 131, LAG)
    assert not ReplicaState(100).has_fetched
