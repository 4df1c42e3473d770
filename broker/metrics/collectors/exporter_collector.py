"""Brokers, topics and partitions under the names of kafka_exporter (github.com/danielqsj/kafka_exporter).

Dashboards for kafka_exporter work without its extra process. That process reports the whole cluster; here each broker
reports the partitions that it leads, so that sums over brokers are right:

| series | reported by |
|---|---|
| kafka_brokers, kafka_broker_info, kafka_topic_partitions | the controller |
| kafka_topic_partition_… | the leader of the partition |

Differs from kafka_exporter: partitions without a leader are not reported, because no broker has their offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from odradek.broker.metrics.collectors.gauge_values import ClusterGauges, PartitionGauges

_PREFIX = "kafka_topic_partition_"
_PARTITION_GAUGES: dict[str, tuple[str, Callable[[PartitionGauges], float]]] = {
    "current_offset": (
        "Offset after the last record that consumers may read.",
        lambda partition: partition.high_watermark,
    ),
    "oldest_offset": ("First offset of the log.", lambda partition: partition.log_start_offset),
    "leader": ("Id of the broker that leads.", lambda partition: partition.leader),
    "leader_is_preferred": (
        "1 if the first replica leads.",
        lambda partition: partition.leader == partition.preferred_leader,
    ),
    "replicas": ("Replicas of the partition.", lambda partition: partition.replicas),
    "in_sync_replica": ("Replicas in sync.", lambda partition: partition.in_sync_replicas),
    "under_replicated_partition": (
        "1 if replicas are out of sync.",
        lambda partition: partition.in_sync_replicas < partition.replicas,
    ),
}


class ExporterCollector(Collector):
    """The families. `cluster` returns None on a broker that is not the controller. Calls both once a scrape."""

    def __init__(
        self,
        cluster: Callable[[], ClusterGauges | None],
        partitions: Callable[[], Iterable[PartitionGauges]],
        partition_limit: int,
    ) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._partition_limit = partition_limit

    def collect(self) -> Iterator[Metric]:
        """Yield the families one by one, so that requests run between them."""
        cluster = self._cluster()
        if cluster is not None:
            yield from _cluster_families(cluster)
        partitions = list(self._partitions())
        if len(partitions) > self._partition_limit:
            return
        led = [partition for partition in partitions if partition.is_led_here]
        for name, (text, value) in _PARTITION_GAUGES.items():
            family = GaugeMetricFamily(_PREFIX + name, text, labels=["topic", "partition"])
            for partition in led:
                family.add_metric([partition.topic, str(partition.partition)], value(partition))
            yield family


def _cluster_families(cluster: ClusterGauges) -> Iterator[Metric]:
    yield GaugeMetricFamily("kafka_brokers", "Brokers of the cluster.", len(cluster.brokers))
    info = GaugeMetricFamily("kafka_broker_info", "1 for each broker.", labels=["id", "address"])
    for node_id, address in cluster.brokers.items():
        info.add_metric([str(node_id), address], 1)
    yield info
    counts = GaugeMetricFamily("kafka_topic_partitions", "Partitions of a topic.", labels=["topic"])
    for topic, count in cluster.partitions_by_topic.items():
        counts.add_metric([topic], count)
    yield counts
