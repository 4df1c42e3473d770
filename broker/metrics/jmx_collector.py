"""The counts of a broker as Prometheus reads them: names and labels as Strimzi's rules for Kafka's JMX beans give them.

Nothing here runs unless somebody scrapes. The dashboards and alerts written for those names work unchanged; series
that Kafka has twice (`…_total` for a topic and for all topics) are here twice, the sum without the label.

What Kafka has and an event loop has not is given its nearest meaning:

| series | meaning here |
|---|---|
| requesthandleravgidle, networkprocessoravgidle | the fraction of time in which the event loop's thread used no CPU |
| requestchannel_requestqueuesize | requests whose handler has begun and not answered |
| requestchannel_responsequeuesize, responsequeuetimems | 0: a response is sent when it is ready |
| networkProcessor="0" | the one event loop |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from broker.clock import Clock
from broker.metrics.gauge_values import CleanerGauges, Gauges, PartitionGauges
from broker.metrics.histogram import DurationHistogram
from broker.metrics.metrics import ApiMetrics, Metrics, TopicMetrics
from protocol.errors import ErrorCode

# The percentiles of Kafka's beans, under the label values that jmx_exporter makes of them.
_QUANTILES = {"0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999}
_SOFTWARE_LIMIT = 100  # series: what clients say of themselves is theirs to make up

_TOPIC_COUNTERS = {
    "messagesin": ("messages_in", "Records taken from producers."),
    "bytesin": ("bytes_in", "Bytes of record batches taken from producers."),
    "bytesout": ("bytes_out", "Bytes of record batches fetched by consumers."),
    "bytesrejected": ("bytes_rejected", "Bytes of record batches refused for their size."),
    "totalproducerequests": ("produce_requests", "Produce requests to partitions."),
    "totalfetchrequests": ("fetch_requests", "Fetch requests to partitions."),
    "failedproducerequests": ("failed_produce_requests", "Produce requests to partitions that failed."),
    "failedfetchrequests": ("failed_fetch_requests", "Fetch requests to partitions that failed."),
    "producemessageconversions": ("produce_message_conversions", "Records compressed anew for the topic."),
}
_BROKER_COUNTERS = {
    "kafka_server_brokertopicmetrics_replicationbytesin": ("replication_bytes_in", "Bytes fetched from leaders."),
    "kafka_server_brokertopicmetrics_replicationbytesout": ("replication_bytes_out", "Bytes fetched by followers."),
    "kafka_server_brokertopicmetrics_invalidmessagecrcrecords": ("invalid_crc_records", "Batches with a wrong CRC."),
    "kafka_server_brokertopicmetrics_invalidmagicnumberrecords": (
        "invalid_magic_records",
        "Batches of a wrong format version.",
    ),
    "kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords": (
        "invalid_offset_or_sequence_records",
        "Batches with offsets or sequence numbers that do not fit together.",
    ),
    "kafka_server_brokertopicmetrics_nokeycompactedtopicrecords": (
        "no_key_compacted_topic_records",
        "Records without a key for a compacted topic.",
    ),
    "kafka_server_replicamanager_isrexpands": ("isr_expands", "Replicas that came back into sync."),
    "kafka_server_replicamanager_isrshrinks": ("isr_shrinks", "Replicas that fell out of sync."),
    "kafka_controller_controllerstats_uncleanleaderelections": (
        "unclean_leader_elections",
        "Leaders elected that may lack records.",
    ),
    "odradek_unexpected_errors": ("unexpected_errors", "Exceptions that clients saw as UNKNOWN_SERVER_ERROR."),
}
_GAUGES = {
    "kafka_server_kafkaserver_brokerstate": ("broker_state", "State of the broker; 3 is running."),
    "kafka_server_replicamanager_leadercount": ("leader_count", "Partitions led by this broker."),
    "kafka_server_replicamanager_partitioncount": ("partition_count", "Partitions with a replica on this broker."),
    "kafka_server_replicamanager_underreplicatedpartitions": (
        "under_replicated_partitions",
        "Partitions led here with replicas out of sync.",
    ),
    "kafka_server_replicamanager_underminisrpartitioncount": (
        "under_min_isr_partitions",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
    ),
    "kafka_server_replicamanager_atminisrpartitioncount": (
        "at_min_isr_partitions",
        "Partitions led here with just min.insync.replicas in sync.",
    ),
    "kafka_server_replicamanager_offlinereplicacount": ("offline_replicas", "Replicas here that are offline."),
    "kafka_server_replicamanager_produceridcount": ("producer_ids", "Producer ids with state in a log."),
    "kafka_log_logmanager_offlinelogdirectorycount": ("offline_log_directories", "Log directories that failed."),
    "kafka_controller_kafkacontroller_activecontrollercount": (
        "is_active_controller",
        "1 on the broker that is the controller.",
    ),
    "kafka_controller_kafkacontroller_offlinepartitionscount": ("offline_partitions", "Partitions without a leader."),
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount": (
        "preferred_replica_imbalance",
        "Partitions led by another than their first replica.",
    ),
    "kafka_controller_kafkacontroller_globaltopiccount": ("global_topics", "Topics of the cluster."),
    "kafka_controller_kafkacontroller_globalpartitioncount": ("global_partitions", "Partitions of the cluster."),
    "kafka_controller_kafkacontroller_activebrokercount": ("active_brokers", "Brokers that are alive."),
    "kafka_controller_kafkacontroller_fencedbrokercount": ("fenced_brokers", "Brokers that are registered and fenced."),
    "kafka_server_fetchsessioncache_numincrementalfetchsessions": ("fetch_sessions", "Incremental fetch sessions."),
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached": (
        "fetch_session_partitions",
        "Partitions in incremental fetch sessions.",
    ),
}
_CLEANER_GAUGES = {
    "kafka_log_logcleanermanager_max_dirty_percent": (
        "max_dirty_percent",
        "Share of the dirtiest compacted log that is not compacted.",
    ),
    "kafka_log_logcleanermanager_time_since_last_run_ms": (
        "time_since_last_run_ms",
        "Since compaction last looked for a log that needs it.",
    ),
    "kafka_log_logcleaner_cleaner_recopy_percent": (
        "recopy_percent",
        "How much of what compaction last read it wrote again.",
    ),
    "kafka_log_logcleaner_max_clean_time_secs": ("max_clean_time_seconds", "How long compaction of a log last took."),
    "kafka_log_logcleaner_max_buffer_utilization_percent": (
        "max_buffer_utilization_percent",
        "How full the keys of a log made log.cleaner.dedupe.buffer.size.",
    ),
    "kafka_log_logcleaner_max_compaction_delay_secs": (
        "max_compaction_delay_seconds",
        "How long a log is overdue by max.compaction.lag.ms.",
    ),
    "kafka_log_logcleaner_deadthreadcount": ("dead_workers", "Processes of compaction that ended by themselves."),
}
_PARTITION_GAUGES: dict[str, tuple[str, Callable[[PartitionGauges], float]]] = {
    "kafka_log_log_size": ("Bytes of the log.", lambda of: of.size_bytes),
    "kafka_log_log_logstartoffset": ("First offset of the log.", lambda of: of.log_start_offset),
    "kafka_log_log_logendoffset": ("Offset behind the last of the log.", lambda of: of.log_end_offset),
    "kafka_log_log_numlogsegments": ("Segments of the log.", lambda of: of.segments),
    "kafka_cluster_partition_replicascount": ("Replicas.", lambda of: of.replicas),
    "kafka_cluster_partition_insyncreplicascount": ("Replicas in sync.", lambda of: of.in_sync_replicas),
    "kafka_cluster_partition_underreplicated": (
        "1 if replicas are out of sync.",
        lambda of: of.in_sync_replicas < of.replicas,
    ),
    "kafka_cluster_partition_underminisr": (
        "1 if fewer replicas than min.insync.replicas are in sync.",
        lambda of: of.in_sync_replicas < of.min_in_sync_replicas,
    ),
    "kafka_cluster_partition_atminisr": (
        "1 if just min.insync.replicas are in sync.",
        lambda of: of.in_sync_replicas == of.min_in_sync_replicas,
    ),
}
_API_TIMES: dict[str, tuple[str, Callable[[ApiMetrics], DurationHistogram]]] = {
    "totaltimems": ("From receiving a request to having sent its response.", lambda api: api.total),
    "requestqueuetimems": ("A request waited for its turn.", lambda api: api.queue),
    "localtimems": ("A request was handled.", lambda api: api.local),
    "remotetimems": ("A request waited for others.", lambda api: api.remote),
    "responsesendtimems": ("Sending a response, until the kernel had it all.", lambda api: api.send),
}


class JmxCollector(Collector):
    """The families of one broker. `gauges` and `partitions` are asked once a scrape, on the event loop."""

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
        """Yield the families one by one, so that a scrape can give way to requests between them."""
        gauges = self._gauges()
        yield from self._broker(gauges)
        yield from self._topics()
        yield from self._apis()
        yield from self._connections()
        if gauges.partition_count <= self._partition_limit:
            yield from self._logs()

    def _broker(self, gauges: Gauges) -> Iterator[Metric]:
        for name, (attribute, text) in _GAUGES.items():
            yield GaugeMetricFamily(name, text, getattr(gauges, attribute))
        yield from _cleaner(gauges.cleaner)
        for name, (attribute, text) in _BROKER_COUNTERS.items():
            yield CounterMetricFamily(name, text, getattr(self._metrics, attribute))
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
        idle = self._metrics.loop_idle
        text = "Fraction of time in which the event loop was idle."
        yield GaugeMetricFamily("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", text, idle)
        yield GaugeMetricFamily("kafka_network_socketserver_networkprocessoravgidle_percent", text, idle)
        flush = _times("kafka_log_logflushstats_logflushrateandtimems", "Syncing a segment to the disk.")
        _add_times(flush, {}, self._metrics.log_flush.times())
        yield flush

    def _topics(self) -> Iterator[Metric]:
        everything = self._metrics.all_topics()
        for name, (attribute, text) in _TOPIC_COUNTERS.items():
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
            "kafka_network_requestmetrics_errors", "Error codes told to clients, NONE too.", labels=["request", "error"]
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
        for name, (text, histogram) in _API_TIMES.items():
            family = _times(f"kafka_network_requestmetrics_{name}", text)
            for api in apis:
                _add_times(family, {"request": api.name}, histogram(api))
            yield family
        yield _no_times("kafka_network_requestmetrics_responsequeuetimems", apis)
        yield GaugeMetricFamily(
            "kafka_network_requestchannel_requestqueuesize",
            "Requests begun and not answered.",
            self._metrics.requests_in_flight,
        )
        yield GaugeMetricFamily("kafka_network_requestchannel_responsequeuesize", "Always 0.", 0)

    def _connections(self) -> Iterator[Metric]:
        prefix = "kafka_server_socket_server_metrics_"
        labels = ["listener", "networkProcessor"]
        count = GaugeMetricFamily(prefix + "connection_count", "Open connections.", labels=labels)
        created = CounterMetricFamily(prefix + "connection_creation", "Connections accepted.", labels=labels)
        closed = CounterMetricFamily(prefix + "connection_close", "Connections closed.", labels=labels)
        creation_rate = GaugeMetricFamily(prefix + "connection_creation_rate", "Accepted a second.", labels=labels)
        close_rate = GaugeMetricFamily(prefix + "connection_close_rate", "Closed a second.", labels=labels)
        expired = GaugeMetricFamily(prefix + "expired_connections_killed_count", "Closed as idle.", labels=labels)
        refused = CounterMetricFamily("odradek_connections_refused", "Closed for a limit.", labels=labels)
        software = GaugeMetricFamily(
            prefix + "connections",
            "Open connections by the client's software.",
            labels=["clientSoftwareName", "clientSoftwareVersion", *labels],
        )
        now = self._clock.monotonic()
        for listener in self._metrics.listeners.values():
            values = [listener.name, "0"]
            rates = listener.rates(now)
            count.add_metric(values, listener.open)
            created.add_metric(values, listener.created)
            closed.add_metric(values, listener.closed)
            creation_rate.add_metric(values, rates[0])
            close_rate.add_metric(values, rates[1])
            expired.add_metric(values, listener.expired)
            refused.add_metric(values, listener.refused)
            for (name, version), open_connections in listener.software.most_common(_SOFTWARE_LIMIT):
                software.add_metric([name, version, *values], open_connections)
        yield from (count, created, closed, creation_rate, close_rate, expired, refused, software)

    def _logs(self) -> Iterator[Metric]:
        partitions = list(self._partitions())
        for name, (text, value) in _PARTITION_GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=["topic", "partition"])
            for of in partitions:
                family.add_metric([of.topic, str(of.partition)], value(of))
            yield family


def _cleaner(gauges: CleanerGauges) -> Iterator[Metric]:
    for name, (attribute, text) in _CLEANER_GAUGES.items():
        yield GaugeMetricFamily(name, text, getattr(gauges, attribute))
    prefix = "kafka_log_logcleanermanager_uncleanable_"
    count = GaugeMetricFamily(
        prefix + "partitions_count", "Logs that compaction leaves alone.", labels=["logDirectory"]
    )
    size = GaugeMetricFamily(prefix + "bytes", "Bytes of them.", labels=["logDirectory"])
    for path, (logs, bytes_) in gauges.uncleanable.items():
        count.add_metric([path], logs)
        size.add_metric([path], bytes_)
    yield from (count, size)


def _with_all_fetches(apis: dict[str, ApiMetrics]) -> list[ApiMetrics]:
    """The APIs, and as in Kafka `Fetch` beside FetchConsumer and FetchFollower, of which it is the sum."""
    fetch = ApiMetrics("Fetch")
    for name in ("Fetch", "FetchConsumer", "FetchFollower"):
        if name in apis:
            fetch.add(apis[name])
    others = [api for api in apis.values() if api.name != "Fetch"]
    return [*others, fetch] if fetch.versions or fetch.errors else others


def _add_topic(family: CounterMetricFamily, labels: dict[str, str], counted: TopicMetrics, attribute: str) -> None:
    family.add_sample(family.name + "_total", labels, getattr(counted, attribute))


def _times(name: str, text: str) -> Metric:
    return Metric(name, f"{text} Milliseconds; quantiles are about the last minutes.", "summary")


def _no_times(name: str, apis: list[ApiMetrics]) -> Metric:
    """The times of what never takes any, once for each request."""
    family = _times(name, "Always 0: a response is sent when it is ready.")
    for api in apis:
        for label in _QUANTILES:
            family.add_sample(name, {"request": api.name, "quantile": label}, 0)
        family.add_sample(name + "_count", {"request": api.name}, api.total.count)
        family.add_sample(name + "_sum", {"request": api.name}, 0)
    return family


def _add_times(family: Metric, labels: dict[str, str], histogram: DurationHistogram) -> None:
    for label, seconds in zip(_QUANTILES, histogram.quantiles(list(_QUANTILES.values())), strict=True):
        family.add_sample(family.name, {**labels, "quantile": label}, seconds * 1000)
    family.add_sample(family.name + "_count", labels, histogram.count)
    family.add_sample(family.name + "_sum", labels, histogram.sum * 1000)
