"""The settings of all clients and their validation; names, units and meaning are those of Kafka's clients.

This module specifies the meaning and the bounds of each setting. `ClientConfig` has the defaults of the common
settings, which `ClientSettings` passes on; the defaults of a single client's settings are in its signature. Names that
end in `_ms` are milliseconds. All classes are immutable; constructors raise ConfigurationError for invalid values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from odradek.client.consumer.auto_offset_reset import is_policy
from odradek.client.errors import ConfigurationError
from odradek.client.producer.partitioner import PARTITIONER_NAMES, Partitioner, PartitionerName
from odradek.client.security.settings import SecurityKeywords, SecuritySettings
from odradek.protocol.compression.codecs import Codec

Acks = Literal[0, 1, -1, "all"]
CompressionType = Literal["none", "gzip", "snappy", "lz4", "zstd"]
GroupProtocol = Literal["classic", "consumer"]
IsolationLevel = Literal["read_uncommitted", "read_committed"]

COMPRESSION_LEVELS: dict[str, range] = {"gzip": range(1, 10), "lz4": range(1, 18), "zstd": range(-131072, 23)}
"""The levels of the codecs that have any, as in Kafka's compression.gzip.level, .lz4.level and .zstd.level."""

DEFAULT_PORT = 9092
ASSIGNOR_NAMES = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
MAX_IN_FLIGHT_OF_IDEMPOTENCE = 5
"""A leader remembers the last five batches of a producer, so only these can be retried without duplicates."""


class Address(NamedTuple):
    """The address of a broker's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap_servers(servers: str | Sequence[str]) -> tuple[Address, ...]:
    """Parse `host:port,host:port` or a sequence of `host:port`; the port is optional, IPv6 is in brackets."""
    texts = servers.split(",") if isinstance(servers, str) else servers
    addresses = tuple(_parse_address(text.strip()) for text in texts if text.strip())
    if not addresses:
        raise _wrong("the bootstrap server", servers, "name at least one broker as host:port")
    return addresses


def parse_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Parse `name,name` or a sequence of names."""
    return tuple(name.strip() for name in (names.split(",") if isinstance(names, str) else names))


def _parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if "/" in text:
        raise _wrong("the bootstrap server", text, "write host:port, not a URL")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    elif ":" in host and not host.startswith("["):
        raise _wrong("the bootstrap server", text, "write an IPv6 address in brackets: [::1]:9092")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise _wrong("the bootstrap server", text, "write host:port with a port from 1 to 65535")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def _wrong(name: str, value: Any, cure: str) -> ConfigurationError:
    return ConfigurationError("configure the client", f"{name} is {value!r}", cure)


class ClientSettings(SecurityKeywords, total=False):
    """The keywords of every client; `ClientConfig` specifies their meaning and defaults."""

    client_id: str
    request_timeout_ms: int
    connect_timeout_ms: int
    metadata_max_age_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int


def check_keywords(client: type, given: Iterable[str]) -> None:
    """Check that keywords are common settings. Raises ConfigurationError, with a suggestion."""
    for name in given:
        if name not in ClientSettings.__annotations__:
            from odradek.client.setting_names import unknown_setting  # loaded for errors only

            raise unknown_setting(name, client)


class ClientConfig(SecuritySettings, frozen=True, kw_only=True):
    """The common settings of all clients; `client.security.settings` has those of TLS and SASL."""

    bootstrap_servers: tuple[Address, ...]  # they return the other brokers; one that responds is enough
    client_id: str = "odradek"  # the name of this client in the broker's logs and quotas
    request_timeout_ms: int = 30000  # if a response takes longer, the connection is closed
    connect_timeout_ms: int = 10000  # for name resolution, TCP and the exchange of API versions together
    metadata_max_age_ms: int = 300000  # metadata are refreshed after this time, also without an error
    retry_backoff_ms: int = 100  # first backoff before a retry; the next ones are doubled
    retry_backoff_max_ms: int = 1000
    reconnect_backoff_ms: int = 50  # the same for connections to one broker
    reconnect_backoff_max_ms: int = 1000

    def __post_init__(self) -> None:
        SecuritySettings.__post_init__(self)
        _at_least(self, 1, ("request_timeout_ms", "connect_timeout_ms", "metadata_max_age_ms"))
        _at_least(self, 0, ("retry_backoff_ms", "reconnect_backoff_ms"))
        _at_least(self, self.retry_backoff_ms, ("retry_backoff_max_ms",))
        _at_least(self, self.reconnect_backoff_ms, ("reconnect_backoff_max_ms",))


