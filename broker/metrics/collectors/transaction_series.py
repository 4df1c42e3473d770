"""The series of transactions: Kafka's names for leaders and coordinators, and our own for open transactions."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from odradek.broker.metrics.collectors.gauge_values import TransactionGauges
from odradek.broker.metrics.collectors.summaries import add_times, times
from odradek.broker.metrics.counts.transactions import TransactionCounts

_COORDINATOR = "kafka_server_transaction_coordinator_metrics_"
_LEADER = "kafka_server_addpartitionstotxnmanager_"
_MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"


def transaction_series(counts: TransactionCounts, gauges: TransactionGauges, now: float) -> Iterator[Metric]:
    """Yield all families; `now` is the monotonic time."""
    yield GaugeMetricFamily(
        f"{_LEADER}verificationfailurerate_count",
        "Checks of a partition's first batch of a transaction that failed.",
        counts.verification_failures,
    )
    verified = times(f"{_LEADER}verificationtimems", "Time to check a partition's first batch of a transaction.")
    add_times(verified, {}, counts.verified)
    yield verified
    yield GaugeMetricFamily(
        f"{_MARKERS}unknowndestinationqueuesize",
        "Markers of transactions that wait because their partition has no leader.",
        gauges.unknown_destination_queue_size,
    )
    yield GaugeMetricFamily(
        f"{_MARKERS}logappendretryqueuesize",
        "Completed transactions whose last record is to be written again.",
        gauges.log_append_retry_queue_size,
    )
    yield GaugeMetricFamily(
        f"{_COORDINATOR}partition_load_time_max",
        "Longest time, in milliseconds, that loading a partition of __transaction_state took.",
        gauges.longest_load_seconds * 1000,
    )
    yield GaugeMetricFamily(
        f"{_COORDINATOR}transaction_timeout_rate",
        "Transactions a second that exceeded their time limit and were aborted.",
        counts.timeout_rate(now),
    )
    yield GaugeMetricFamily(
        f"{_COORDINATOR}transactional_id_count",
        "Transactional ids that are coordinated here.",
        sum(gauges.by_state.values()),
    )
    yield GaugeMetricFamily(
        f"{_COORDINATOR}active_transaction_total_time_max",
        "Milliseconds since the start of the oldest open transaction that is coordinated here; 0 without one.",
        gauges.oldest_open_seconds * 1000,
    )
    completed = times(
        f"{_COORDINATOR}prepare_commit_to_complete_commit_latency",
        "Time from the decision of a transaction until all of its markers are written.",
    )
    add_times(completed, {}, counts.completed)
    yield completed
    states = GaugeMetricFamily(
        "odradek_transactions", "Transactional ids that are coordinated here, by state.", labels=["state"]
    )
    for state, count in gauges.by_state.items():
        states.add_metric([state], count)
    yield states
    yield GaugeMetricFamily(
        "odradek_oldest_open_transaction_seconds",
        "Seconds since the start of the oldest open transaction that is coordinated here; 0 without one.",
        gauges.oldest_open_seconds,
    )
