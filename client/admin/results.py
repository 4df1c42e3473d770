"""Results of admin calls: immutable values, and `Results` with the outcome of each item for calls about many.

Topic ids are in Kafka's text form (22 characters of base64url), times in ms, brokers are node ids.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import IntEnum
from typing import TypeVar

import msgspec

from odradek.client.errors import ClientError
from odradek.client.record import TopicPartition

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Results(dict[K, V | ClientError]):
    """The outcome of each item of a call: its value or its error.

    It is a dict in the order of the call: `isinstance(results[item], ClientError)` distinguishes the two. The items are
    independent of each other.
    """

    def value(self, item: K) -> V:
        """The value of an item. Raises the item's error."""
        outcome = self[item]
        if isinstance(outcome, ClientError):
            raise outcome
        return outcome

    def values_or_raise(self) -> dict[K, V]:
        """The values of all items. Raises the first error among them."""
        return {item: self.value(item) for item in self}

    @property
    def succeeded(self) -> dict[K, V]:
        """The values of the items that have one."""
        return {item: outcome for item, outcome in self.items() if not isinstance(outcome, ClientError)}

    @property
    def failed(self) -> dict[K, ClientError]:
        """The errors of the items that have none."""
        return {item: outcome for item, outcome in self.items() if isinstance(outcome, ClientError)}


class _ProtocolCode(IntEnum):
    """Codes of the protocol; a code of a newer broker is UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> _ProtocolCode:  # noqa: ARG003 - all others are UNKNOWN
        return cls["UNKNOWN"]


class ConfigSource(_ProtocolCode):
    """The level that the value of a config comes from; the first of these that has a value is in force."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2  # of one broker
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3  # of all brokers
    STATIC_BROKER_CONFIG = 4  # server.properties
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(_ProtocolCode):
    """The type of a config's value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSynonym(msgspec.Struct, frozen=True):
    """A level at which a config is set, with its name there. `value` is None if it is sensitive."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(msgspec.Struct, frozen=True):
    """A config and its value, which is None if it is sensitive.

    `documentation` is None and `synonyms` is empty unless requested; the first synonym is in force.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False
    is_read_only: bool = False  # cannot be changed while the broker runs
    type: ConfigType = ConfigType.UNKNOWN
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class CreatedTopic(msgspec.Struct, frozen=True):
    """A topic that was created, or would be. If the broker reports none, counts are -1 and `configs` is None."""

    name: str
    topic_id: str  # zeros if the topic was only validated
    partitions: int
    replication_factor: int
    configs: Mapping[str, ConfigEntry] | None


class TopicListing(msgspec.Struct, frozen=True):
    """A topic in the result of `list_topics`."""

    name: str
    topic_id: str
    partitions: int
    is_internal: bool


class PartitionDescription(msgspec.Struct, frozen=True):
    """A partition. `leader` is None if it has none; the first of `replicas` is the preferred leader."""

    partition: int
    leader: int | None
    leader_epoch: int  # -1 if the broker does not report it
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class TopicDescription(msgspec.Struct, frozen=True):
    """A topic; `partitions` is indexed by partition."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