class ProducerConfig(ClientConfig, frozen=True, kw_only=True):
    """A producer's settings."""

    acks: Acks  # 0: none; 1: the leader's; "all" or -1: that of all in-sync replicas
    enable_idempotence: bool | None  # None: on, unless acks or max_in_flight exclude it
    max_in_flight: int  # requests to one broker without a response
    linger_ms: float  # how long a batch waits for more records
    batch_size: int  # bytes of records, before compression, at which a batch is sent at once
    max_request_size: int  # bytes of one request, and so of one record
    buffer_memory: int  # bytes of unacknowledged records; above it, send() waits
    max_block_ms: int  # how long send() may wait for metadata or memory
    delivery_timeout_ms: int  # from send() to the acknowledgement, retries included
    compression_type: CompressionType
    compression_level: int | None  # the codec's own scale; None is Kafka's default
    partitioner: Partitioner | PartitionerName  # for records that name no partition
    key_serializer: Callable[[Any], bytes | None] | None  # converts every key to bytes, also None; None: keys are bytes
    value_serializer: Callable[[Any], bytes | None] | None  # the same for values
    transactional_id: str | None = None  # one running producer has it; a new one fences the one before
    transaction_timeout_ms: int = 60000  # the coordinator aborts a transaction that is open for longer

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of(self, "acks", (0, 1, -1, "all"))
        _one_of(self, "compression_type", ("none", "gzip", "snappy", "lz4", "zstd"))
        self._check_compression_level()
        if not callable(self.partitioner):
            _one_of(self, "partitioner", PARTITIONER_NAMES)
        for name in ("key_serializer", "value_serializer"):
            if (function := getattr(self, name)) is not None and not callable(function):
                raise _wrong(name, function, "give a function that returns bytes, such as str.encode")
        _at_least(self, 0, ("linger_ms", "max_block_ms", "batch_size"))
        _at_least(self, 1, ("max_in_flight", "max_request_size", "buffer_memory"))
        if self.delivery_timeout_ms < self.request_timeout_ms + self.linger_ms:
            raise _wrong(
                "delivery_timeout_ms", self.delivery_timeout_ms, "make it at least request_timeout_ms + linger_ms"
            )
        if self.transactional_id is not None:
            if not self.transactional_id:
                raise _wrong("transactional_id", self.transactional_id, "give a name, or None for no transactions")
            if not self.idempotent:
                cure = 'transactions need idempotence: acks="all", and max_in_flight of at most 5'
                raise _wrong("transactional_id", self.transactional_id, cure)
            _at_least(self, 1, ("transaction_timeout_ms",))
        if self.enable_idempotence:
            if self.required_acks != -1:
                raise _wrong("acks", self.acks, 'idempotence needs acks="all"')
            if self.max_in_flight > MAX_IN_FLIGHT_OF_IDEMPOTENCE:
                raise _wrong("max_in_flight", self.max_in_flight, "idempotence allows at most 5")

    def _check_compression_level(self) -> None:
        level, levels = self.compression_level, COMPRESSION_LEVELS.get(self.compression_type)
        if level is not None and levels is not None and (isinstance(level, bool) or level not in levels):
            raise _wrong(
                "compression_level", level, f"{self.compression_type} has the levels {levels[0]} to {levels[-1]}"
            )

    @property
    def required_acks(self) -> int:
        """`acks` as in the protocol."""
        return -1 if self.acks == "all" else self.acks

    @property
    def idempotent(self) -> bool:
        if self.enable_idempotence is None:
            return self.required_acks == -1 and self.max_in_flight <= MAX_IN_FLIGHT_OF_IDEMPOTENCE
        return self.enable_idempotence

    @property
    def codec(self) -> Codec:
        return Codec[self.compression_type.upper()]


