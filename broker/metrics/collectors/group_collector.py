"""Groups, their committed offsets and lag, under the names that dashboards for Kafka expect.

| series | whose name |
|---|---|
| kafka_coordinator_group_groupmetadatamanager_numgroups, …numgroupsstable, …, numoffsets | Kafka's beans |
| kafka_server_group_coordinator_metrics_group_count, _consumer_group_count | Kafka's beans |
| kafka_consumergroup_current_offset, _current_offset_sum, _lag, _lag_sum, _members | kafka_exporter |
| kafka_consumergroup_group_lag, _group_lag_seconds, _group_max_lag, _group_max_lag_seconds | kafka-lag-exporter |

A group is told by its coordinator. It knows the lag of what it leads itself; that of other partitions is left out of
`_lag` and of the sum. Seconds are how old the batch is that is read next, see `group_lag`. No series of single
partitions are told if there are more of them than `metrics.partition.limit`; then there are those of groups and topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from odradek.broker.coordinator.group_type import CLASSIC, CONSUMER
from odradek.broker.metrics.collectors.gauge_values import CommittedGauges, GroupGauges

_MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
_COORDINATOR = "kafka_server_group_coordinator_metrics_"
_CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
_EXPORTER_LABELS = ["consumergroup", "topic", "partition"]
_LAG_LABELS = ["cluster_name", "group", "topic", "partition"]


class GroupManagerCollector(Collector):
    """Kafka's numbers of groups and offsets; `groups` is asked once a scrape."""

    def __init__(self, groups: Callable[[], Iterable[GroupGauges]]) -> None:
        self._groups = groups

    def collect(self) -> Iterator[Metric]:
        groups = list(self._groups())
        states = Counter(group.state for group in groups if group.group_type == CLASSIC)
        yield GaugeMetricFamily(_MANAGER + "numgroups", "Groups of the classic protocol.", states.total())
        for state in _STATES:
            text = f"Groups of the classic protocol that are {state}."
            yield GaugeMetricFamily(f"{_MANAGER}numgroups{state.lower()}", text, states[state])
        yield GaugeMetricFamily(
            _MANAGER + "numoffsets", "Committed offsets of all groups.", sum(len(group.committed) for group in groups)
        )
        types = Counter(group.group_type for group in groups)
        by_type = GaugeMetricFamily(_COORDINATOR + "group_count", "Groups by protocol.", labels=["protocol"])
        for group_type in (CLASSIC, CONSUMER):
            by_type.add_metric([group_type], types[group_type])
        yield by_type
        states = Counter(group.state for group in groups if group.group_type == CONSUMER)
        text = "Groups of the consumer protocol by state."
        by_state = GaugeMetricFamily(_COORDINATOR + "consumer_group_count", text, labels=["state"])
        for state in _CONSUMER_STATES:
            by_state.add_metric([state.lower()], states[state])
        yield by_state


class GroupLagCollector(Collector):
    """The families of kafka_exporter and of kafka-lag-exporter; `groups` is asked once a scrape."""

    def __init__(
        self, cluster_id: Callable[[], str], groups: Callable[[], Iterable[GroupGauges]], partition_limit: int
    ) -> None:
        self._cluster_id = cluster_id
        self._groups = groups
        self._partition_limit = partition_limit

    def collect(self) -> Iterator[Metric]:
        """Yield the families one by one, so that a scrape can give way to requests between them."""
        groups = list(self._groups())
        members = GaugeMetricFamily("kafka_consumergroup_members", "Members of a group.", labels=["consumergroup"])
        for group in groups:
            members.add_metric([group.group_id], group.members)
        yield members
        yield _sums(
            "kafka_consumergroup_current_offset_sum",
            "Sum of what a group committed for the partitions of a topic.",
            groups,
            _offset,
        )
        yield _sums("kafka_consumergroup_lag_sum", "Records of a topic that a group has not read.", groups, _lag)
        cluster = self._cluster_id()
        prefix, in_seconds = "kafka_consumergroup_group_max_lag", "The largest lag of a group in seconds."
        yield _largest(prefix, "The largest lag of a group.", cluster, groups, _lag)
        yield _largest(prefix + "_seconds", in_seconds, cluster, groups, _lag_seconds)
        if sum(len(group.committed) for group in groups) > self._partition_limit:
            return
        yield _each(
            "kafka_consumergroup_current_offset",
            "Offset that a group committed.",
            _EXPORTER_LABELS,
            [],
            groups,
            _offset,
        )
        text = "Records that a group has not read."
        yield _each("kafka_consumergroup_lag", text, _EXPORTER_LABELS, [], groups, _lag)
        yield _each("kafka_consumergroup_group_lag", text, _LAG_LABELS, [cluster], groups, _lag)
        text = "Seconds since what a group reads next was written."
        yield _each("kafka_consumergroup_group_lag_seconds", text, _LAG_LABELS, [cluster], groups, _lag_seconds)


Value = Callable[[CommittedGauges], float | None]


def _offset(of: CommittedGauges) -> float:
    return of.offset


def _lag(of: CommittedGauges) -> float | None:
    return of.lag


def _lag_seconds(of: CommittedGauges) -> float | None:
    return of.lag_seconds


def _each(name: str, text: str, labels: list[str], first: list[str], groups: list[GroupGauges], value: Value) -> Metric:
    """A sample for each partition of each group that has the value; `first` are the values of its first labels."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for group in groups:
        for of in group.committed:
            found = value(of)
            if found is not None:
                family.add_metric([*first, group.group_id, of.topic, str(of.partition)], found)
    return family


def _largest(name: str, text: str, cluster: str, groups: list[GroupGauges], value: Value) -> Metric:
    """A sample for each group that has any value."""
    family = GaugeMetricFamily(name, text, labels=["cluster_name", "group"])
    for group in groups:
        found = [number for of in group.committed if (number := value(of)) is not None]
        if found:
            family.add_metric([cluster, group.group_id], max(found))
    return family


def _sums(name: str, text: str, groups: list[GroupGauges], value: Value) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["consumergroup", "topic"])
    for group in groups:
        sums: Counter[str] = Counter()
        for of in group.committed:
            sums[of.topic] += int(value(of) or 0)
        for topic, total in sums.items():
            family.add_metric([group.group_id, topic], total)
    return family
