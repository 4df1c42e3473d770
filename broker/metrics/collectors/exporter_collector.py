"""Brokers, topics and partitions under the names of kafka_exporter (github.com/danielqsj/kafka_exporter).

Dashboards for it work without the extra process that would ask the broker for all this. That process sees the whole
cluster; here each broker tells what it leads, so that a sum over brokers is right:

| series | told by |
|---|---|
| kafka_brokers, kafka_broker_info, kafka_topic_partitions | the controller |
| kafka_topic_partition_… | the leader of the partition |

Differs from kafka_exporter: it also shows partitions without a leader, of which nobody knows offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from odradek.broker.metrics.collectors.gauge_values import ClusterGauges, PartitionGauges

_PREFIX = "kafka_topic_partition_"
_PARTITION_GAUGES: dict[str, tuple[str, Callable[[PartitionGauges], float]]] = {
    "current_offset": ("Offset behind the last that consumers may read.", lambda of: of.high_watermark),
    "oldest_offset": ("First offset of the log.", lambda of: of.log_start_offset),
    "leader": ("Id of the broker that leads.", lambda of: of.leader),
    "leader_is_preferred": ("1 if the first replica leads.", lambda of: of.leader == of.preferred_leader),
    "replicas": ("Replicas of the partition.", lambda of: of.replicas),
    "in_sync_replica": ("Replicas in sync.", lambda of: of.in_sync_replicas),
    "under_replicated_partition": ("1 if replicas are out of sync.", lambda of: of.in_sync_replicas < of.replicas),
}


class ExporterCollector(Collector):
    """The families. `cluster` gives None on a broker that is not the controller; both are asked once a scrape."""

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
        """Yield the families one by one, so that a scrape can give way to requests between them."""
        cluster = self._cluster()
        if cluster is not None:
            yield from _cluster_families(cluster)
        partitions = list(self._partitions())
        if len(partitions) > self._partition_limit:
            return
        led = [of for of in partitions if of.is_led_here]
        for name, (text, value) in _PARTITION_GAUGES.items():
            family = GaugeMetricFamily(_PREFIX + name, text, labels=["topic", "partition"])
            for of in led:
                family.add_metric([of.topic, str(of.partition)], value(of))
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