class ConsumerConfig(ClientConfig, frozen=True, kw_only=True):
    """A consumer's settings."""

    auto_offset_reset: str  # without a position, or when it is out of range (`consumer.auto_offset_reset`)
    isolation_level: IsolationLevel
    check_crcs: bool  # verify the checksum of every batch
    fetch_min_bytes: int  # a broker with less than this waits for more
    fetch_max_wait_ms: int  # the longest such wait
    fetch_max_bytes: int  # of one response; its first batch may be larger
    max_partition_fetch_bytes: int  # of one partition in one response; likewise
    max_poll_records: int  # that poll() returns at once
    default_api_timeout_ms: int  # for calls about offsets without a timeout argument
    group_id: str | None  # needed to subscribe and to commit
    group_instance_id: str | None  # makes a static member, which may restart without a rebalance
    group_protocol: GroupProtocol  # "consumer": the newer one, in which the coordinator assigns (KIP-848)
    group_remote_assignor: str | None  # with the newer protocol "uniform" or "range"; None: the coordinator's
    partition_assignment_strategy: Sequence[str]  # assignors by preference (`odradek.client.group.assignors`)
    enable_auto_commit: bool  # at intervals and when partitions are revoked
    auto_commit_interval_ms: int
    session_timeout_ms: int  # without a heartbeat for so long a member is removed
    heartbeat_interval_ms: int
    max_poll_interval_ms: int  # without a poll for so long a member leaves

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least(
            self,
            1,
            ("auto_commit_interval_ms", "session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms"),
        )
        if self.group_id is not None and not self.group_id.strip():
            raise _wrong("group_id", self.group_id, "give the group a name; a consumer without a group has None")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise _wrong("heartbeat_interval_ms", self.heartbeat_interval_ms, "make it less than session_timeout_ms")
        if not self.partition_assignment_strategy or not set(self.partition_assignment_strategy) <= ASSIGNOR_NAMES:
            raise _wrong(
                "partition_assignment_strategy",
                self.partition_assignment_strategy,
                f"choose from {', '.join(sorted(ASSIGNOR_NAMES))}",
            )
        if not is_policy(str(self.auto_offset_reset)):
            raise _wrong(
                "auto_offset_reset", self.auto_offset_reset, "choose one of earliest, latest, none, by_duration:PT1H30M"
            )
        _one_of(self, "group_protocol", ("classic", "consumer"))
        _one_of(self, "isolation_level", ("read_uncommitted", "read_committed"))
        _at_least(self, 0, ("fetch_min_bytes", "fetch_max_wait_ms"))
        _at_least(
            self, 1, ("fetch_max_bytes", "max_partition_fetch_bytes", "max_poll_records", "default_api_timeout_ms")
        )
        if self.fetch_max_wait_ms >= self.request_timeout_ms:
            raise _wrong("fetch_max_wait_ms", self.fetch_max_wait_ms, "make it less than request_timeout_ms")

    @property
    def reads_committed(self) -> bool:
        return self.isolation_level == "read_committed"


class AdminConfig(ClientConfig, frozen=True, kw_only=True):
    """The settings of an Admin."""

    default_api_timeout_ms: int  # for calls without `timeout_ms`

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least(self, 1, ("default_api_timeout_ms",))


def _one_of(config: ClientConfig, name: str, choices: Iterable[Any]) -> None:
    value = getattr(config, name)
    if value not in choices or isinstance(value, bool):
        raise _wrong(name, value, f"choose one of {', '.join(str(choice) for choice in choices)}")


def _at_least(config: ClientConfig, bound: float, names: Iterable[str]) -> None:
    for name in names:
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < bound:
            raise _wrong(name, value, f"give {number_of(name)}, at least {bound}")


_UNITS = {
    "ms": "milliseconds, such as 1000",
    "bytes": "bytes, such as 1048576",
    "size": "bytes, such as 1048576",
    "memory": "bytes, such as 33554432",
}
"""The unit of a number by the end of its setting's name, with an example."""


def number_of(name: str) -> str:
    """Return what to write for the setting `name`, a number: "a number of milliseconds, such as 1000"."""
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)
    return f"a number of {unit}" if unit else "a number"
