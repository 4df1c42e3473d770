"""The values that are read at a scrape: log sizes, partition counts, states of groups. Counters are in `counts`.

`broker_gauges` reads these values, and the collectors turn them into series.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from odradek.broker.storage.disk.files import Volume


class CleanerGauges(msgspec.Struct, frozen=True):
    """The state of compaction. `uncleanable`: the number of logs that it skips, and their bytes, by log directory."""

    max_dirty_percent: int = 0
    time_since_last_run_ms: int = 0
    recopy_percent: int = 0
    max_clean_time_seconds: float = 0
    max_buffer_utilization_percent: float = 0
    max_compaction_delay_seconds: float = 0
    dead_workers: int = 0
    uncleanable: dict[str, tuple[int, int]] = {}


class FetcherGauges(msgspec.Struct, frozen=True):
    """The state of the loops that fetch from leaders. `stopped_replicas` is a count since the start."""

    max_lag: int = 0
    min_fetch_rate: float = 0
    failed_partitions: int = 0
    dead_threads: int = 0
    stopped_replicas: int = 0


class TransactionGauges(msgspec.Struct, frozen=True):
    """The transactions that are coordinated here. `by_state` has Kafka's names of the states."""

    by_state: dict[str, int] = {}
    oldest_open_seconds: float = 0
    longest_load_seconds: float = 0  # of one partition of `__transaction_state`
    unknown_destination_queue_size: int = 0
    log_append_retry_queue_size: int = 0


class QuotaGauges(NamedTuple):
    """The use of one quota; `user` or `client_id` is empty if it does not matter. `tokens` are those of a bucket."""

    kind: str
    user: str
    client_id: str
    rate: float
    throttle_ms: float
    tokens: float = 0.0


class Gauges(msgspec.Struct):
    """The state of a broker at the time of a scrape; see the names in `jmx_series`.

    Those of the cluster, from `offline_partitions` to `fenced_brokers`, are 0 unless this broker is the controller.
    """

    broker_state: int = 0  # Kafka's BrokerState: 1 starting, 2 recovery, 3 running, 6 pending controlled shutdown
    leader_count: int = 0
    partition_count: int = 0
    access_rule_count: int = 0
    under_replicated_partitions: int = 0
    under_min_isr_partitions: int = 0
    at_min_isr_partitions: int = 0
    reassigning_partitions: int = 0
    offline_replicas: int = 0
    offline_log_directories: int = 0
    log_directories: dict[str, bool] = {}  # by path: True if it has failed
    volumes: dict[str, Volume] = {}  # by path of a log directory: its file system
    producer_ids: int = 0
    is_active_controller: bool = False
    offline_partitions: int = 0
    preferred_replica_imbalance: int = 0
    global_topics: int = 0
    global_partitions: int = 0
    active_brokers: int = 0
    fenced_brokers: int = 0
    metadata_frozen: bool = False
    fetch_sessions: int = 0
    fetch_session_partitions: int = 0
    fetch_session_evictions: int = 0
    cleaner: CleanerGauges = CleanerGauges()
    purgatory_sizes: dict[str, int] = {}  # by the delayed operation: Produce, Fetch, Rebalance
    fetchers: FetcherGauges = FetcherGauges()
    transactions: TransactionGauges = TransactionGauges()
    quotas: list[QuotaGauges] = []


class ClusterGauges(NamedTuple):
    """The cluster: addresses of the running brokers by id, and partition counts of topics by name."""

    brokers: dict[int, str]
    partitions_by_topic: dict[str, int]


class PartitionGauges(NamedTuple):
    """One partition with a log here. End offsets are exclusive. `leader` is -1 if there is none.

    `last_stable_offset_lag`: the committed records that an open transaction holds back from read_committed consumers.
    `fetcher` is the name of the loop that fetches it, "" if it is led here or not fetched; then it has no `lag`.
    """

    topic: str
    partition: int
    size_bytes: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    segments: int
    replicas: int
    in_sync_replicas: int
    min_in_sync_replicas: int
    leader: int
    preferred_leader: int
    is_led_here: bool
    fetcher: str = ""
    lag: int = 0
    last_stable_offset_lag: int = 0


class CommittedGauges(NamedTuple):
    """A group's committed offset of one partition. `lag` is None if another broker leads the partition.

    `lag_seconds` is the age of the batch that the group reads next: 0 if it has read everything, None if unknown.
    """

    topic: str
    partition: int
    offset: int
    lag: int | None
    lag_seconds: float | None


class GroupGauges(NamedTuple):
    """One group that is coordinated here."""

    group_id: str
    group_type: str
    state: str
    members: int
    committed: list[CommittedGauges]
