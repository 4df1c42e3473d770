"""The metrics of a broker as a scrape returns them."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families as parse_text

from odradek.broker.metrics.collectors.dialects import registry
from odradek.broker.metrics.collectors.exporter_collector import ExporterCollector
from odradek.broker.metrics.collectors.gauge_values import ClusterGauges, Gauges, PartitionGauges
from odradek.broker.metrics.collectors.jmx_collector import JmxCollector
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.server.exposition import exposition
from odradek.broker.testing.clock import ManualClock

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Scraped:
    """A broker's metrics, and what a scrape of them gives."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.clock = ManualClock()
        self.gauges = Gauges()
        self.partitions: list[PartitionGauges] = []
        self.cluster: ClusterGauges | None = None
        self.partition_limit = 1000

    async def text(self, accept: str = "", static_labels: dict[str, str] | None = None) -> tuple[str, str]:
        collector = JmxCollector(
            self.metrics, self.clock, lambda: self.gauges, lambda: self.partitions, self.partition_limit
        )
        exporter = ExporterCollector(lambda: self.cluster, lambda: self.partitions, self.partition_limit)
        body, content_type = await exposition(registry(collector, exporter), accept, static_labels or {})
        return body.decode(), content_type

    async def samples(self, **static_labels: str) -> Samples:
        text, _ = await self.text(static_labels=static_labels)
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in parse_text(text)
            for sample in family.samples
        }


def partition(number: int, **state: Any) -> PartitionGauges:
    """A partition with a replica out of sync, led here by its first one."""
    return PartitionGauges("t", number, 100, 5, 9, 8, 2, 3, 2, 2, 1, 1, True)._replace(**state)


def of(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())
