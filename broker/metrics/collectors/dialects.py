"""The collectors of each dialect in `metrics.dialects`. A dialect has the names that certain dashboards expect.

| dialect | collectors |
|---|---|
| strimzi | `jmx_collector`, `group_collector` |
| exporter | `exporter_collector`, `group_collector` |

Series of the process itself are in every scrape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.registry import Collector

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metrics.collectors.exporter_collector import ExporterCollector
from odradek.broker.metrics.collectors.gauge_values import ClusterGauges, Gauges, GroupGauges, PartitionGauges
from odradek.broker.metrics.collectors.group_collector import GroupLagCollector, GroupManagerCollector
from odradek.broker.metrics.collectors.jmx_collector import JmxCollector
from odradek.broker.metrics.collectors.process_io import ProcessIoCollector
from odradek.broker.metrics.counts.metrics import Metrics


class GaugeSource(Protocol):
    """The source of the values that are read at a scrape: `BrokerGauges`."""

    def read(self) -> Gauges: ...

    def read_partitions(self) -> Iterable[PartitionGauges]: ...

    def read_cluster(self) -> ClusterGauges | None: ...

    def read_groups(self) -> Iterable[GroupGauges]: ...

    def cluster_id(self) -> str: ...


def broker_registry(config: BrokerConfig, metrics: Metrics, gauges: GaugeSource, clock: Clock) -> CollectorRegistry:
    """Return the registry of one broker. Two brokers in one interpreter share only the series of the process."""
    dialects = collectors(metrics, gauges, clock, config.metrics_partition_limit)
    chosen = (each for name in dialects if name in config.metrics_dialects for each in dialects[name])
    return registry(*chosen)


def collectors(
    metrics: Metrics, gauges: GaugeSource, clock: Clock, partition_limit: int
) -> dict[str, tuple[Collector, ...]]:
    """Return the collectors of each dialect."""
    return {
        "strimzi": (
            JmxCollector(metrics, clock, gauges.read, gauges.read_partitions, partition_limit),
            GroupManagerCollector(gauges.read_groups),
        ),
        "exporter": (
            ExporterCollector(gauges.read_cluster, gauges.read_partitions, partition_limit),
            GroupLagCollector(gauges.cluster_id, gauges.read_groups, partition_limit),
        ),
    }


def registry(*collectors: Collector) -> CollectorRegistry:
    """Return a registry of these collectors and those of the process."""
    made = CollectorRegistry()
    for collector in (*collectors, ProcessIoCollector()):
        made.register(collector)
    ProcessCollector(registry=made)
    GCCollector(registry=made)
    return made
