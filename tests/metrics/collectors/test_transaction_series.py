from __future__ import annotations

import pytest

from odradek.broker.metrics.collectors.gauge_values import Gauges, TransactionGauges
from tests.metrics.collectors.scraping import Scraped, of, partition

COORDINATOR = "kafka_server_transaction_coordinator_metrics_"


async def test_checks_of_batches_are_counted_with_their_times(scraped: Scraped) -> None:
    scraped.metrics.transactions.verification_failures += 2
    scraped.metrics.transactions.verified.record_all([0.02] * 5)

    samples = await scraped.samples()

    prefix = "kafka_server_addpartitionstotxnmanager_verification"
    assert samples[of(prefix + "failurerate_count")] == 2
    assert samples[of(prefix + "timems", quantile="0.99")] == pytest.approx(20, rel=0.05)
    assert samples[of(prefix + "timems_count")] == 5


async def test_a_coordinators_transactions_are_counted_by_state(scraped: Scraped) -> None:
    scraped.gauges = Gauges(
        transactions=TransactionGauges(
            {"Empty": 3, "Ongoing": 2}, 1.5, unknown_destination_queue_size=4, log_append_retry_queue_size=5
        )
    )
    scraped.metrics.transactions.longest_load = 0.25
    scraped.metrics.transactions.completed.record_all([0.04])

    samples = await scraped.samples()

    assert samples[of("odradek_transactions", state="Empty")] == 3
    assert samples[of("odradek_transactions", state="Ongoing")] == 2
    assert samples[of("odradek_oldest_open_transaction_seconds")] == 1.5
    assert samples[of(COORDINATOR + "active_transaction_total_time_max")] == 1500
    assert samples[of(COORDINATOR + "transactional_id_count")] == 5
    assert samples[of(COORDINATOR + "partition_load_time_max")] == 250
    assert samples[of(COORDINATOR + "prepare_commit_to_complete_commit_latency_sum")] == pytest.approx(40)
    markers = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
    assert samples[of(markers + "unknowndestinationqueuesize")] == 4
    assert samples[of(markers + "logappendretryqueuesize")] == 5


async def test_the_rate_of_time_outs_is_that_of_the_last_half_minute(scraped: Scraped) -> None:
    counts = scraped.metrics.transactions
    name = of(COORDINATOR + "transaction_timeout_rate")
    assert (await scraped.samples())[name] == 0
    for _ in range(20):
        counts.timed_out += 10
        scraped.clock.advance(5_000)
        scraped.metrics.tick(scraped.clock.monotonic(), 5.0)
    assert (await scraped.samples())[name] == pytest.approx(2, rel=0.05)
    for _ in range(20):
        scraped.clock.advance(5_000)
        scraped.metrics.tick(scraped.clock.monotonic(), 5.0)
    assert (await scraped.samples())[name] == 0


async def test_the_records_that_an_open_transaction_holds_back_are_those_of_the_leader(scraped: Scraped) -> None:
    scraped.partitions = [
        partition(0, last_stable_offset_lag=3),
        partition(1, last_stable_offset_lag=3, is_led_here=False),
    ]

    samples = await scraped.samples()

    name = "kafka_cluster_partition_laststableoffsetlag"
    assert [samples[of(name, topic="t", partition=index)] for index in ("0", "1")] == [3, 0]
