"""The reader of a broker's gauges: states, sizes and offsets, which are read at a scrape and counted nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.broker.coordinator.transactions.transaction import Status
from odradek.broker.metadata.image import BrokerImage, MetadataImage
from odradek.broker.metrics.collectors.gauge_values import (
    CleanerGauges,
    ClusterGauges,
    CommittedGauges,
    FetcherGauges,
    Gauges,
    GroupGauges,
    PartitionGauges,
    QuotaGauges,
    TransactionGauges,
)
from odradek.broker.metrics.collectors.group_lag import GroupLag
from odradek.broker.metrics.collectors.quota_series import last_used
from odradek.broker.metrics.collectors.unclean_elections import UncleanElections
from odradek.broker.quotas.usage import MutationUsage
from odradek.broker.replication.isr import effective_min_insync
from odradek.broker.replication.partition import Partition
from odradek.broker.request.services import Services
from odradek.broker.storage.compaction.cleaner import Cleaner
from odradek.broker.storage.disk.files import Volume
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.log_dirs import LogDirs
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:  # a broker alone has no fetchers, and does not import them
    from odradek.broker.replication.follower.fetchers import Fetchers

STARTING = 1
RECOVERY = 2
RUNNING = 3
STOPPING = 6
"""Kafka's BrokerState."""

VOLUMES_REFRESH_MS = 10_000
"""The interval of `BrokerGauges.refresh_volume`, for each log directory."""

_STORED_STATUSES = [status for status in Status if status < Status.DEAD]


