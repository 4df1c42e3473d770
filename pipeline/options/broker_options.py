"""The options of `format("broker")`: those of Spark's Kafka connector.

| kind | effect |
|---|---|
| an option of the connector that selects what is read or written | applied |
| an option that tunes the connector's consumers (`fetchOffset.numRetries`) | accepted and ignored |
| `kafka.*` of Kafka's clients that the bundled client supports | applied |
| `kafka.security.protocol`, `kafka.ssl.*`, `kafka.sasl.*` (`security_options`) | applied |
| any other | ValueError that names it |

Names are case-insensitive: Spark passes them in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, cast

from odradek.client.config import (
    COMPRESSION_LEVELS,
    ClientConfig,
    ClientSettings,
    CompressionType,
    IsolationLevel,
    parse_bootstrap_servers,
)
from odradek.client.record import TopicPartition
from odradek.pipeline.options.bounds import EARLIEST, LATEST, Bound, read_bound, read_partitions
from odradek.pipeline.options.option_values import boolean, choice, duration_ms, isolation_level, number
from odradek.pipeline.options.security_options import is_security_option, security_settings

Strategy = Literal["error", "latest"]

_SUBSCRIPTIONS: Final = ("subscribe", "subscribepattern", "assign")
_OF_TRIGGERS: Final = {"maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay"}
_READ: Final = {
    *_SUBSCRIPTIONS, "startingoffsets", "endingoffsets", "startingoffsetsbytimestamp", "endingoffsetsbytimestamp",
    "startingtimestamp", "endingtimestamp", "startingoffsetsbytimestampstrategy", *_OF_TRIGGERS, "minpartitions",
    "maxrecordsperpartition", "failondataloss", "includeheaders", "isolation.level",
}  # fmt: skip
_WRITTEN: Final = {"topic"}
# Accepted and ignored: they tune the connector's consumers, name its groups, or do not change the result.
_IGNORED: Final = {
    "kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix",
    "kafka.group.id", "kafka.max.poll.records", "kafka.fetch.min.bytes",
    "kafka.fetch.max.wait.ms", "kafka.receive.buffer.bytes", "kafka.send.buffer.bytes", "kafka.check.crcs",
    "kafka.buffer.memory", "kafka.linger.ms", "kafka.retries", "kafka.max.in.flight.requests.per.connection",
    "kafka.max.request.size", "kafka.session.timeout.ms", "kafka.heartbeat.interval.ms",
    "kafka.max.poll.interval.ms", "kafka.connections.max.idle.ms",
    "kafka.client.rack", "kafka.client.dns.lookup", "kafka.allow.auto.create.topics", "kafka.group.instance.id",
    "kafka.group.protocol", "kafka.partition.assignment.strategy", "kafka.metadata.recovery.strategy",
    "kafka.enable.metrics.push", "kafka.metric.reporters", "kafka.metrics.num.samples",
    "kafka.metrics.recording.level", "kafka.metrics.sample.window.ms",
    "checkpointlocation",
}  # fmt: skip
_CLIENT: Final = {
    "kafka.request.timeout.ms": "request_timeout_ms",
    "kafka.metadata.max.age.ms": "metadata_max_age_ms",
    "kafka.retry.backoff.ms": "retry_backoff_ms",
    "kafka.retry.backoff.max.ms": "retry_backoff_max_ms",
    "kafka.reconnect.backoff.ms": "reconnect_backoff_ms",
    "kafka.reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "kafka.socket.connection.setup.timeout.ms": "connect_timeout_ms",
}
# Accepted with the only value that is supported.
_FIXED: Final = {
    "kafka.acks": ("all", "-1"),
    "kafka.enable.idempotence": ("true",),
    "kafka.partitioner.ignore.keys": ("false",),
}
_REJECTED: Final = {  # with what to use instead
    "kafka.auto.offset.reset": "startingOffsets sets where a query starts",
    "kafka.key.deserializer": "keys are bytes; cast them in the query",
    "kafka.value.deserializer": "values are bytes; cast them in the query",
    "kafka.key.serializer": "keys are bytes or text; cast them in the query",
    "kafka.value.serializer": "values are bytes or text; cast them in the query",
    "kafka.enable.auto.commit": "Spark keeps offsets in its checkpoint; they are not committed",
    "kafka.interceptor.classes": "interceptors are Java classes, and the bundled client is Python",
    "kafka.transactional.id": "the sink does not write in transactions: a retried task writes its records again",
    "kafka.partitioner.class": "the column `partition` sets the partition",
}
_READ_ONLY: Final = {
    "kafka.isolation.level", "kafka.fetch.max.bytes", "kafka.max.partition.fetch.bytes", "kafka.default.api.timeout.ms",
}  # fmt: skip
_WRITE_ONLY: Final = {
    "kafka.compression.type", "kafka.compression.gzip.level", "kafka.compression.lz4.level",
    "kafka.compression.zstd.level", "kafka.batch.size", "kafka.delivery.timeout.ms", "kafka.max.block.ms",
}  # fmt: skip

ADDRESSES: Final = ("kafka.bootstrap.servers", "bootstrap.servers")
_EVERY_CLIENT: Final = {*ADDRESSES, "kafka.client.id"}
_KNOWN: Final = {
    *_READ, *_READ_ONLY, *_WRITTEN, *_WRITE_ONLY, *_IGNORED, *_CLIENT, *_FIXED, *_EVERY_CLIENT,
}  # fmt: skip

DEFAULT_FETCH_BYTES: Final = 4_000_000  # one group of `records`, and the largest response whose buffer is reused
DEFAULT_TIMEOUT_MS: Final = 60_000  # Kafka's default of default.api.timeout.ms and of max.block.ms
DEFAULT_BATCH_BYTES: Final = 896 << 10  # just below a topic's default max.message.bytes: fewer batches cost less


class Subscription(NamedTuple):
    """The topics to read, by name or by a pattern that matches the whole name, or the partitions; one of the three."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def named_topics(self) -> set[str]:
        """The topics of the names or of the partitions."""
        return {*self.topics, *(partition.topic for partition in self.partitions)}


