"""The series of client quotas, under the names that two exporters give Kafka's JMX beans.

| `byte-rate` of `kafka.server:type=Produce,user=u,client-id=c` | in |
|---|---|
| `kafka_server_quota_byte_rate{resource="Produce",user="u",clientId="c"}` | the JMX exporter's example |
| `kafka_server_produce_byte_rate{user="u",client_id="c"}` | Confluent's rules |

A label that does not matter for a quota is empty, which to Prometheus is the same as missing. Only clients with a quota
have series, at most `SERIES_LIMIT` for each kind of quota: those that were last seen, since clients invent client ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from odradek.broker.metrics.collectors.gauge_values import QuotaGauges
from odradek.broker.quotas.client_quotas import Use
from odradek.broker.quotas.entities import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

SERIES_LIMIT: Final = 1000
"""Clients of each kind; their rates take the event loop 8 ms."""

_RESOURCES: Final = {
    PRODUCER_BYTE_RATE: ("Produce", "byte_rate", "Bytes of Produce requests a second"),
    CONSUMER_BYTE_RATE: ("Fetch", "byte_rate", "Bytes of fetched records a second"),
    REQUEST_PERCENTAGE: ("Request", "request_time", "Percent of the event loop's time"),
    CONTROLLER_MUTATION_RATE: ("ControllerMutation", "mutation_rate", "Partitions created and deleted a second"),
}
"""Kafka's name of the resource, its attribute and meaning, by kind of limit."""
_THROTTLE: Final = "throttle_time"
_TOKENS: Final = "tokens"
_OF_ALL: Final = {
    "byte_rate": "Bytes produced or fetched a second",
    "request_time": _RESOURCES[REQUEST_PERCENTAGE][2],
    "mutation_rate": _RESOURCES[CONTROLLER_MUTATION_RATE][2],
    _TOKENS: "Partitions that may be created or deleted at once; negative: as many were too many",
    _THROTTLE: "Mean throttle time of the last minute, in milliseconds",
}
_WHO: Final = ", by a client with a quota."


def quota_series(gauges: Sequence[QuotaGauges]) -> Iterator[Metric]:
    """Yield all families."""
    of_all = {
        attribute: GaugeMetricFamily(
            f"kafka_server_quota_{attribute}", text + _WHO, labels=["resource", "user", "clientId"]
        )
        for attribute, text in _OF_ALL.items()
    }
    for kind, (resource, rate, text) in _RESOURCES.items():
        texts = {rate: text, _THROTTLE: _OF_ALL[_THROTTLE]}
        if kind == CONTROLLER_MUTATION_RATE:
            texts[_TOKENS] = _OF_ALL[_TOKENS]
        families = {
            attribute: GaugeMetricFamily(
                f"kafka_server_{resource.lower()}_{attribute}", each + _WHO, labels=["user", "client_id"]
            )
            for attribute, each in texts.items()
        }
        for gauge in gauges:
            if gauge.kind == kind:
                values = {rate: gauge.rate, _THROTTLE: gauge.throttle_ms, _TOKENS: gauge.tokens}
                for attribute, family in families.items():
                    family.add_metric([gauge.user, gauge.client_id], values[attribute])
                    of_all[attribute].add_metric([resource, gauge.user, gauge.client_id], values[attribute])
        yield from families.values()
    yield from of_all.values()


def last_used(uses: Iterable[Use]) -> list[Use]:
    """Return the last `SERIES_LIMIT` of each kind. `uses` has the least recently used first."""
    by_kind: dict[str, deque[Use]] = {kind: deque(maxlen=SERIES_LIMIT) for kind in _RESOURCES}
    for use in uses:
        by_kind[use.kind].append(use)
    return [use for kept in by_kind.values() for use in kept]
