"""The generator of `docs/metrics.md`: every series with its labels, meaning and dashboards.

`python -m broker.metrics` writes the page, and a test fails when it is out of date. The page comes from the collectors
themselves, run on an example with one of everything, so that each series shows its labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

import odradek
from odradek.broker.clock import SystemClock
from odradek.broker.coordinator.group_type import CLASSIC
from odradek.broker.metrics.collectors.dashboards import DASHBOARDS, Dashboard
from odradek.broker.metrics.collectors.dialects import collectors, registry
from odradek.broker.metrics.collectors.gauge_values import (
    CleanerGauges,
    ClusterGauges,
    CommittedGauges,
    Gauges,
    GroupGauges,
    PartitionGauges,
    QuotaGauges,
    TransactionGauges,
)
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.quotas.entities import CLIENT_KINDS
from odradek.broker.storage.disk.files import Volume

PAGE = "docs/metrics.md"

_OURS = Path(odradek.__file__).parents[1] / "docker" / "grafana" / "dashboards" / "odradek.json"

_HEAD = """\
# Metrics

<!-- Generated from the collectors in broker/metrics by `make docs`; change those, not this. -->

With `metrics.port` set (`make run` has 9404), a broker answers on `metrics.host`:

| path | answer |
|---|---|
| `/metrics` | the series below, in Prometheus's text format or as OpenMetrics |
| `/healthz` | 200 while the process works |
| `/readyz` | 200 while clients are served, 503 while the broker starts or stops |

`metrics.dialects` selects the names of the series; by default both kinds below are present. Counters start at 0 when
the broker starts. With more than `metrics.partition.limit` partitions (1000) the series with a label `partition` are
omitted. Lag in seconds is the age of the batch that a group reads next. In a cluster, each broker reports the
partitions that it leads, and only the controller reports the cluster's topics, partitions and brokers, so that sums
over brokers are right.

Dashboards for Kubernetes select by labels that scraping adds there, such as `namespace`.
`docker/prometheus/prometheus.yml` shows them; with `metrics.static.labels` the broker adds them itself.

## Dashboards and alerts

| name | what it is |
|---|---|
"""

_SECTIONS = {
    "strimzi": (
        "Names of Kafka's JMX beans",
        "`metrics.dialects=strimzi`: the names that Strimzi's rules for the JMX exporter give Kafka's beans.",
    ),
    "exporter": (
        "Names of kafka_exporter and kafka-lag-exporter",
        "`metrics.dialects=exporter`: the names of series for which Apache Kafka needs another process.",
    ),
    "": ("The process", "Present in every dialect, on Linux."),
}
"""By dialect: the title of its section and the sentence under it."""


def metrics_page() -> str:
    return "".join(f"{line}\n" for line in _page())


def series_names(families: Iterable[Metric]) -> dict[str, Metric]:
    """Return the families by the names of their samples."""
    return {sample.name: family for family in families for sample in family.samples}


def _page() -> Iterator[str]:
    dashboards = (_own_dashboard(), *DASHBOARDS)
    yield _HEAD.rstrip("\n")
    for each in dashboards:
        yield f"| [{each.name}]({each.url}) | {each.about} |"
    by_dialect: dict[str, Iterable[Collector]] = {**_example_collectors(), "": [registry()]}
    for dialect, (title, about) in _SECTIONS.items():
        yield from ("", f"## {title}", "", about, "", "| series | labels | meaning | dashboards |", "|---|---|---|---|")
        for collector in by_dialect[dialect]:
            for family in collector.collect():
                yield _row(family, dashboards)


def _row(family: Metric, dashboards: Iterable[Dashboard]) -> str:
    first, *others = series_names([family])
    used = [each.name for each in dashboards if each.series.intersection([first, *others])]
    name = f"`{first}`" + "".join(f", `{other.removeprefix(first)}`" for other in others)
    return f"| {name} | {_labels(family)} | {family.documentation.rstrip('.')}. | {', '.join(used)} |"


def _labels(family: Metric) -> str:
    """Return the labels of the samples, with `or none` if there is also a series of the sum."""
    samples = [sample.labels for sample in family.samples if sample.name in (family.name, f"{family.name}_total")]
    labels = dict.fromkeys(name for own in samples for name in own)
    text = ", ".join(f"`{name}`" for name in labels)
    return f"{text} or none: the sum" if labels and {} in samples else text


def _own_dashboard() -> Dashboard:
    expressions = [
        target["expr"] for panel in json.loads(_OURS.read_text())["panels"] for target in panel.get("targets", ())
    ]
    names = frozenset(re.findall(r"\b(?:kafka|process|python|odradek)_\w+", " ".join(expressions)))
    about = "the dashboard of this project; `docker/compose.yaml` starts Grafana with it"
    return Dashboard("Odradek", about, "../docker/grafana/dashboards/odradek.json", names)


class _Example:
    """Gauges of a broker with one of everything."""

    def read(self) -> Gauges:
        cleaner = CleanerGauges(uncleanable={"data": (0, 0)})
        return Gauges(
            partition_count=1,
            log_directories={"data": False},
            volumes={"data": Volume(1, 1)},
            cleaner=cleaner,
            purgatory_sizes={"Fetch": 0},
            transactions=TransactionGauges({"Ongoing": 1}),
            quotas=[QuotaGauges(kind, "alice", "app", 0.0, 0.0) for kind in CLIENT_KINDS],
        )

    def read_partitions(self) -> Iterable[PartitionGauges]:
        return [PartitionGauges("orders", 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, True, "ReplicaFetcherThread-0-1")]

    def read_cluster(self) -> ClusterGauges:
        return ClusterGauges({1: "localhost:9092"}, {"orders": 1})

    def read_groups(self) -> Iterable[GroupGauges]:
        return [GroupGauges("readers", CLASSIC, "Stable", 1, [CommittedGauges("orders", 0, 0, 0, 0.0)])]

    def cluster_id(self) -> str:
        return "cluster"


def _example_collectors() -> dict[str, tuple[Collector, ...]]:
    metrics = Metrics()
    metrics.topic("orders")
    metrics.metadata_store.size_bytes = metrics.metadata_store.quota_bytes = 1
    api = metrics.api("Produce")
    api.versions[0] = api.errors[0] = 1
    listener = metrics.listener("PLAINTEXT")
    listener.software_opened("client", "1")
    listener.certificate_expiry = 0
    return collectors(metrics, _Example(), SystemClock(), partition_limit=1)
