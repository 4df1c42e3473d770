from __future__ import annotations

from odradek.broker.replication.isr import effective_min_insync, high_watermark


def test_the_high_watermark_of_a_single_replica_is_its_log_end() -> None:
    assert high_watermark({1: 10}, {1: 42}) == 42


def test_the_slowest_in_sync_replica_limits_the_high_watermark() -> None:
    assert high_watermark([1, 2, 3], {1: 42, 2: 7, 3: 20}) == 7


def test_replicas_out_of_sync_do_not_limit_the_high_watermark() -> None:
    assert high_watermark([1, 3], {1: 42, 2: 7, 3: 20}) == 20


def test_an_in_sync_replica_without_a_report_counts_as_empty() -> None:
    assert high_watermark([1, 2], {1: 42}) == 0


def test_min_insync_is_at_most_the_number_of_replicas() -> None:
    assert effective_min_insync(2, 1) == 1
    assert effective_min_insync(2, 3) == 2
