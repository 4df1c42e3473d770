"""Tables of the simple series of `jmx_collector`: one number each, or one for each topic, partition or API."""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.metrics.collectors.gauge_values import PartitionGauges
from odradek.broker.metrics.counts.histogram import DurationHistogram
from odradek.broker.metrics.counts.metrics import ApiMetrics

TOPIC_COUNTERS = {
    "messagesin": ("messages_in", "Records received from producers."),
    "bytesin": ("bytes_in", "Bytes of record batches received from producers."),
    "bytesout": ("bytes_out", "Bytes of record batches fetched by consumers."),
    "bytesrejected": ("bytes_rejected", "Bytes of record batches rejected for their size."),
    "totalproducerequests": ("produce_requests", "Produce requests to partitions."),
    "totalfetchrequests": ("fetch_requests", "Fetch requests to partitions."),
    "failedproducerequests": ("failed_produce_requests", "Produce requests to partitions that failed."),
    "failedfetchrequests": ("failed_fetch_requests", "Fetch requests to partitions that failed."),
    "producemessageconversions": ("produce_message_conversions", "Records recompressed for the topic."),
}
"""By the end of the name, after `kafka_server_brokertopicmetrics_`: the attribute of `TopicMetrics`, and the help."""

BROKER_COUNTERS = {
    "kafka_server_brokertopicmetrics_replicationbytesin": ("replication_bytes_in", "Bytes fetched from leaders."),
    "kafka_server_brokertopicmetrics_replicationbytesout": ("replication_bytes_out", "Bytes fetched by followers."),
    "kafka_server_brokertopicmetrics_invalidmessagecrcrecords": ("invalid_crc_records", "Batches with a wrong CRC."),
    "kafka_server_brokertopicmetrics_invalidmagicnumberrecords": (
        "invalid_magic_records",
        "Batches with a wrong format version.",
    ),
    "kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords": (
        "invalid_offset_or_sequence_records",
        "Batches with inconsistent offsets or sequence numbers.",
    ),
    "kafka_server_brokertopicmetrics_nokeycompactedtopicrecords": (
        "no_key_compacted_topic_records",
        "Records without a key for a compacted topic.",
    ),
    "kafka_server_replicamanager_isrexpands": ("isr_expands", "Replicas that came back into sync."),
    "kafka_server_replicamanager_isrshrinks": ("isr_shrinks", "Replicas that fell out of sync."),
    "kafka_server_replicamanager_failedisrupdates": (
        "failed_isr_updates",
        "Changes of in-sync sets that the metadata store refused or did not answer.",
    ),
    "kafka_controller_controllerstats_uncleanleaderelections": (
        "unclean_leader_elections",
        "Leaders elected that may lack records, counted by the controller.",
    ),
    "odradek_unexpected_errors": ("unexpected_errors", "Exceptions answered as UNKNOWN_SERVER_ERROR."),
}
"""By name: the attribute of `Metrics`, and the help."""

METADATA_STORE_COUNTERS = {
    "attempts": ("attempts", "Requests sent to a server of the metadata store."),
    "unanswered": ("unanswered", "Requests to a server of the metadata store that had no answer."),
    "unconnected": ("unconnected", "Requests not sent to a server of the metadata store, for want of a connection."),
    "endpoint_changes": ("endpoint_changes", "Changes to the next server, after one without an answer."),
    "unknown_outcomes": ("unknown_outcomes", "Transactions without an answer, which were sent again."),
    "full": ("full", "Requests refused because the metadata store has reached its quota."),
    "access_refused": ("access_refused", "Requests refused for the password, certificate or permissions."),
    "failed_renewals": ("renewals_failed", "Signs of life of this broker that had no answer."),
    "lost_sessions": ("sessions_lost", "Sessions of this broker that ended while it ran."),
    "watch_restarts": ("watch_restarts", "Streams of changes that ended and were opened again."),
    "compactions": ("compactions", "Times that all metadata were read again, because changes were compacted."),
    "freezes": ("freezes", "Times that the metadata store was found without this cluster, or older than before."),
}
"""By the end of the name, after `odradek_metadata_store_`: the attribute of `MetadataStoreCounts`, and the help."""

METADATA_STORE_GAUGES = {
    "size_bytes": "Bytes of the database of the etcd server in use.",
    "quota_bytes": "Bytes that the database of the etcd server in use may have; etcd 3.6 or later reports it.",
}
"""By the attribute of `MetadataStoreCounts`, which ends the name after `odradek_metadata_store_`: the help."""

