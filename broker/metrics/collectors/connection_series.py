"""The series of connections and of their authentication, by listener: Kafka's names, as if of one network processor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from odradek.broker.metrics.counts.metrics import ListenerMetrics

_PREFIX = "kafka_server_socket_server_metrics_"
_LABELS = ["listener", "networkProcessor"]
_SOFTWARE_LIMIT = 100  # series: clients choose these names themselves

_COUNTERS: dict[str, tuple[str, Callable[[ListenerMetrics], int]]] = {
    f"{_PREFIX}connection_creation": ("Connections accepted.", lambda of: of.created),
    f"{_PREFIX}connection_close": ("Connections closed.", lambda of: of.closed),
    f"{_PREFIX}successful_authentication": (
        "Connections whose clients have authenticated.",
        lambda of: of.authentications,
    ),
    f"{_PREFIX}failed_authentication": (
        "Connections closed because their clients could not authenticate.",
        lambda of: of.failed_authentications,
    ),
    f"{_PREFIX}successful_reauthentication": (
        "Times that a client has authenticated again.",
        lambda of: of.reauthentications,
    ),
    f"{_PREFIX}failed_reauthentication": (
        "Connections closed because their clients could not authenticate again.",
        lambda of: of.failed_reauthentications,
    ),
    "odradek_connections_refused": ("Connections closed for a limit.", lambda of: of.refused),
    "odradek_connections_idle": ("Connections closed as idle.", lambda of: of.idle),
}
_GAUGES: dict[str, tuple[str, Callable[[ListenerMetrics], int]]] = {
    f"{_PREFIX}connection_count": ("Open connections.", lambda of: of.open),
    f"{_PREFIX}expired_connections_killed_count": (
        "Connections used after their session had ended, and so closed.",
        lambda of: of.expired_sessions,
    ),
}


def connection_series(listeners: Iterable[ListenerMetrics], now: float) -> Iterator[Metric]:
    """Yield all families; `now` is the monotonic time."""
    listeners = list(listeners)
    for kind, rows in ((CounterMetricFamily, _COUNTERS), (GaugeMetricFamily, _GAUGES)):
        for name, (text, value) in rows.items():
            family = kind(name, text, labels=_LABELS)
            for listener in listeners:
                family.add_metric([listener.name, "0"], value(listener))
            yield family
    creation_rate = GaugeMetricFamily(
        f"{_PREFIX}connection_creation_rate", "Connections accepted a second.", labels=_LABELS
    )
    close_rate = GaugeMetricFamily(f"{_PREFIX}connection_close_rate", "Connections closed a second.", labels=_LABELS)
    software = GaugeMetricFamily(
        f"{_PREFIX}connections",
        "Open connections by the client's software.",
        labels=["clientSoftwareName", "clientSoftwareVersion", *_LABELS],
    )
    expiry = GaugeMetricFamily(
        "odradek_tls_certificate_expiry_timestamp_seconds",
        "Time at which the TLS certificate of a listener expires, or the first one of its chain.",
        labels=["listener"],
    )
    for listener in listeners:
        if listener.certificate_expiry is not None:
            expiry.add_metric([listener.name], listener.certificate_expiry)
        values = [listener.name, "0"]
        created, closed = listener.rates(now)
        creation_rate.add_metric(values, created)
        close_rate.add_metric(values, closed)
        for (name, version), open_connections in listener.software.most_common(_SOFTWARE_LIMIT):
            software.add_metric([name, version, *values], open_connections)
    yield from (creation_rate, close_rate, software, expiry)
