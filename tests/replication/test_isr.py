from __future__ import annotations

from odradek.broker.replication.isr import effective_min_insync, high_watermark


def test_a_lone_replica_is_as_far_as_its_own_log() -> None:
    assert high_watermark({1: 10}, {1: 42}) == 42


def test_the_slowest_in_sync_replica_holds_the_high_watermark() -> None:
    assert high_watermark([1, 2, 3], {1: 42, 2: 7, 3: 20}) == 7


def test_replicas_that_are_not_in_sync_hold_nothing_back() -> None:
    assert high_watermark([1, 3], {1: 42, 2: 7, 3: 20}) == 20


def test_an_in_sync_replica_that_was_never_heard_of_counts_as_empty() -> None:
    assert high_watermark([1, 2], {1: 42}) == 0


def test_min_insync_is_never_more_than_there_are_replicas() -> None:
    assert effective_min_insync(2, 1) == 1
    assert effective_min_insync(2, 3) == 2
