"""The bundled asyncio client: `Producer`, `Consumer`, `Admin`, their arguments, results and errors.

Only the names in `__all__` are public; all others may change. Each is imported at its first use, so that a command
loads only the modules that it needs.

| module | what |
|---|---|
| `producer` | `Producer`, and its parts: accumulator, partitioners, sender, delivery |
| `transactions` | the transactions of a producer |
| `consumer` | `Consumer`, and its parts: fetcher, subscription state, positions, `auto_offset_reset` |
| `group` | consumer groups of both protocols |
| `admin` | `Admin`, and its calls |
| `network` | connections to brokers, and the metadata of the cluster |
| `security` | settings of TLS and SASL, key and trust stores, tokens |
| `config`, `setting_names` | settings; other clients' names for them |
| `errors` | every exception that the client raises |
| `record` | the values that go in and out: records, partitions, offsets |
| `cli`, `doctor` | the commands |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.client.admin.acl_values import (
        AclFilter,
        AclOperation,
        AclPatternType,
        AclPermission,
        AclResourceType,
        AclRule,
    )
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.arguments import (
        ConfigChange,
        ConfigOperation,
        ConfigResource,
        NewPartitions,
        NewTopic,
        OffsetSpec,
        ResourceType,
    )
    from odradek.client.admin.client_quotas import QuotaEntity, QuotaFilter, QuotaName
    from odradek.client.admin.results import (
        ApiRange,
        BrokerDescription,
        ClusterDescription,
        ConfigEntry,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
        CreatedTopic,
        FeatureDescription,
        GroupDescription,
        GroupListing,
        HangingTransaction,
        LogDirDescription,
        MemberDescription,
        PartitionDescription,
        PartitionLag,
        ProducerDescription,
        ProducerIdAndEpoch,
        ReplicaDescription,
        Results,
        TopicDescription,
        TopicListing,
        TransactionDescription,
        TransactionListing,
    )
    from odradek.client.admin.scram_users import ScramCredentialInfo, ScramDeletion, ScramUpsertion
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.errors import (
        AuthenticationFailedError,
        AuthorizationError,
        BootstrapError,
        BrokerError,
        BrokerUnreachableError,
        BufferFullError,
        ClientError,
        ClosedError,
        CommitUnknownError,
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
        ProducerFencedError,
        RecordTooLargeError,
        RequestTimeoutError,
        TimeLimitError,
        TlsError,
        TopicExistsError,
        TransactionAbortedError,
        TransportError,
        UnknownTopicError,
        UnsupportedVersionError,
    )
    from odradek.client.group.rebalance_listener import RebalanceListener
    from odradek.client.producer.partitioner import Partitioner
    from odradek.client.producer.producer import Producer
    from odradek.client.record import (
        CommittedOffset,
        ConsumerRecord,
        GroupMetadata,
        OffsetAndTimestamp,
        RecordMetadata,
        TopicPartition,
    )
    from odradek.client.transactions.transaction import Transaction
    from odradek.client.transactions.transaction_state import TransactionOutcome

__all__ = [
    "AclFilter",
    "AclOperation",
    "AclPatternType",
    "AclPermission",
    "AclResourceType",
    "AclRule",
    "Admin",
    "ApiRange",
    "AuthenticationFailedError",
    "AuthorizationError",
    "BootstrapError",
    "BrokerDescription",
    "BrokerError",
    "BrokerUnreachableError",
    "BufferFullError",
    "ClientError",
    "ClosedError",
    "ClusterDescription",
    "CommitUnknownError",
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
    "GroupMetadata",
    "HangingTransaction",
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
    "ProducerDescription",
    "ProducerFencedError",
    "ProducerIdAndEpoch",
    "QuotaEntity",
    "QuotaFilter",
    "QuotaName",
    "RebalanceListener",
    "RecordMetadata",
    "RecordTooLargeError",
    "ReplicaDescription",
    "RequestTimeoutError",
    "ResourceType",
    "Results",
    "ScramCredentialInfo",
    "ScramDeletion",
    "ScramUpsertion",
    "TimeLimitError",
    "TlsError",
    "TopicDescription",
    "TopicExistsError",
    "TopicListing",
    "TopicPartition",
    "Transaction",
    "TransactionAbortedError",
    "TransactionDescription",
    "TransactionListing",
    "TransactionOutcome",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
]

_MODULES = {
    "AclFilter": "odradek.client.admin.acl_values",
    "AclOperation": "odradek.client.admin.acl_values",
    "AclPatternType": "odradek.client.admin.acl_values",
    "AclPermission": "odradek.client.admin.acl_values",
    "AclResourceType": "odradek.client.admin.acl_values",
    "AclRule": "odradek.client.admin.acl_values",
    "Admin": "odradek.client.admin.admin",
    "ApiRange": "odradek.client.admin.results",
    "BrokerDescription": "odradek.client.admin.results",
    "ClusterDescription": "odradek.client.admin.results",
    "CommittedOffset": "odradek.client.record",
    "ConfigChange": "odradek.client.admin.arguments",
    "ConfigEntry": "odradek.client.admin.results",
    "ConfigOperation": "odradek.client.admin.arguments",
    "ConfigResource": "odradek.client.admin.arguments",
    "ConfigSource": "odradek.client.admin.results",
    "ConfigSynonym": "odradek.client.admin.results",
    "ConfigType": "odradek.client.admin.results",
    "Consumer": "odradek.client.consumer.consumer",
    "ConsumerRecord": "odradek.client.record",
    "CreatedTopic": "odradek.client.admin.results",
    "FeatureDescription": "odradek.client.admin.results",
    "GroupDescription": "odradek.client.admin.results",
    "GroupListing": "odradek.client.admin.results",
    "GroupMetadata": "odradek.client.record",
    "HangingTransaction": "odradek.client.admin.results",
    "LogDirDescription": "odradek.client.admin.results",
    "MemberDescription": "odradek.client.admin.results",
    "NewPartitions": "odradek.client.admin.arguments",
    "NewTopic": "odradek.client.admin.arguments",
    "OffsetAndTimestamp": "odradek.client.record",
    "OffsetSpec": "odradek.client.admin.arguments",
    "PartitionDescription": "odradek.client.admin.results",
    "PartitionLag": "odradek.client.admin.results",
    "Partitioner": "odradek.client.producer.partitioner",
    "Producer": "odradek.client.producer.producer",
    "ProducerDescription": "odradek.client.admin.results",
    "ProducerIdAndEpoch": "odradek.client.admin.results",
    "QuotaEntity": "odradek.client.admin.client_quotas",
    "QuotaFilter": "odradek.client.admin.client_quotas",
    "QuotaName": "odradek.client.admin.client_quotas",
    "RebalanceListener": "odradek.client.group.rebalance_listener",
    "RecordMetadata": "odradek.client.record",
    "ReplicaDescription": "odradek.client.admin.results",
    "ResourceType": "odradek.client.admin.arguments",
    "Results": "odradek.client.admin.results",
    "ScramCredentialInfo": "odradek.client.admin.scram_users",
    "ScramDeletion": "odradek.client.admin.scram_users",
    "ScramUpsertion": "odradek.client.admin.scram_users",
    "TopicDescription": "odradek.client.admin.results",
    "TopicListing": "odradek.client.admin.results",
    "TopicPartition": "odradek.client.record",
    "Transaction": "odradek.client.transactions.transaction",
    "TransactionDescription": "odradek.client.admin.results",
    "TransactionListing": "odradek.client.admin.results",
    "TransactionOutcome": "odradek.client.transactions.transaction_state",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "odradek.client.errors")), name)
    return value