class Cluster(NamedTuple):
    """The addresses of brokers, and the settings of clients."""

    bootstrap_servers: str
    settings: ClientSettings
    timeout_ms: int  # of an operation with its retries: kafka.default.api.timeout.ms when reading, .max.block.ms else

    def __repr__(self) -> str:
        return f"Cluster({self.bootstrap_servers!r}, …)"  # the settings have passwords

    def client_config(self) -> ClientConfig:
        """Return the configuration of a client of this cluster. Raises ConfigurationError."""
        return ClientConfig(bootstrap_servers=parse_bootstrap_servers(self.bootstrap_servers), **self.settings)


class ReadOptions(NamedTuple):
    """The options of a source."""

    cluster: Cluster
    subscription: Subscription
    start: Bound
    end: Bound
    start_fallback: Strategy  # if no record is as late as the start time
    max_offsets: int | None  # of a micro-batch
    min_offsets: int | None
    max_delay_ms: int  # of waiting for min_offsets
    min_partitions: int | None
    max_records: int | None  # of a Spark partition
    fail_on_data_loss: bool
    include_headers: bool
    isolation_level: IsolationLevel
    fetch_bytes: int


class WriteOptions(NamedTuple):
    """The options of a sink. `topic` is None if the column `topic` names the topics."""

    cluster: Cluster
    topic: str | None
    compression: CompressionType
    compression_level: int | None
    batch_bytes: int
    delivery_timeout_ms: int


