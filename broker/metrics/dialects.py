"""Which series a scrape returns, by `metrics.dialects`: each dialect has the names that certain dashboards expect.

| dialect | collectors |
|---|---|
| strimzi | `jmx_collector`, `group_collector` |
| exporter | `exporter_collector`, `group_collector` |

Series about the process itself are always there.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.registry import Collector

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.metrics.broker_gauges import BrokerGauges
from broker.metrics.exporter_collector import ExporterCollector
from broker.metrics.group_collector import GroupLagCollector, GroupManagerCollector
from broker.metrics.jmx_collector import JmxCollector
from broker.metrics.metrics import Metrics
from broker.metrics.process_io import ProcessIoCollector


def broker_registry(config: BrokerConfig, metrics: Metrics, gauges: BrokerGauges, clock: Clock) -> CollectorRegistry:
    """A registry of one broker's own: two in one interpreter share nothing but the process."""
    limit = config.metrics_partition_limit
    dialects: dict[str, tuple[Collector, ...]] = {
        "strimzi": (
            JmxCollector(metrics, clock, gauges.read, gauges.read_partitions, limit),
            GroupManagerCollector(gauges.read_groups),
        ),
        "exporter": (
            ExporterCollector(gauges.read_cluster, gauges.read_partitions, limit),
            GroupLagCollector(gauges.cluster_id, gauges.read_groups, limit),
        ),
    }
    chosen = (each for name in dialects if name in config.metrics_dialects for each in dialects[name])
    return registry(*chosen)


def registry(*collectors: Collector) -> CollectorRegistry:
    """A registry of these, and of what is known of this process."""
    made = CollectorRegistry()
    for collector in (*collectors, ProcessIoCollector()):
        made.register(collector)
    ProcessCollector(registry=made)
    GCCollector(registry=made)
    return made
