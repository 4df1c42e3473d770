"""Summaries of durations, in milliseconds, as jmx_exporter makes them of Kafka's histograms."""

from __future__ import annotations

from prometheus_client.core import Metric

from odradek.broker.metrics.counts.histogram import DurationHistogram

# The percentiles of Kafka's beans, under the label values that jmx_exporter makes of them.
QUANTILES = {"0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999}


def times(name: str, text: str) -> Metric:
    """Return a family without samples."""
    return Metric(name, f"{text} Milliseconds; quantiles are about the last minutes.", "summary")


def add_times(family: Metric, labels: dict[str, str], histogram: DurationHistogram) -> None:
    """Add the quantiles, the number and the sum of the durations."""
    for label, seconds in zip(QUANTILES, histogram.quantiles(list(QUANTILES.values())), strict=True):
        family.add_sample(family.name, {**labels, "quantile": label}, seconds * 1000)
    family.add_sample(family.name + "_count", labels, histogram.count)
    family.add_sample(family.name + "_sum", labels, histogram.sum * 1000)