def batch_read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of `spark.read`; those of triggers are ignored. Raises ValueError that names the option."""
    options = {name: value for name, value in _known(given).items() if name not in _OF_TRIGGERS}
    read = _read_options(options, EARLIEST)
    _check_not_at(read.start, LATEST, "startingOffsets", "latest")
    _check_not_at(read.end, EARLIEST, "endingOffsets", "earliest")
    return read


def stream_read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of `spark.readStream`. Raises ValueError that names the option."""
    options = _known(given)
    for name in ("endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp"):
        if name in options:
            raise ValueError(f"{name} applies to batches only: a stream has no end")
    return _read_options(options, LATEST)


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parse the options of `write` and `writeStream`. Raises ValueError that names the option."""
    options = _known(given)
    compression = options.get("kafka.compression.type", "none").lower()
    if compression not in ("none", "gzip", "snappy", "lz4", "zstd"):
        raise ValueError(f"kafka.compression.type is {compression!r}: choose one of none, gzip, snappy, lz4, zstd")
    return WriteOptions(
        _cluster(options, "kafka.max.block.ms"),
        options.get("topic", "").strip() or None,
        cast("CompressionType", compression),
        _compression_level(options, compression),
        number(options, "kafka.batch.size", 1) or DEFAULT_BATCH_BYTES,
        number(options, "kafka.delivery.timeout.ms", 1) or 120_000,
    )


def _read_options(options: Mapping[str, str], start: int) -> ReadOptions:
    max_offsets = number(options, "maxoffsetspertrigger", 1)
    min_offsets = number(options, "minoffsetspertrigger", 1)
    if max_offsets is not None and min_offsets is not None and min_offsets > max_offsets:
        raise ValueError(f"minOffsetsPerTrigger {min_offsets} is above maxOffsetsPerTrigger {max_offsets}")
    fetch_bytes = number(options, "kafka.max.partition.fetch.bytes", 1) or DEFAULT_FETCH_BYTES
    return ReadOptions(
        cluster=_cluster(options, "kafka.default.api.timeout.ms"),
        subscription=subscription(options),
        start=read_bound(options, "starting", start),
        end=read_bound(options, "ending", LATEST),
        start_fallback=cast(
            "Strategy", choice(options, "startingoffsetsbytimestampstrategy", ("error", "latest"), "error")
        ),
        max_offsets=max_offsets,
        min_offsets=min_offsets,
        max_delay_ms=duration_ms(options, "maxtriggerdelay", "15m"),
        min_partitions=number(options, "minpartitions", 1),
        max_records=number(options, "maxrecordsperpartition", 1),
        fail_on_data_loss=boolean(options, "failondataloss", default=True),
        include_headers=boolean(options, "includeheaders", default=False),
        isolation_level=isolation_level(options),
        fetch_bytes=min(fetch_bytes, number(options, "kafka.fetch.max.bytes", 1) or fetch_bytes),
    )


def _known(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options by lower-case name. Raises ValueError for one that is unknown or has an unsupported value.

    Options of reading are accepted when writing and vice versa, so that a job can pass the same options to both.
    """
    options = {name.lower(): value for name, value in given.items()}
    security_settings(options)  # first, so that no other error is about the security
    for name, value in options.items():
        if is_security_option(name):
            continue
        if name in _REJECTED:
            raise ValueError(f"{name} is not supported: {_REJECTED[name]}")
        if name in _FIXED and value.lower() not in (allowed.lower() for allowed in _FIXED[name]):
            raise ValueError(f'{name} is {value!r}, but format("broker") supports {_FIXED[name][0]} only')
        if name not in _KNOWN:
            raise ValueError(f'option {name!r} is not supported by format("broker")')
    return options


def _cluster(options: Mapping[str, str], timeout: str) -> Cluster:
    servers = options.get("kafka.bootstrap.servers", options.get("bootstrap.servers", "")).strip()
    if not servers:
        raise ValueError("kafka.bootstrap.servers is missing: give the brokers as host:port, separated by commas")
    settings: dict[str, object] = {"client_id": options.get("kafka.client.id", "odradek-pipeline")}
    settings |= security_settings(options)
    for name, setting in _CLIENT.items():
        if (given := number(options, name, 0)) is not None:
            settings[setting] = given
    return Cluster(servers, cast("ClientSettings", settings), number(options, timeout, 1) or DEFAULT_TIMEOUT_MS)


def subscription(options: Mapping[str, str]) -> Subscription:
    """Parse `subscribe`, `subscribePattern` or `assign`. Raises ValueError unless exactly one is given."""
    chosen = [name for name in _SUBSCRIPTIONS if name in options]
    if not chosen:
        raise ValueError("no topic to read: give one of subscribe, subscribePattern and assign")
    if len(chosen) > 1:
        raise ValueError(f"{' and '.join(chosen)} are given, but only one of them is allowed")
    kind, text = chosen[0], options[chosen[0]].strip()
    if kind == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not topics:
            raise ValueError(f"subscribe names no topic: {text!r}")
        return Subscription(topics=topics)
    if kind == "assign":
        return Subscription(partitions=read_partitions("assign", text))
    if not text:
        raise ValueError("subscribePattern is empty")
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"subscribePattern {text!r} is not a regular expression: {error}") from None
    return Subscription(pattern=text)


def _check_not_at(bound: Bound, position: int, option: str, name: str) -> None:
    if bound.by_time:
        return
    if bound.everywhere == position:
        raise ValueError(f"a batch has nothing to read if {option} is {name}")
    for (topic, index), offset in bound.each.items():
        if offset == position:
            raise ValueError(f"a batch has nothing to read if {option} is {name} for {topic}-{index}")


def _compression_level(options: Mapping[str, str], compression: str) -> int | None:
    name = f"kafka.compression.{compression}.level"
    if name not in options:
        return None
    levels, text = COMPRESSION_LEVELS[compression], options[name]
    if not text.lstrip("-").isdecimal() or int(text) not in levels:
        raise ValueError(f"{name} is {text!r}: {compression} has the levels {levels[0]} to {levels[-1]}")
    return int(text)
