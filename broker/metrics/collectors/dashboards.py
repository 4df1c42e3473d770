"""Public dashboards and alerts for Kafka, each with the series of ours that it uses. As of August 2026.

Other series that they use are of the Java machine, which is absent here, or of the containers around it.
"""

from __future__ import annotations

from typing import NamedTuple


class Dashboard(NamedTuple):
    """One dashboard or file of alerts: its name on the page, its subject, its address and the series that it uses."""

    name: str
    about: str
    url: str
    series: frozenset[str]


_TOPICS = "kafka_server_brokertopicmetrics_"
_REPLICAS = "kafka_server_replicamanager_"
_CONTROLLER = "kafka_controller_kafkacontroller_"
_PARTITION = "kafka_topic_partition_"
_STRIMZI = "https://github.com/strimzi/strimzi-kafka-operator/blob/main/examples/metrics/"

DASHBOARDS = (
    Dashboard(
        "Strimzi Kafka",
        "Strimzi's dashboard of brokers",
        f"{_STRIMZI}grafana-dashboards/strimzi-kafka.json",
        frozenset(
            {
                "kafka_cluster_partition_atminisr",
                "kafka_cluster_partition_replicascount",
                "kafka_cluster_partition_underminisr",
                "kafka_controller_controllerstats_uncleanleaderelections_total",
                f"{_CONTROLLER}activecontrollercount",
                f"{_CONTROLLER}offlinepartitionscount",
                "kafka_log_log_size",
                "kafka_network_socketserver_networkprocessoravgidle_percent",
                f"{_TOPICS}bytesin_total",
                f"{_TOPICS}bytesout_total",
                f"{_TOPICS}failedfetchrequests_total",
                f"{_TOPICS}failedproducerequests_total",
                f"{_TOPICS}messagesin_total",
                f"{_TOPICS}totalfetchrequests_total",
                f"{_TOPICS}totalproducerequests_total",
                "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
                "kafka_server_kafkaserver_linux_disk_read_bytes",
                "kafka_server_kafkaserver_linux_disk_write_bytes",
                f"{_REPLICAS}leadercount",
                f"{_REPLICAS}partitioncount",
                f"{_REPLICAS}underreplicatedpartitions",
                "kafka_server_socket_server_metrics_connection_count",
                "process_open_fds",
            }
        ),
    ),
    Dashboard(
        "Strimzi alerts",
        "Strimzi's rules for Prometheus's alerts",
        f"{_STRIMZI}prometheus-install/prometheus-rules/prometheus-kafka-rules.yaml",
        frozenset(
            {
                f"{_CONTROLLER}activecontrollercount",
                f"{_CONTROLLER}offlinepartitionscount",
                "kafka_log_logmanager_offlinelogdirectorycount",
                f"{_REPLICAS}underminisrpartitioncount",
                f"{_REPLICAS}underreplicatedpartitions",
            }
        ),
    ),
    Dashboard(
        "Strimzi Exporter",
        "Strimzi's dashboard of topics and consumer groups",
        f"{_STRIMZI}grafana-dashboards/strimzi-kafka-exporter.json",
        frozenset(
            {
                "kafka_broker_info",
                "kafka_cluster_partition_atminisr",
                "kafka_cluster_partition_underminisr",
                "kafka_consumergroup_current_offset",
                "kafka_consumergroup_lag",
                f"{_PARTITION}current_offset",
                f"{_PARTITION}in_sync_replica",
                f"{_PARTITION}leader_is_preferred",
                f"{_PARTITION}oldest_offset",
                f"{_PARTITION}replicas",
                f"{_PARTITION}under_replicated_partition",
                "kafka_topic_partitions",
            }
        ),
    ),
    Dashboard(
        "Kafka Exporter",
        "kafka_exporter's own dashboard",
        "https://github.com/danielqsj/kafka_exporter/blob/master/kafka_exporter_overview.json",
        frozenset(
            {
                "kafka_consumergroup_current_offset",
                "kafka_consumergroup_lag",
                f"{_PARTITION}current_offset",
                "kafka_topic_partitions",
            }
        ),
    ),
    Dashboard(
        "Lag Exporter",
        "kafka-lag-exporter's dashboard of lag in records and seconds",
        "https://github.com/seglo/kafka-lag-exporter/blob/master/grafana/Kafka_Lag_Exporter_Dashboard.json",
        frozenset(
            {
                "kafka_consumergroup_group_lag",
                "kafka_consumergroup_group_lag_seconds",
                "kafka_consumergroup_group_max_lag",
                "kafka_consumergroup_group_max_lag_seconds",
            }
        ),
    ),
)
