from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topic_names import TRANSACTION_STATE
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metrics.collectors.gauge_values import Gauges, TransactionGauges
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode
from tests.broker.replicating import three_brokers
from tests.handlers.busy_threads import busy_disk_threads
from tests.handlers.requests import create
from tests.handlers.transactional_batches import ProducingProducer
from tests.handlers.transactional_producer import TransactionalProducer
from tests.metrics.collectors.scraping import Scraped, of, partition
from tests.metrics.collectors.test_cluster_gauges import scrape
from tests.wire import Wire

COORDINATOR = "kafka_server_transaction_coordinator_metrics_"
LEADER = "kafka_server_addpartitionstotxnmanager_"
MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"


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
            {"Empty": 3, "Ongoing": 2}, 1.5, 0.25, unknown_destination_queue_size=4, log_append_retry_queue_size=5
        )
    )
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


async def test_a_broker_reports_its_open_transactions_until_they_end() -> None:
    clock = ManualClock()
    async with (
        Broker({"metrics.port": "0", "transaction.state.log.num.partitions": "1"}, clock=clock) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        await create(wire, "t")
        producer = ProducingProducer(wire)
        await producer.start()
        await TransactionalProducer(wire, "other").start()
        assert (await producer.produce("t", b"a")).error_code == ErrorCode.NONE
        clock.advance(3_000)

        samples = await scrape(broker)
        assert [samples[of("odradek_transactions", state=state)] for state in ("Empty", "Ongoing")] == [1, 1]
        assert samples[of("odradek_oldest_open_transaction_seconds")] == 3
        assert samples[of(COORDINATOR + "active_transaction_total_time_max")] == 3_000
        assert samples[of(COORDINATOR + "transactional_id_count")] == 2
        assert samples[of("kafka_cluster_partition_laststableoffsetlag", topic="t", partition="0")] == 1
        assert samples[of(LEADER + "verificationtimems_count")] == 1
        assert samples[of(LEADER + "verificationfailurerate_count")] == 0
        assert samples[of(COORDINATOR + "prepare_commit_to_complete_commit_latency_count")] == 0

        await producer.finish(commit=True)

        samples = await scrape(broker)
        assert samples[of("odradek_transactions", state="CompleteCommit")] == 1
        assert samples[of("odradek_transactions", state="Ongoing")] == 0
        assert samples[of("odradek_oldest_open_transaction_seconds")] == 0
        assert samples[of("kafka_cluster_partition_laststableoffsetlag", topic="t", partition="0")] == 0
        assert samples[of(COORDINATOR + "prepare_commit_to_complete_commit_latency_count")] == 1


async def test_a_broker_counts_refused_batches_and_transactions_that_timed_out() -> None:
    clock = ManualClock()
    async with (
        Broker({"metrics.port": "0", "transaction.state.log.num.partitions": "1"}, clock=clock) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        await create(wire, "t", 2)
        producer = ProducingProducer(wire, is_new=False)
        await producer.start(timeout_ms=2_000)
        await producer.add_partition("t", 0)
        assert (await producer.produce("t", b"a")).error_code == ErrorCode.NONE
        assert (await producer.produce("t", b"a", index=1)).error_code == ErrorCode.INVALID_TXN_STATE

        samples = await scrape(broker)
        assert samples[of(LEADER + "verificationtimems_count")] == 2
        assert samples[of(LEADER + "verificationfailurerate_count")] == 1

        metrics = broker.services.metrics
        metrics.tick(clock.monotonic(), 5.0)
        clock.advance(3_000)
        await broker.services.transactions.abort_timed_out()

        samples = await scrape(broker)
        assert samples[of("odradek_transactions", state="CompleteAbort")] == 1
        assert samples[of(COORDINATOR + "transaction_timeout_rate")] == pytest.approx(1 / 3)


async def test_a_transaction_that_timed_out_counts_once_however_long_its_abort_takes() -> None:
    clock = ManualClock()
    properties = {"transaction.state.log.num.partitions": "1", "log.flush.interval.messages": "1"}
    async with Broker(properties, clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 1)
        producer = ProducingProducer(wire, is_new=False)
        await producer.start(timeout_ms=2_000)
        await producer.add_partition("t", 0)
        clock.advance(3_000)
        async with busy_disk_threads(broker):  # so that the decision is not synced
            for _ in range(3):
                await broker.services.transactions.abort_timed_out()
            assert broker.services.metrics.transactions.timed_out == 0
        while (await producer.describe()).transaction_state != "CompleteAbort":
            pass

        assert broker.services.metrics.transactions.timed_out == 1


async def test_the_longest_load_of_the_state_is_reported_after_a_restart(tmp_path: Path) -> None:
    properties = {
        "metrics.port": "0",
        "transaction.state.log.num.partitions": "1",
        "log.dirs": str(tmp_path / "data"),
    }
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await TransactionalProducer(wire, "t").start()

    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await TransactionalProducer(wire, "t").find_coordinator()
        assert (await scrape(broker))[of(COORDINATOR + "partition_load_time_max")] > 0


async def until(broker: Broker, series: str, value: float) -> None:
    """Scrape until a series has the value."""
    async with asyncio.timeout(60):
        while (await scrape(broker))[of(series)] != value:
            pass


async def test_a_decided_transaction_that_waits_for_other_brokers_is_counted_until_it_is_completed(
    tmp_path: Path,
) -> None:
    async with three_brokers(tmp_path, metrics_port="0", replica_lag_time_max_ms="1000") as cluster:
        coordinator = cluster.brokers[1]
        metadata = coordinator.services.metadata
        await create_topic(metadata, TRANSACTION_STATE, assignments={0: [1, 2]}, configs={"min.insync.replicas": "2"})
        await create_topic(metadata, "t", assignments={0: [3]})
        await cluster.until(lambda: None not in (cluster.partition(2, TRANSACTION_STATE), cluster.partition(3)))
        async with Wire("127.0.0.1", coordinator.port) as wire:
            producer = TransactionalProducer(wire)
            await producer.start()
            assert await producer.add({"t": [0]}) == {("t", 0): ErrorCode.NONE}

            await cluster.stop(3)
            await cluster.until(lambda: cluster.leader() == -1)
            assert await producer.end(commit=True, version=3) is ErrorCode.NONE
            await until(coordinator, MARKERS + "unknowndestinationqueuesize", 1)

            await cluster.stop(2)
            await cluster.until(lambda: list(metadata.image.topics[TRANSACTION_STATE].partitions[0].isr) == [1])
            await cluster.start(3, metrics_port="0")
            await until(coordinator, MARKERS + "unknowndestinationqueuesize", 0)
            await until(coordinator, MARKERS + "logappendretryqueuesize", 1)
            assert (await scrape(coordinator))[of("odradek_transactions", state="PrepareCommit")] == 1

            await cluster.start(2, metrics_port="0")
            await until(coordinator, MARKERS + "logappendretryqueuesize", 0)
            assert (await producer.describe()).transaction_state == "CompleteCommit"