class BrokerGauges:
    """The gauges of one broker. `Broker` sets `state`; everything else can be read after `attach`."""

    def __init__(self) -> None:
        self.state = STARTING
        self._services: Services | None = None
        self._log_dirs: LogDirs | None = None
        self._cleaner: Cleaner | None = None
        self._group_lag: GroupLag | None = None
        self._fetchers: Fetchers | None = None
        self._volumes: dict[str, Volume] = {}

    def attach(self, services: Services, log_dirs: LogDirs, cleaner: Cleaner, group_lag: GroupLag) -> None:
        """Set the parts of the broker that the gauges are read from."""
        self._services = services
        self._log_dirs = log_dirs
        self._cleaner = cleaner
        self._group_lag = group_lag
        elections = UncleanElections(services.config.node_id, services.metrics)
        services.metadata.on_change(elections.image_changed)

    def attach_fetchers(self, fetchers: Fetchers) -> None:
        """Set the fetchers of a broker that may have others beside it."""
        self._fetchers = fetchers

    async def refresh_volume(self, log_dir: LogDir) -> None:
        """Read the file system of a log directory, on a thread: no scrape, and no other directory, waits for a disk."""
        assert self._services is not None  # `attach`
        try:
            self._volumes[str(log_dir.path)] = await self._services.partitions.volume_of(log_dir)
        except KafkaError:
            pass  # it has failed, which has its own series, or is read again next time

    def read(self) -> Gauges:
        """Read all gauges; with a thousand partitions this takes a few milliseconds."""
        services, log_dirs = self._services, self._log_dirs
        if services is None or log_dirs is None or self._cleaner is None:
            return Gauges(broker_state=self.state)
        image = services.metadata.image
        purgatories = services.produce_purgatory, services.deletion_purgatory, services.fetch_purgatory
        online = {str(each.path) for each in log_dirs.online}
        gauges = Gauges(
            broker_state=self.state,
            partition_count=len(services.partitions),
            access_rule_count=len(services.metadata.image.rules),
            offline_log_directories=len(log_dirs.offline),
            log_directories={str(each.path): each.failure.error is not None for each in log_dirs.directories},
            volumes={path: volume for path, volume in self._volumes.items() if path in online},
            is_active_controller=_is_active_controller(services),
            metadata_frozen=services.metadata.why_frozen is not None,
            fetch_sessions=len(services.fetch_sessions),
            fetch_session_partitions=services.fetch_sessions.partitions_count,
            fetch_session_evictions=services.fetch_sessions.evictions,
            cleaner=_read_cleaner(self._cleaner, log_dirs),
            purgatory_sizes={each.name: len(each) for each in purgatories},
            fetchers=self._read_fetchers(services),
            transactions=_read_transactions(services),
            quotas=_read_quotas(services),
        )
        for partition in services.partitions:
            _count_partition(gauges, partition)
        if gauges.is_active_controller:
            _count_cluster(gauges, image)
        if log_dirs.offline:
            gauges.offline_replicas += _unopened_replicas(services)
        return gauges

    def _read_fetchers(self, services: Services) -> FetcherGauges:
        fetchers = self._fetchers
        if fetchers is None:
            return FetcherGauges()
        now = services.clock.monotonic()
        return FetcherGauges(
            max_lag=fetchers.max_lag,
            min_fetch_rate=min([each.rate(now) for each in services.metrics.fetchers.values()], default=0),
            failed_partitions=fetchers.failed_partitions,
            dead_threads=fetchers.dead_loops,
            stopped_replicas=fetchers.stopped_replicas,
        )

    def read_cluster(self) -> ClusterGauges | None:
        """Return the gauges of the cluster; None unless this broker is the controller: only one reports them."""
        if self._services is None:
            return None
        image = self._services.metadata.image
        if image.controller_id != self._services.config.node_id:
            return None
        return ClusterGauges(
            brokers={node_id: _address(broker) for node_id, broker in image.brokers.items()},
            partitions_by_topic={name: len(topic.partitions) for name, topic in image.topics.items()},
        )

    def read_partitions(self) -> Iterator[PartitionGauges]:
        """Yield the gauges of each partition that has a log here."""
        lags = {} if self._fetchers is None else {id(lag.partition): lag for lag in self._fetchers.lags()}
        for partition in self._services.partitions if self._services is not None else ():
            log = partition.log
            lag = lags.get(id(partition))
            yield PartitionGauges(
                topic=partition.topic,
                partition=partition.index,
                size_bytes=log.size_bytes,
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
                high_watermark=partition.high_watermark,
                segments=log.segments_count,
                replicas=_replication_factor(partition),
                in_sync_replicas=len(partition.isr),
                min_in_sync_replicas=effective_min_insync(log.config.min_insync_replicas, len(partition.replicas)),
                leader=partition.leader,
                preferred_leader=partition.replicas[0],
                is_led_here=partition.is_leader,
                fetcher="" if lag is None else f"ReplicaFetcherThread-{lag.number}-{lag.leader}",
                lag=0 if lag is None else lag.records,
                last_stable_offset_lag=max(partition.high_watermark - log.last_stable_offset, 0),
            )

    def cluster_id(self) -> str:
        """Return the id of the cluster, or "" before it is known."""
        return (self._services.metadata.image.cluster_id or "") if self._services is not None else ""

    def read_groups(self) -> Iterator[GroupGauges]:
        """Yield each group that is coordinated here, with its committed offsets."""
        if self._services is None:
            return
        for shard in self._services.groups.shards():
            for group_id, group in tuple(shard.groups.items()):
                committed = [
                    self._committed(group_id, topic, index, commit.offset)
                    for topic, index, commit in shard.offsets.commits_of(group_id)
                ]
                yield GroupGauges(group_id, group.group_type, group.state, group.members_count, committed)

    def _committed(self, group_id: str, topic: str, index: int, offset: int) -> CommittedGauges:
        assert self._group_lag is not None
        lag = self._lag(topic, index, offset)
        seconds = self._group_lag.seconds(group_id, topic, index) if lag else 0.0
        return CommittedGauges(topic, index, offset, lag, None if lag is None else seconds)

    def _lag(self, topic: str, index: int, offset: int) -> int | None:
        assert self._services is not None
        partition = self._services.partitions.led(topic, index)
        return None if partition is None else max(partition.high_watermark - offset, 0)