GAUGES = {
    "odradek_acls": ("access_rule_count", "Access rules of the cluster."),
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
    "kafka_server_replicamanager_reassigningpartitions": (
        "reassigning_partitions",
        "Partitions led here that are being moved.",
    ),
    "kafka_server_replicamanager_offlinereplicacount": (
        "offline_replicas",
        "Replicas here whose log directory has failed.",
    ),
    "kafka_server_replicamanager_produceridcount": ("producer_ids", "Producer ids with state in a log."),
    "kafka_log_logmanager_offlinelogdirectorycount": ("offline_log_directories", "Log directories that failed."),
    "kafka_controller_kafkacontroller_activecontrollercount": (
        "is_active_controller",
        "1 on the broker that is the controller.",
    ),
    "kafka_controller_kafkacontroller_offlinepartitionscount": (
        "offline_partitions",
        "Partitions without a leader; 0 unless this broker is the controller.",
    ),
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount": (
        "preferred_replica_imbalance",
        "Partitions led by another than their first replica; 0 unless this broker is the controller.",
    ),
    "kafka_controller_kafkacontroller_globaltopiccount": (
        "global_topics",
        "Topics of the cluster; 0 unless this broker is the controller.",
    ),
    "kafka_controller_kafkacontroller_globalpartitioncount": (
        "global_partitions",
        "Partitions of the cluster; 0 unless this broker is the controller.",
    ),
    "kafka_controller_kafkacontroller_activebrokercount": (
        "active_brokers",
        "Brokers that are alive; 0 unless this broker is the controller.",
    ),
    "kafka_controller_kafkacontroller_fencedbrokercount": (
        "fenced_brokers",
        "Brokers that are down or starting, and not unregistered; 0 unless this broker is the controller.",
    ),
    "odradek_metadata_frozen": ("metadata_frozen", "1 while the metadata store lacks this cluster, or is older."),
    "kafka_server_fetchsessioncache_numincrementalfetchsessions": ("fetch_sessions", "Incremental fetch sessions."),
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached": (
        "fetch_session_partitions",
        "Partitions in incremental fetch sessions.",
    ),
}
"""By name: the attribute of `Gauges`, and the help."""

FETCHER_GAUGES = {
    "maxlag": ("max_lag", "The largest number of committed records that a replica here lacks."),
    "minfetchrate": ("min_fetch_rate", "Requests a second of the slowest loop that fetches from a leader."),
    "failedpartitionscount": (
        "failed_partitions",
        "Replicas that are not fetched, because they would have to remove committed records.",
    ),
    "deadthreadcount": ("dead_threads", "Loops that fetch from a leader and ended unexpectedly."),
}
"""By the end of the name, after `kafka_server_replicafetchermanager_`: the attribute of `FetcherGauges`, the help."""

CLEANER_GAUGES = {
    "kafka_log_logcleanermanager_max_dirty_percent": (
        "max_dirty_percent",
        "Percentage of the dirtiest compacted log that is not compacted yet.",
    ),
    "kafka_log_logcleanermanager_time_since_last_run_ms": (
        "time_since_last_run_ms",
        "Milliseconds since compaction last searched for a log that needs it.",
    ),
    "kafka_log_logcleaner_cleaner_recopy_percent": (
        "recopy_percent",
        "Percentage of the bytes read by the last compaction that it wrote again.",
    ),
    "kafka_log_logcleaner_max_clean_time_secs": (
        "max_clean_time_seconds",
        "Seconds that the last compaction of a log took.",
    ),
    "kafka_log_logcleaner_max_buffer_utilization_percent": (
        "max_buffer_utilization_percent",
        "Percentage of log.cleaner.dedupe.buffer.size that the keys of a log filled.",
    ),
    "kafka_log_logcleaner_max_compaction_delay_secs": (
        "max_compaction_delay_seconds",
        "Seconds by which a log exceeds max.compaction.lag.ms.",
    ),
    "kafka_log_logcleaner_deadthreadcount": ("dead_workers", "Compaction processes that ended unexpectedly."),
}
"""By name: the attribute of `CleanerGauges`, and the help."""

PARTITION_GAUGES: dict[str, tuple[str, Callable[[PartitionGauges], float]]] = {
    "kafka_log_log_size": ("Bytes of the log.", lambda partition: partition.size_bytes),
    "kafka_log_log_logstartoffset": ("First offset of the log.", lambda partition: partition.log_start_offset),
    "kafka_log_log_logendoffset": (
        "Offset after the last record of the log.",
        lambda partition: partition.log_end_offset,
    ),
    "kafka_log_log_numlogsegments": ("Segments of the log.", lambda partition: partition.segments),
}
"""By name: the help, and the value for a partition."""

LEADER_GAUGES: dict[str, tuple[str, Callable[[PartitionGauges], float]]] = {
    "kafka_cluster_partition_replicascount": ("Replicas of the partition.", lambda partition: partition.replicas),
    "kafka_cluster_partition_insyncreplicascount": ("Replicas in sync.", lambda partition: partition.in_sync_replicas),
    "kafka_cluster_partition_underreplicated": (
        "1 if replicas are out of sync.",
        lambda partition: partition.in_sync_replicas < partition.replicas,
    ),
    "kafka_cluster_partition_underminisr": (
        "1 if fewer replicas than min.insync.replicas are in sync.",
        lambda partition: partition.in_sync_replicas < partition.min_in_sync_replicas,
    ),
    "kafka_cluster_partition_laststableoffsetlag": (
        "Committed records that open transactions hold back from consumers of committed records only.",
        lambda partition: partition.last_stable_offset_lag,
    ),
    "kafka_cluster_partition_atminisr": (
        "1 if just min.insync.replicas are in sync.",
        lambda partition: partition.in_sync_replicas == partition.min_in_sync_replicas,
    ),
}
"""By name: the help, and the value for a partition on its leader; it is 0 on other brokers, as in Kafka."""

API_TIMES: dict[str, tuple[str, Callable[[ApiMetrics], DurationHistogram]]] = {
    "totaltimems": ("Time from receiving a request until its response is sent.", lambda api: api.total),
    "requestqueuetimems": ("Time that a request waited before its handler began.", lambda api: api.queue),
    "localtimems": ("Time in the handler of a request.", lambda api: api.local),
    "remotetimems": ("Time that a request waited for others, such as replicas or producers.", lambda api: api.remote),
    "responsesendtimems": ("Time to pass a response to the kernel.", lambda api: api.send),
}
"""By the end of the name, after `kafka_network_requestmetrics_`: the help, and the histogram of an API."""