class BrokerDescription(msgspec.Struct, frozen=True):
    """A broker and its advertised address. A fenced broker is registered but not in service."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class ClusterDescription(msgspec.Struct, frozen=True):
    """The cluster. `controller` is None if there is none; KRaft brokers name any broker that is alive."""

    cluster_id: str
    controller: int | None
    brokers: tuple[BrokerDescription, ...]


class FeatureDescription(msgspec.Struct, frozen=True):
    """The features of a cluster: name to (lowest, highest) level, both inclusive.

    `finalized` has the levels of the whole cluster as of `epoch` (-1 if unknown), `supported` those that the broker
    supports.
    """

    finalized: Mapping[str, tuple[int, int]]
    epoch: int
    supported: Mapping[str, tuple[int, int]]


class ApiRange(msgspec.Struct, frozen=True):
    """The versions of an API, both inclusive, of a broker (`theirs`) and of this client (`ours`).

    `name` and `ours` are None for an API that is unknown to the client, `theirs` for one that the broker does not
    serve. `chosen` is the version that the two use, None if they have none in common.
    """

    api_key: int
    name: str | None
    theirs: tuple[int, int] | None
    ours: tuple[int, int] | None

    @property
    def chosen(self) -> int | None:
        if self.theirs is None or self.ours is None:
            return None
        version = min(self.theirs[1], self.ours[1])
        return version if version >= max(self.theirs[0], self.ours[0]) else None


class GroupListing(msgspec.Struct, frozen=True):
    """A group in the result of `list_groups`. `state` and `type` are empty if the broker does not report them."""

    group_id: str
    protocol_type: str  # "consumer" for consumers; empty for a group that only keeps offsets
    state: str  # Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, Stable, Dead
    type: str  # classic, consumer, share, streams
    coordinator: int


class MemberDescription(msgspec.Struct, frozen=True):
    """A member of a group.

    `target` is the assignment that it is to reach. In classic groups it is None, and `epoch` is -1.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    subscribed_topics: tuple[str, ...]
    subscribed_pattern: str | None = None
    target: tuple[TopicPartition, ...] | None = None
    epoch: int = -1


class GroupDescription(msgspec.Struct, frozen=True):
    """A group and its members. `epoch` is -1 in classic groups; `assignor` is empty until it is chosen."""

    group_id: str
    type: str  # classic or consumer
    protocol_type: str
    state: str
    assignor: str
    coordinator: int
    members: tuple[MemberDescription, ...]
    epoch: int = -1


class PartitionLag(msgspec.Struct, frozen=True):
    """The lag of a group: `end` minus `committed`; None without a committed offset."""

    committed: int | None
    end: int

    @property
    def lag(self) -> int | None:
        return None if self.committed is None else max(0, self.end - self.committed)


class ReplicaDescription(msgspec.Struct, frozen=True):
    """A replica in a log directory: bytes of its segments, and offsets behind the high watermark."""

    size: int
    offset_lag: int
    is_future: bool  # a copy under way from another directory


class LogDirDescription(msgspec.Struct, frozen=True):
    """A log directory of a broker; `error` says why it is offline. Bytes are -1 if the broker reports none."""

    path: str
    total_bytes: int
    usable_bytes: int
    replicas: Mapping[TopicPartition, ReplicaDescription]
    error: ClientError | None = None


class TransactionListing(msgspec.Struct, frozen=True):
    """A transactional id in the result of `list_transactions`."""

    transactional_id: str
    producer_id: int
    state: str  # Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, PrepareEpochFence
    coordinator: int


class TransactionDescription(msgspec.Struct, frozen=True):
    """The state of a transactional id.

    `start_time` (ms since the epoch) is that of the open transaction or of the last one, None if there was none since
    the producer began. `partitions` are those of the open transaction; while markers are written, only those without
    one.
    """

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time: int | None
    partitions: tuple[TopicPartition, ...]


class ProducerDescription(msgspec.Struct, frozen=True):
    """A producer that has written to a partition, as its leader or another replica remembers it.

    Its epoch is that of the last batch. `last_sequence` and `last_timestamp` (ms since the epoch, as the producer set
    it) are -1 without a batch. `coordinator_epoch` is None before the first marker, `transaction_start_offset` without
    an open transaction.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int | None = None
    transaction_start_offset: int | None = None


class ProducerIdAndEpoch(msgspec.Struct, frozen=True):
    """The producer id of a transactional id, and an epoch of it."""

    producer_id: int
    producer_epoch: int


class HangingTransaction(msgspec.Struct, frozen=True):
    """A transaction that is open in a partition, and that no coordinator will end: read_committed stops before it.

    `transactional_id` is that of the producer id, or None if no coordinator has the producer id.
    """

    partition: TopicPartition
    producer: ProducerDescription
    transactional_id: str | None