def _read_cleaner(cleaner: Cleaner, log_dirs: LogDirs) -> CleanerGauges:
    report = cleaner.report
    return CleanerGauges(
        max_dirty_percent=report.max_dirty_percent,
        time_since_last_run_ms=report.time_since_last_run_ms,
        recopy_percent=report.recopy_percent,
        max_clean_time_seconds=report.last.seconds,
        max_buffer_utilization_percent=100 * report.last.buffer_utilization,
        max_compaction_delay_seconds=report.max_compaction_delay_seconds,
        dead_workers=report.dead_workers,
        uncleanable={str(each.path): cleaner.uncleanable(each) for each in log_dirs.directories},
    )


def _read_quotas(services: Services) -> list[QuotaGauges]:
    now = services.clock.monotonic()
    return [
        QuotaGauges(
            kind,
            user,
            client_id,
            usage.rate(now),
            usage.average_throttle_ms(now),
            usage.tokens(now) if isinstance(usage, MutationUsage) else 0.0,
        )
        for kind, user, client_id, usage in last_used(services.throttling.quotas.uses(now))
    ]


def _read_transactions(services: Services) -> TransactionGauges:
    """Count the transactional ids by state, as fast as that goes: there may be a hundred thousand."""
    statuses: Counter[Status] = Counter()
    starts = []
    for shard in services.transactions.shards():
        statuses.update([each.status for each in shard.transactions.values()])
        starts += [shard.transactions[transactional_id].start_ms for transactional_id in shard.open]
    markers = services.transactions.markers
    return TransactionGauges(
        by_state={status.label: statuses[status] for status in _STORED_STATUSES},
        oldest_open_seconds=max(services.clock.time_ms() - min(starts), 0) / 1000 if starts else 0,
        longest_load_seconds=services.transactions.longest_load_seconds,
        unknown_destination_queue_size=markers.unknown_destinations,
        log_append_retry_queue_size=markers.log_append_retries,
    )


def _address(broker: BrokerImage) -> str:
    first = broker.listeners[0]
    return f"{first.host}:{first.port}"


def _count_partition(gauges: Gauges, partition: Partition) -> None:
    gauges.producer_ids += len(partition.log.producers)
    gauges.offline_replicas += partition.offline
    if not partition.is_leader:
        return
    in_sync = len(partition.isr)
    minimum = effective_min_insync(partition.log.config.min_insync_replicas, len(partition.replicas))
    gauges.leader_count += 1
    gauges.under_replicated_partitions += in_sync < _replication_factor(partition)
    gauges.under_min_isr_partitions += in_sync < minimum
    gauges.at_min_isr_partitions += in_sync == minimum
    image = partition.image
    gauges.reassigning_partitions += image is not None and bool(image.adding_replicas or image.removing_replicas)


def _replication_factor(partition: Partition) -> int:
    """Return the number of replicas without those that a reassignment adds (KIP-352)."""
    adding = () if partition.image is None else partition.image.adding_replicas
    return len(partition.replicas) - len(adding)


def _is_active_controller(services: Services) -> bool:
    """Return whether this broker is the controller for certain: without a session another one may be."""
    metadata = services.metadata
    is_controller = metadata.image.controller_id == services.config.node_id
    return is_controller and services.clock.boot_time() < metadata.lease_deadline()


def _count_cluster(gauges: Gauges, image: MetadataImage) -> None:
    gauges.active_brokers = len(image.brokers)
    gauges.fenced_brokers = len((image.known.keys() | image.registered.keys()) - image.brokers.keys())
    gauges.global_topics = len(image.topics)
    for topic in image.topics.values():
        gauges.global_partitions += len(topic.partitions)
        for state in topic.partitions:
            gauges.offline_partitions += state.leader < 0
            gauges.preferred_replica_imbalance += state.leader != state.replicas[0]


def _unopened_replicas(services: Services) -> int:
    """Return the number of replicas on this broker that no directory has: they are in one that failed at the start."""
    partitions, node_id = services.partitions, services.config.node_id
    assigned = sum(
        node_id in state.replicas for topic in partitions.image.topics.values() for state in topic.partitions
    )
    return max(assigned - len(partitions), 0)
