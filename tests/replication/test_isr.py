from __future__ import annotations

from odradek.broker.replication.isr import effective_min_insync, has_reached, high_watermark, lagging
from odradek.broker.replication.replica_state import ReplicaState


def follower(end: int, last_caught_up_time: float = 0.0) -> ReplicaState:
    state = ReplicaState(last_caught_up_time)
    state.log_end_offset = end
    return state


FOLLOWERS = {2: follower(7), 3: follower(20)}


def test_the_high_watermark_of_a_single_replica_is_its_log_end() -> None:
    assert high_watermark(42, {}, {1}, ()) == 42


def test_the_slowest_in_sync_replica_limits_the_high_watermark() -> None:
    assert high_watermark(42, FOLLOWERS, {1, 2, 3}, ()) == 7
    assert high_watermark(5, FOLLOWERS, {1, 2, 3}, ()) == 5


def test_replicas_out_of_sync_do_not_limit_the_high_watermark() -> None:
    assert high_watermark(42, FOLLOWERS, {1, 3}, ()) == 20


def test_a_replica_that_is_about_to_join_limits_the_high_watermark() -> None:
    assert high_watermark(42, FOLLOWERS, {1, 3}, {2}) == 7


def test_an_in_sync_replica_without_a_fetch_keeps_the_high_watermark_where_it_is() -> None:
    assert high_watermark(42, {2: ReplicaState()}, {1, 2}, ()) == -1


def test_an_in_sync_follower_lags_if_it_was_not_caught_up_for_the_longest_time_allowed() -> None:
    followers = {2: follower(30, 100.0), 3: follower(30, 99.0), 4: follower(42, 0.0), 5: follower(0, 0.0)}

    assert lagging({1, 2, 3, 4}, followers, 42, now=130.0, lag_time_max=30.0) == {3}


def test_a_follower_has_reached_the_leader_at_the_high_watermark_and_the_start_of_the_epoch() -> None:
    assert has_reached(10, high_watermark=10, epoch_start_offset=8)
    assert not has_reached(9, high_watermark=10, epoch_start_offset=8)
    assert not has_reached(10, high_watermark=8, epoch_start_offset=11)
    assert not has_reached(10, high_watermark=8, epoch_start_offset=-1)


def test_min_insync_is_at_most_the_number_of_replicas() -> None:
    assert effective_min_insync(2, 1) == 1
    assert effective_min_insync(2, 3) == 2
