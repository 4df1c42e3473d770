"""The bundled asyncio client: `Producer`, `Consumer`, `Admin`, what goes in and out of them, and their errors.

Everything else in this package is how they work, for its readers and for the command line (`python -m client`); names
that are not listed here may change. Import is lazy, so that a command loads only what it uses.

```
Producer ─► Accumulator ─► Sender ─► Delivery        Consumer ─► Turns ─► Fetcher ─► Fetched
```

| module | what |
|---|---|
| `producer`, `record_arguments` | records in, futures out; the argument that no record can be made of |
| `partitioner`, `producer_ids` | which partition; an idempotent producer's id |
| `accumulator`, `partition_queue`, `sender`, `delivery` | batches wait, are sent, and settled, sent again or failed |
| `consumer`, `turns` | what the user calls; handing out what was fetched |
| `fetcher`, `fetched`, `fetch_request`, `fetch_session` | fetching ahead, and decoding what came |
| `subscription`, `positions`, `offset_lookup`, `reset_policy`, `truncation` | what is read, where |
| `missing_topics` | warnings about topics to read that do not exist |
| `group` | consumer groups of both protocols |
| `admin` | administration |
| `cluster`, `metadata` | who leads what, as the last metadata say |
| `connections`, `connection`, `api_versions`, `backoff` | to the brokers, and how often it is tried |
| `config`, `setting_names` | settings; other clients' names for them |
| `errors`, `record` | everything that is raised; the values that go in and out |
| `cli`, `doctor`, `dump` | the commands |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from client.admin.admin import Admin
    from client.admin.arguments import (
        ConfigChange,
        ConfigOperation,
        ConfigResource,
        NewPartitions,
        NewTopic,
        OffsetSpec,
        ResourceType,
    )
    from client.admin.results import (
        ApiRange,
        BrokerDescription,
        ClusterDescription,
        CommittedOffset,
        ConfigEntry,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
        CreatedTopic,
        FeatureDescription,
        GroupDescription,
        GroupListing,
        LogDirDescription,
        MemberDescription,
        PartitionDescription,
        PartitionLag,
        ReplicaDescription,
        Results,
        TopicDescription,
        TopicListing,
    )
    from client.consumer import Consumer
    from client.errors import (
        AuthorizationError,
        BootstrapError,
        BrokerError,
        BrokerUnreachableError,
        BufferFullError,
        ClientError,
        ClosedError,
        ConfigurationError,
        ConnectionLostError,
        CorruptRecordsError,
        DeliveryTimeoutError,
        LogTruncationError,
        MembershipError,
        NoOffsetError,
        NotKafkaError,
        OffsetOutOfRangeError,
        PossiblyPersistedError,
        RecordTooLargeError,
        RequestTimeoutError,
        TimeLimitError,
        TopicExistsError,
        TransportError,
        UnknownTopicError,
        UnsupportedVersionError,
    )
    from client.group.listener import RebalanceListener
    from client.partitioner import Partitioner
    from client.producer import Producer
    from client.record import ConsumerRecord, OffsetAndTimestamp, RecordMetadata, TopicPartition

__all__ = [
    "Admin",
    "ApiRange",
    "AuthorizationError",
    "BootstrapError",
    "BrokerDescription",
    "BrokerError",
    "BrokerUnreachableError",
    "BufferFullError",
    "ClientError",
    "ClosedError",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConfigurationError",
    "ConnectionLostError",
    "Consumer",
    "ConsumerRecord",
    "CorruptRecordsError",
    "CreatedTopic",
    "DeliveryTimeoutError",
    "FeatureDescription",
    "GroupDescription",
    "GroupListing",
    "LogDirDescription",
    "LogTruncationError",
    "MemberDescription",
    "MembershipError",
    "NewPartitions",
    "NewTopic",
    "NoOffsetError",
    "NotKafkaError",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "OffsetSpec",
    "PartitionDescription",
    "PartitionLag",
    "Partitioner",
    "PossiblyPersistedError",
    "Producer",
    "RebalanceListener",
    "RecordMetadata",
    "RecordTooLargeError",
    "ReplicaDescription",
    "RequestTimeoutError",
    "ResourceType",
    "Results",
    "TimeLimitError",
    "TopicDescription",
    "TopicExistsError",
    "TopicListing",
    "TopicPartition",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
]

_MODULES = {
    "Admin": "client.admin.admin",
    "ApiRange": "client.admin.results",
    "BrokerDescription": "client.admin.results",
    "ClusterDescription": "client.admin.results",
    "CommittedOffset": "client.admin.results",
    "ConfigChange": "client.admin.arguments",
    "ConfigEntry": "client.admin.results",
    "ConfigOperation": "client.admin.arguments",
    "ConfigResource": "client.admin.arguments",
    "ConfigSource": "client.admin.results",
    "ConfigSynonym": "client.admin.results",
    "ConfigType": "client.admin.results",
    "Consumer": "client.consumer",
    "ConsumerRecord": "client.record",
    "CreatedTopic": "client.admin.results",
    "FeatureDescription": "client.admin.results",
    "GroupDescription": "client.admin.results",
    "GroupListing": "client.admin.results",
    "LogDirDescription": "client.admin.results",
    "MemberDescription": "client.admin.results",
    "NewPartitions": "client.admin.arguments",
    "NewTopic": "client.admin.arguments",
    "OffsetAndTimestamp": "client.record",
    "OffsetSpec": "client.admin.arguments",
    "PartitionDescription": "client.admin.results",
    "PartitionLag": "client.admin.results",
    "Partitioner": "client.partitioner",
    "Producer": "client.producer",
    "RebalanceListener": "client.group.listener",
    "RecordMetadata": "client.record",
    "ReplicaDescription": "client.admin.results",
    "ResourceType": "client.admin.arguments",
    "Results": "client.admin.results",
    "TopicDescription": "client.admin.results",
    "TopicListing": "client.admin.results",
    "TopicPartition": "client.record",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "client.errors")), name)
    return value
