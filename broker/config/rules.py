"""The rules between properties, as in `KafkaConfig.validateValues`: values in, sentences out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from odradek.broker.config.endpoints import Endpoint

_WILDCARD_HOSTS = ("0.0.0.0", "::")  # noqa: S104 - refused, not bound
_CODECS = range(5)
_SHORTEST_SESSION_MS = 2000  # etcd ends no session earlier
_KNOWN_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def broken_rules(values: Mapping[str, Any], declared: AbstractSet[str]) -> list[str]:
    """Return a sentence for each rule that the effective `values` break; `declared`: the names that were set."""
    return [
        *_node_id(values, declared),
        *_log_dirs(values),
        *_etcd(values, declared),
        *_listeners(values),
        *_advertised_listeners(values),
        *_times(values),
        *_limits(values),
        *_consumer_groups(values),
        *_transactions(values),
    ]


def security_protocols(text: str) -> dict[str, str]:
    """Return listener.security.protocol.map as a dictionary, names in upper case. Raises `ValueError`."""
    pairs = [item.strip() for item in text.split(",") if item.strip()]
    protocols = {}
    for pair in pairs:
        name, separator, protocol = pair.partition(":")
        if not separator or protocol.strip().upper() not in _KNOWN_PROTOCOLS:
            raise ValueError(f"{pair!r} is not NAME:protocol with a protocol of {', '.join(_KNOWN_PROTOCOLS)}")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def connection_overrides(text: str) -> dict[str, int]:
    """Return max.connections.per.ip.overrides as a dictionary. Raises `ValueError`."""
    overrides = {}
    for item in (item.strip() for item in text.split(",") if item.strip()):
        host, separator, count = item.rpartition(":")
        if not separator or not count.strip().isascii() or not count.strip().isdigit():
            raise ValueError(f"{item!r} is not of the form host:count")
        overrides[host.strip()] = int(count)
    return overrides


def _node_id(values: Mapping[str, Any], declared: AbstractSet[str]) -> Iterator[str]:
    node_id, broker_id = values["node.id"], values["broker.id"]
    if {"node.id", "broker.id"} <= declared and node_id != broker_id:
        yield f"node.id is {node_id} and broker.id is {broker_id}: they are two names of one id"
    elif node_id < 0:
        yield f"broker.id = {broker_id}: Value must be at least 0"


def _log_dirs(values: Mapping[str, Any]) -> Iterator[str]:
    directories = values["log.dirs"]
    if not directories or "" in directories:
        yield "log.dirs names no directory"


def _etcd(values: Mapping[str, Any], declared: AbstractSet[str]) -> Iterator[str]:
    if values["metadata.etcd.endpoints"]:
        yield from _cluster(values, declared)
    for one, other in (("username", "password"), ("certificate.file", "key.file")):
        names = [f"metadata.etcd.{part}" for part in (one, other)]
        are_set = [values[name] is not None for name in names]
        if any(are_set) and not all(are_set):
            yield f"{names[are_set.index(True)]} is set, so {names[are_set.index(False)]} must be set too"


def _cluster(values: Mapping[str, Any], declared: AbstractSet[str]) -> Iterator[str]:
    """The rules of a broker that others must find, and tell from themselves."""
    if declared.isdisjoint(("node.id", "broker.id")):
        yield "metadata.etcd.endpoints: set node.id too, to a number that no other broker of the cluster has"
    if values["advertised.listeners"] is None:
        for endpoint in values["listeners"]:
            if not endpoint.host or endpoint.host in _WILDCARD_HOSTS:
                yield f"advertised.listeners: set it, because other brokers cannot connect to {endpoint} (listeners)"
    listener = values["inter.broker.listener.name"]
    names = [endpoint.name for endpoint in values["listeners"]]
    if listener is not None and listener not in names:
        yield f"inter.broker.listener.name: {listener} is none of the listeners {', '.join(names)}"
    wait_ms, lag_ms = values["replica.fetch.wait.max.ms"], values["replica.lag.time.max.ms"]
    if wait_ms > lag_ms:
        yield f"replica.fetch.wait.max.ms = {wait_ms}: it is at most replica.lag.time.max.ms, which is {lag_ms}"
    timeout_ms = values["broker.session.timeout.ms"]
    if timeout_ms < _SHORTEST_SESSION_MS:
        yield f"broker.session.timeout.ms = {timeout_ms}: in a cluster it is at least {_SHORTEST_SESSION_MS}"


def _listeners(values: Mapping[str, Any]) -> Iterator[str]:
    endpoints: list[Endpoint] = values["listeners"]
    try:
        protocols = security_protocols(values["listener.security.protocol.map"])
    except ValueError as error:
        yield f"listener.security.protocol.map: {error}"
        return
    if not endpoints:
        yield "listeners names no listener"
    yield from _repeated("listeners", endpoints)
    for endpoint in endpoints:
        protocol = protocols.get(endpoint.name)
        if protocol is None:
            yield f"listeners: {endpoint} has no protocol in listener.security.protocol.map"


def _repeated(name: str, endpoints: list[Endpoint]) -> Iterator[str]:
    for position, endpoint in enumerate(endpoints):
        before = endpoints[:position]
        if any(endpoint.name == other.name for other in before):
            yield f"{name}: the listener name {endpoint.name} is used twice"
        if endpoint.port and any((endpoint.host, endpoint.port) == (other.host, other.port) for other in before):
            yield f"{name}: {endpoint} has the address of another listener"


def _advertised_listeners(values: Mapping[str, Any]) -> Iterator[str]:
    advertised: list[Endpoint] | None = values["advertised.listeners"]
    if advertised is None:
        return
    names = {endpoint.name for endpoint in values["listeners"]}
    yield from _repeated("advertised.listeners", advertised)
    for endpoint in advertised:
        if endpoint.name not in names:
            yield f"advertised.listeners: {endpoint} is none of the listeners {', '.join(sorted(names))}"
        if not endpoint.host or endpoint.host in _WILDCARD_HOSTS:
            yield f"advertised.listeners: {endpoint} is not an address that a client can connect to"
        if endpoint.port == 0:
            yield f"advertised.listeners: {endpoint} has no port"


def _times(values: Mapping[str, Any]) -> Iterator[str]:
    if not (values["log.retention.ms"] == -1 or values["log.retention.ms"] >= 1):
        yield "log.retention.ms (or minutes, hours) must be at least 1, or -1 for no limit"
    if values["log.roll.ms"] < 1:
        yield "log.roll.ms must be at least 1"
    if values["log.roll.jitter.ms"] < 0:
        yield "log.roll.jitter.ms must be at least 0"
    if values["log.flush.interval.ms"] < 0:
        yield "log.flush.interval.ms must be at least 0"
    shortest, longest = values["log.cleaner.min.compaction.lag.ms"], values["log.cleaner.max.compaction.lag.ms"]
    if shortest > longest:
        yield f"log.cleaner.min.compaction.lag.ms ({shortest}) exceeds log.cleaner.max.compaction.lag.ms ({longest})"


def _limits(values: Mapping[str, Any]) -> Iterator[str]:
    codec = values["offsets.topic.compression.codec"]
    if codec not in _CODECS:
        yield f"offsets.topic.compression.codec = {codec}: expected 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)"
    try:
        connection_overrides(values["max.connections.per.ip.overrides"])
    except ValueError as error:
        yield f"max.connections.per.ip.overrides: {error}"
    for label in values["metrics.static.labels"]:
        name, separator, _ = label.partition("=")
        if not separator or not name.strip().isidentifier():
            yield f"metrics.static.labels: {label!r} is not of the form name=value"


def _consumer_groups(values: Mapping[str, Any]) -> Iterator[str]:
    for what in ("session.timeout", "heartbeat.interval", "assignment.interval"):
        name, low, high = (f"group.consumer.{bound}{what}.ms" for bound in ("", "min.", "max."))
        if values[high] < values[low]:
            yield f"{high} must be greater than or equal to {low}"
        if values[name] < values[low]:
            yield f"{name} must be greater than or equal to {low}"
        if values[name] > values[high]:
            yield f"{name} must be less than or equal to {high}"
    heartbeat, session = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"
    if values[heartbeat] >= values[session]:
        yield f"{heartbeat} must be less than {session}"
    assignors = values["group.consumer.assignors"]
    if not assignors:
        yield "group.consumer.assignors names no assignor"
    for assignor in assignors:
        if assignor not in ("uniform", "range"):
            # Differs from Kafka: names of classes are refused, because there is no Java to load them.
            yield f"group.consumer.assignors: {assignor!r} is neither uniform nor range"


def _transactions(values: Mapping[str, Any]) -> Iterator[str]:
    name = "transaction.two.phase.commit.enable"
    if values[name]:
        yield f"{name} must be false, because the two-phase commit of KIP-939 is not supported"
