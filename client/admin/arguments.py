"""Arguments of admin calls: topics and partitions to create, configs to change, offsets and transactions to look up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

import msgspec

from odradek.protocol.messages import list_offsets


class NewTopic(msgspec.Struct, frozen=True):
    """A topic to create; -1 is the broker's default.

    `assignments` has the replicas of each partition, the preferred leader first; the counts must then be -1.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = {}
    assignments: Mapping[int, Sequence[int]] = {}


class NewPartitions(msgspec.Struct, frozen=True):
    """The total number of partitions that a topic should have; `assignments` has the replicas of each new one."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


class ResourceType(IntEnum):
    """The types of resources with configs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(msgspec.Struct, frozen=True):
    """A resource with configs. The name of a broker is its node id in digits, or "" for all brokers."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int | None = None) -> ConfigResource:
        """One broker, or the configs of all brokers."""
        return cls(ResourceType.BROKER, "" if node_id is None else str(node_id))

    @classmethod
    def group(cls, group_id: str) -> ConfigResource:
        return cls(ResourceType.GROUP, group_id)

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        return f"{kind} {self.name}" if self.name else f"all {kind}s"


class ConfigOperation(IntEnum):
    """The kind of a change."""

    SET = 0
    DELETE = 1  # back to its default
    APPEND = 2  # to a list
    SUBTRACT = 3  # from a list


class ConfigChange(msgspec.Struct, frozen=True):
    """A change of one config; `value` is None to delete."""

    name: str
    value: str | None = None
    operation: ConfigOperation = ConfigOperation.SET


class OffsetSpec(IntEnum):
    """Special values in place of a time, where offsets are looked up by time."""

    EARLIEST = list_offsets.EARLIEST  # the first record: the log start offset
    LATEST = list_offsets.LATEST  # after the last record that may be read
    MAX_TIMESTAMP = list_offsets.MAX_TIMESTAMP  # the record with the highest timestamp (KIP-734)


class TransactionFilter(msgspec.Struct, frozen=True):
    """Conditions of transactional ids; an empty one, or None, is no condition.

    `longer_than_ms` excludes transactions that are open for less time. As in Kafka, it excludes no id without an open
    transaction.
    """

    states: Collection[str] = ()
    producer_ids: Collection[int] = ()
    longer_than_ms: int | None = None
    pattern: str | None = None  # of whole ids, in the syntax of RE2
