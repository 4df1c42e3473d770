"""Properties of metrics and of the broker's own log lines. None of them is Kafka's."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least, between, one_of
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import INT, LIST, PASSWORD, STRING, nullable

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class ObservabilityProperties(Table):
    """Metrics and log lines of the broker."""

    metrics_port = Property(
        "metrics.port", INT, -1, between(-1, 65_535), own=True,
        doc="The port of /metrics, /healthz and /readyz over HTTP; 0: any free one, -1: none.",
    )
    metrics_host = Property(
        "metrics.host", STRING, "127.0.0.1", own=True,
        doc="The address on which metrics.port is opened. On loopback, requests whose Host is another name with a dot "
        "are answered 403.",
    )
    metrics_ssl_keystore_location = Property(
        "metrics.ssl.keystore.location", nullable(STRING), None, own=True,
        doc="The file with the key and the certificates of metrics.port, which then speaks TLS: PEM, or PKCS12 with "
        "metrics.ssl.keystore.password. When it changes, new connections use the new one.",
    )
    metrics_ssl_keystore_password = Property(
        "metrics.ssl.keystore.password", nullable(PASSWORD), None, own=True,
        doc="The password of metrics.ssl.keystore.location, which then is a PKCS12 file.",
    )
    metrics_ssl_truststore_location = Property(
        "metrics.ssl.truststore.location", nullable(STRING), None, own=True,
        doc="The file with the certificates of the authorities whose clients may read /metrics: PEM, or PKCS12 with "
        "metrics.ssl.truststore.password.",
    )
    metrics_ssl_truststore_password = Property(
        "metrics.ssl.truststore.password", nullable(PASSWORD), None, own=True,
        doc="The password of metrics.ssl.truststore.location, which then is a PKCS12 file.",
    )
    metrics_token_file = Property(
        "metrics.token.file", nullable(STRING), None, own=True,
        doc="The file whose first line is the token with which /metrics may be read (Authorization: Bearer). Nobody "
        "but its owner and group may read it. It is read again for each request.",
    )
    metrics_dialects = Property(
        "metrics.dialects", LIST, ["strimzi", "exporter"], one_of("strimzi", "exporter"), own=True,
        doc="The names of the series: those of Strimzi's rules for Kafka's JMX beans, those of kafka_exporter, or "
        "both.",
    )
    metrics_static_labels = Property(
        "metrics.static.labels", LIST, [], own=True,
        doc="Labels that every sample gets: name=value, separated by commas. Some dashboards expect labels that "
        "scraping adds.",
    )
    metrics_partition_limit = Property(
        "metrics.partition.limit", INT, 1000, at_least(0), own=True,
        doc="The number of partitions led here above which /metrics omits the series of single partitions.",
    )
    log_level = Property(
        "log.level", STRING, "info", one_of("debug", "info", "warning", "error"), own=True,
        doc="The least severity of events that are written to standard error.",
    )
    audit_log_file = Property(
        "audit.log.file", STRING, "", own=True,
        doc="The file to which the audit log is appended, as JSON: authentications, refusals, changes. Only its owner "
        "may read it. Empty: it is among the other events, without successful authentications.",
    )
    log_format = Property(
        "log.format", STRING, "human", one_of("human", "json"), own=True,
        doc="The format of events: a line of text (human), or JSON.",
    )
