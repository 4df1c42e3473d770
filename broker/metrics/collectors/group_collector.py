"""Groups, their committed offsets and lag, under the names that dashboards for Kafka expect.

| series | source of the name |
|---|---|
| kafka_coordinator_group_groupmetadatamanager_numgroups, …numgroupsstable, …, numoffsets | Kafka's beans |
| kafka_server_group_coordinator_metrics_group_count, _consumer_group_count | Kafka's beans |
| kafka_consumergroup_current_offset, _current_offset_sum, _lag, _lag_sum, _members | kafka_exporter |
| kafka_consumergroup_group_lag, _group_lag_seconds, _group_max_lag, _group_max_lag_seconds | kafka-lag-exporter |

The coordinator of a group reports it. It has the lag of the partitions that it leads itself; `_lag` and its sum omit
other partitions. Lag in seconds is the age of the batch that the group reads next, see `group_lag`. Above
`metrics.partition.limit` committed offsets only the series of groups and topics are reported, none of single
partitions.
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
    """Kafka's numbers of groups and offsets. Calls `groups` once a scrape."""

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
    """The families of kafka_exporter and of kafka-lag-exporter. Calls `groups` once a scrape."""

    def __init__(
        self, cluster_id: Callable[[], str], groups: Callable[[], Iterable[GroupGauges]], partition_limit: int
    ) -> None:
        self._cluster_id = cluster_id
        self._groups = groups
        self._partition_limit = partition_limit

    def collect(self) -> Iterator[Metric]:
        """Yield the families one by one, so that requests run between them."""
        groups = list(self._groups())
        members = GaugeMetricFamily("kafka_consumergroup_members", "Members of a group.", labels=["consumergroup"])
        for group in groups:
            members.add_metric([group.group_id], group.members)
        yield members
        yield _sums(
            "kafka_consumergroup_current_offset_sum",
            "Sum of a group's committed offsets of a topic.",
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
            "Committed offset of a group.",
            _EXPORTER_LABELS,
            [],
            groups,
            _offset,
        )
        text = "Records that a group has not read."
        yield _each("kafka_consumergroup_lag", text, _EXPORTER_LABELS, [], groups, _lag)
        yield _each("kafka_consumergroup_group_lag", text, _LAG_LABELS, [cluster], groups, _lag)
        text = "Age in seconds of the batch that a group reads next."
        yield _each("kafka_consumergroup_group_lag_seconds", text, _LAG_LABELS, [cluster], groups, _lag_seconds)


Value = Callable[[CommittedGauges], float | None]


def _offset(committed: CommittedGauges) -> float:
    return committed.offset


def _lag(committed: CommittedGauges) -> float | None:
    return committed.lag


def _lag_seconds(committed: CommittedGauges) -> float | None:
    return committed.lag_seconds


def _each(name: str, text: str, labels: list[str], first: list[str], groups: list[GroupGauges], value: Value) -> Metric:
    """Return a sample for each partition of each group that has the value. `first`: the values of its first labels."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for group in groups:
        for committed in group.committed:
            found = value(committed)
            if found is not None:
                family.add_metric([*first, group.group_id, committed.topic, str(committed.partition)], found)
    return family


def _largest(name: str, text: str, cluster: str, groups: list[GroupGauges], value: Value) -> Metric:
    """Return a sample for each group that has any value."""
    family = GaugeMetricFamily(name, text, labels=["cluster_name", "group"])
    for group in groups:
        found = [number for committed in group.committed if (number := value(committed)) is not None]
        if found:
            family.add_metric([cluster, group.group_id], max(found))
    return family


def _sums(name: str, text: str, groups: list[GroupGauges], value: Value) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["consumergroup", "topic"])
    for group in groups:
        sums: Counter[str] = Counter()
        for committed in group.committed:
            sums[committed.topic] += int(value(committed) or 0)
        for topic, total in sums.items():
            family.add_metric([group.group_id, topic], total)
    return family
