"""Groups, their committed offsets and lag, under the names that dashboards for Kafka expect.

| series | whose name |
|---|---|
| kafka_coordinator_group_groupmetadatamanager_numgroups, …numgroupsstable, …, numoffsets | Kafka's beans |
| kafka_consumergroup_current_offset, _current_offset_sum, _lag, _lag_sum, _members | kafka_exporter |
| kafka_consumergroup_group_lag_seconds | kafka-lag-exporter; here it is how old the batch is that is read next |

A group is told by its coordinator. It knows the lag of what it leads itself; that of other partitions is left out of
`_lag` and of the sum. Nothing is looked up but when somebody scrapes, and no series of single partitions are told if
there are more of them than `metrics.partition.limit`; then there are the sums by topic, and no look-ups of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from broker.metrics import CommittedGauges, GroupGauges

_MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
_EXPORTER_LABELS = ["consumergroup", "topic", "partition"]
_LAG_LABELS = ["group", "topic", "partition"]


class GroupManagerCollector(Collector):
    """Kafka's numbers of groups and offsets; `groups` is asked once a scrape."""

    def __init__(self, groups: Callable[[], Iterable[GroupGauges]]) -> None:
        self._groups = groups

    def collect(self) -> Iterator[Metric]:
        groups = list(self._groups())
        states = Counter(group.state for group in groups if group.group_type == "classic")
        yield GaugeMetricFamily(_MANAGER + "numgroups", "Groups of the classic protocol.", states.total())
        for state in _STATES:
            text = f"Groups of the classic protocol that are {state}."
            yield GaugeMetricFamily(f"{_MANAGER}numgroups{state.lower()}", text, states[state])
        yield GaugeMetricFamily(
            _MANAGER + "numoffsets", "Committed offsets.", sum(len(group.committed) for group in groups)
        )


class GroupLagCollector(Collector):
    """The families of kafka_exporter, and lag in seconds: `groups` is asked once a scrape, `lag_seconds` by row."""

    def __init__(
        self,
        groups: Callable[[], Iterable[GroupGauges]],
        lag_seconds: Callable[[CommittedGauges], float | None],
        partition_limit: int,
    ) -> None:
        self._groups = groups
        self._lag_seconds = lag_seconds
        self._partition_limit = partition_limit

    def collect(self) -> Iterator[Metric]:
        """Yield the families one by one, so that a scrape can give way to requests between them."""
        groups = list(self._groups())
        members = GaugeMetricFamily("kafka_consumergroup_members", "Members of a group.", labels=["consumergroup"])
        for group in groups:
            members.add_metric([group.group_id], group.members)
        yield members
        yield _sums("kafka_consumergroup_current_offset_sum", "Committed offsets of a topic.", groups, _offset)
        yield _sums("kafka_consumergroup_lag_sum", "Records of a topic that a group has not read.", groups, _lag)
        if sum(len(group.committed) for group in groups) > self._partition_limit:
            return
        yield _each("kafka_consumergroup_current_offset", "Committed offset.", _EXPORTER_LABELS, groups, _offset)
        yield _each("kafka_consumergroup_lag", "Records that a group has not read.", _EXPORTER_LABELS, groups, _lag)
        text = "Seconds since what a group reads next was written."
        yield _each("kafka_consumergroup_group_lag_seconds", text, _LAG_LABELS, groups, self._lag_seconds)


Value = Callable[[CommittedGauges], float | None]


def _offset(of: CommittedGauges) -> float:
    return of.offset


def _lag(of: CommittedGauges) -> float | None:
    return of.lag


def _each(name: str, text: str, labels: list[str], groups: list[GroupGauges], value: Value) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for group in groups:
        for of in group.committed:
            found = value(of)
            if found is not None:
                family.add_metric([group.group_id, of.topic, str(of.partition)], found)
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
