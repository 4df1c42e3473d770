"""The counters of a broker under the names and labels that Strimzi's rules give Kafka's JMX beans.

Dashboards and alerts written for those names work unchanged. A series that Kafka has for each topic and for all topics
(`…_total`) is here twice as well; the sum has no label. Most series are rows of the tables in `jmx_series`. Nothing
here runs except at a scrape.

Series of threads and queues that an event loop does not have get the nearest meaning:

| series | meaning here |
|---|---|
| requesthandleravgidle, networkprocessoravgidle | the share of time in which the event loop's thread used no CPU |
| requestchannel_requestqueuesize | requests whose handlers have begun and not answered |
| requestchannel_responsequeuesize, responsequeuetimems | 0: a response is sent when it is ready |
| networkProcessor="0" | the one event loop |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from odradek.broker.clock import Clock
from odradek.broker.metrics.collectors.connection_series import connection_series
from odradek.broker.metrics.collectors.gauge_values import (
    CleanerGauges,
    FetcherGauges,
    Gauges,
    PartitionGauges,
)
from odradek.broker.metrics.collectors.jmx_series import (
    API_TIMES,
    BROKER_COUNTERS,
    CLEANER_GAUGES,
    FETCHER_GAUGES,
    GAUGES,
    LEADER_GAUGES,
    METADATA_STORE_COUNTERS,
    METADATA_STORE_GAUGES,
    PARTITION_GAUGES,
    TOPIC_COUNTERS,
)
from odradek.broker.metrics.collectors.quota_series import quota_series
from odradek.broker.metrics.collectors.summaries import QUANTILES, add_times, times
from odradek.broker.metrics.collectors.transaction_series import transaction_series
from odradek.broker.metrics.counts.metrics import ApiMetrics, Metrics, TopicMetrics
from odradek.protocol.errors import ErrorCode


class JmxCollector(Collector):
    """The families of one broker. Calls `gauges` and `partitions` once a scrape, on the event loop."""

    def __init__(
        self,
        metrics: Metrics,
        clock: Clock,
        gauges: Callable[[], Gauges],
        partitions: Callable[[], Iterable[PartitionGauges]],
        partition_limit: int,
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._gauges = gauges
        self._partitions = partitions
        self._partition_limit = partition_limit

    def collect(self) -> Iterator[Metric]:
        """Yield the families one by one, so that requests run between them."""
        gauges = self._gauges()
        yield from self._broker(gauges)
        yield from self._metadata_store()
        yield from transaction_series(self._metrics.transactions, gauges.transactions, self._clock.monotonic())
        yield from quota_series(gauges.quotas)
        yield from self._topics()
        yield from self._apis()
        yield from connection_series(self._metrics.listeners.values(), self._clock.monotonic())
        if gauges.partition_count <= self._partition_limit:
            yield from self._logs()

    def _broker(self, gauges: Gauges) -> Iterator[Metric]:
        for name, (attribute, text) in GAUGES.items():
            yield GaugeMetricFamily(name, text, getattr(gauges, attribute))
        yield from _cleaner(gauges.cleaner)
        yield from _fetchers(gauges.fetchers)
        for name, (attribute, text) in BROKER_COUNTERS.items():
            yield CounterMetricFamily(name, text, getattr(self._metrics, attribute))
        authorizations = CounterMetricFamily(
            "odradek_authorizations", "Decisions whether a client may do something.", labels=["result"]
        )
        for result, count in zip(("denied", "allowed"), self._metrics.authorizations, strict=True):
            authorizations.add_metric([result], count)
        yield authorizations
        yield CounterMetricFamily(
            "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
            "Incremental fetch sessions dropped for others.",
            gauges.fetch_session_evictions,
        )
        purgatories = GaugeMetricFamily(
            "kafka_server_delayedoperationpurgatory_purgatorysize", "Parked requests.", labels=["delayedOperation"]
        )
        for operation, size in gauges.purgatory_sizes.items():
            purgatories.add_metric([operation], size)
        yield purgatories
        directories = GaugeMetricFamily(
            "kafka_log_logmanager_logdirectoryoffline", "1 if the log directory failed.", labels=["logDirectory"]
        )
        for path, has_failed in gauges.log_directories.items():
            directories.add_metric([path], has_failed)
        yield directories
        yield from _volumes(gauges)
        idle = self._metrics.loop_idle
        text = "Share of time in which the event loop was idle."
        yield GaugeMetricFamily("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", text, idle)
        yield GaugeMetricFamily("kafka_network_socketserver_networkprocessoravgidle_percent", text, idle)
        flush = times("kafka_log_logflushstats_logflushrateandtimems", "Time to sync a segment to the disk.")
        add_times(flush, {}, self._metrics.log_flush.times())
        yield flush

    def _metadata_store(self) -> Iterator[Metric]:
        counts = self._metrics.metadata_store
        for name, (attribute, text) in METADATA_STORE_COUNTERS.items():
            yield CounterMetricFamily(f"odradek_metadata_store_{name}", text, getattr(counts, attribute))
        for name, text in METADATA_STORE_GAUGES.items():
            family = GaugeMetricFamily(f"odradek_metadata_store_{name}", text)
            if (value := getattr(counts, name)) > 0:
                family.add_metric([], value)
            yield family
        answered = times("odradek_metadata_store_timems", "Time until a server of the metadata store answered.")
        add_times(answered, {}, counts.answered)
        yield answered

    def _topics(self) -> Iterator[Metric]:
        everything = self._metrics.all_topics()
        for name, (attribute, text) in TOPIC_COUNTERS.items():
            family = CounterMetricFamily(f"kafka_server_brokertopicmetrics_{name}", text)
            _add_topic(family, {}, everything, attribute)
            for topic, counted in self._metrics.topics.items():
                _add_topic(family, {"topic": topic}, counted, attribute)
            yield family

    def _apis(self) -> Iterator[Metric]:
        apis = _with_all_fetches(self._metrics.apis)
        requests = CounterMetricFamily(
            "kafka_network_requestmetrics_requests", "Requests by API and version.", labels=["request", "version"]
        )
        errors = CounterMetricFamily(
            "kafka_network_requestmetrics_errors",
            "Error codes returned to clients, NONE included.",
            labels=["request", "error"],
        )
        for api in apis:
            for version, count in sorted(api.versions.items()):
                requests.add_metric([api.name, str(version)], count)
            for code, count in sorted(api.errors.items()):
                errors.add_metric([api.name, ErrorCode.of(code).name], count)
        yield requests
        yield errors
        for api in apis:
            api.fold()
        for name, (text, histogram) in API_TIMES.items():
            family = times(f"kafka_network_requestmetrics_{name}", text)
            for api in apis:
                add_times(family, {"request": api.name}, histogram(api))
            yield family
        yield _no_times("kafka_network_requestmetrics_responsequeuetimems", apis)
        yield GaugeMetricFamily(
            "kafka_network_requestchannel_requestqueuesize",
            "Requests begun and not answered yet.",
            self._metrics.requests_in_flight,
        )
        yield GaugeMetricFamily(
            "kafka_network_requestchannel_responsequeuesize", "Always 0: a response is sent when it is ready.", 0
        )

    def _logs(self) -> Iterator[Metric]:
        partitions = list(self._partitions())
        for name, (text, value) in PARTITION_GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=["topic", "partition"])
            for partition in partitions:
                family.add_metric([partition.topic, str(partition.partition)], value(partition))
            yield family
        for name, (text, value) in LEADER_GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=["topic", "partition"])
            for partition in partitions:
                family.add_metric(
                    [partition.topic, str(partition.partition)], value(partition) if partition.is_led_here else 0
                )
            yield family
        lag = GaugeMetricFamily(
            "kafka_server_fetcherlagmetrics_consumerlag",
            "Committed records that a replica here lacks, by the loop that fetches it.",
            labels=["clientId", "topic", "partition"],
        )
        for partition in partitions:
            if partition.fetcher:
                lag.add_metric([partition.fetcher, partition.topic, str(partition.partition)], partition.lag)
        yield lag


def _volumes(gauges: Gauges) -> Iterator[Metric]:
    prefix, labels = "odradek_log_directory_", ["logDirectory"]
    free = GaugeMetricFamily(prefix + "free_bytes", "Bytes free for the broker where the directory is.", labels=labels)
    size = GaugeMetricFamily(prefix + "size_bytes", "Bytes of the file system of the directory.", labels=labels)
    for path, volume in gauges.volumes.items():
        free.add_metric([path], volume.usable_bytes)
        size.add_metric([path], volume.total_bytes)
    yield from (free, size)


def _cleaner(gauges: CleanerGauges) -> Iterator[Metric]:
    for name, (attribute, text) in CLEANER_GAUGES.items():
        yield GaugeMetricFamily(name, text, getattr(gauges, attribute))
    prefix = "kafka_log_logcleanermanager_uncleanable_"
    count = GaugeMetricFamily(prefix + "partitions_count", "Logs that compaction skips.", labels=["logDirectory"])
    size = GaugeMetricFamily(prefix + "bytes", "Bytes of the logs that compaction skips.", labels=["logDirectory"])
    for path, (logs, bytes_) in gauges.uncleanable.items():
        count.add_metric([path], logs)
        size.add_metric([path], bytes_)
    yield from (count, size)


def _fetchers(gauges: FetcherGauges) -> Iterator[Metric]:
    for name, (attribute, text) in FETCHER_GAUGES.items():
        family = GaugeMetricFamily(f"kafka_server_replicafetchermanager_{name}", text, labels=["clientId"])
        family.add_metric(["Replica"], getattr(gauges, attribute))
        yield family
    yield CounterMetricFamily(
        "odradek_replicas_stopped",
        "Replicas whose fetches ended, because they would have had to remove committed records.",
        gauges.stopped_replicas,
    )


def _with_all_fetches(apis: dict[str, ApiMetrics]) -> list[ApiMetrics]:
    """Return the APIs, with `Fetch` as the sum of FetchConsumer and FetchFollower, as in Kafka."""
    fetch = ApiMetrics("Fetch")
    for name in ("Fetch", "FetchConsumer", "FetchFollower"):
        if name in apis:
            fetch.add(apis[name])
    others = [api for api in apis.values() if api.name != "Fetch"]
    return [*others, fetch] if fetch.versions or fetch.errors else others


def _add_topic(family: CounterMetricFamily, labels: dict[str, str], counted: TopicMetrics, attribute: str) -> None:
    family.add_sample(family.name + "_total", labels, getattr(counted, attribute))


def _no_times(name: str, apis: list[ApiMetrics]) -> Metric:
    """Return a family of times that are always 0, for each API."""
    family = times(name, "Always 0: a response is sent when it is ready.")
    for api in apis:
        for label in QUANTILES:
            family.add_sample(name, {"request": api.name, "quantile": label}, 0)
        family.add_sample(name + "_count", {"request": api.name}, api.total.count)
        family.add_sample(name + "_sum", {"request": api.name}, 0)
    return family
