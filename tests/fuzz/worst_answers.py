"""Requests whose answers are large: for every API those that `worst_requests` lacks, and how large each may be.

Most name what a broker has, again and again, because such rows are larger than the names that request them.
"""

from __future__ import annotations

from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_producers import TopicRequest as ProducersOfTopic
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.fuzz.worst_requests import MANY, Worst, names

PARTITIONS = 50
"""Partitions of the topic `many` in the broker that is asked."""
CLASSIC_GROUP, CONSUMER_GROUP, TRANSACTION = "j", "cg", "open"
_ANY = 1
_LONG_NAME = 30_000


def _every_group(size: int) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None) for _ in range(size // 10)])


def _the_same_topics(size: int) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics(MANY, partition_indexes=list(range(PARTITIONS))) for _ in range(size // 210)]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics)])


def _configs(kind: int, resources: list[str]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest([DescribeConfigsResource(kind, name, None) for name in resources], True, True)


def _configs_by_keys(size: int) -> DescribeConfigsRequest:
    """One topic, each time with another list of keys: those are different resources."""
    keys = ["retention.ms", "cleanup.policy"]
    rows = [DescribeConfigsResource(2, MANY, [*keys, name]) for name in names(size // 50)]
    return DescribeConfigsRequest(rows, True, True)


def _fetch_the_same(size: int) -> FetchRequest:
    rows = [FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20) for _ in range(size // 33)]
    return FetchRequest(max_wait_ms=0, max_bytes=1 << 30, session_epoch=-1, topics=[FetchTopic(MANY, partitions=rows)])


def _offsets_of_the_same(size: int) -> ListOffsetsRequest:
    rows = [ListOffsetsPartition(index % PARTITIONS, timestamp=-1) for index in range(size // 17)]
    return ListOffsetsRequest(-1, topics=[ListOffsetsTopic(MANY, rows)])


def _rules(size: int) -> CreateAclsRequest:
    return CreateAclsRequest([AclCreation(2, name, 3, "nobody", "*", 3, 3) for name in names(size // 25)])


def _rule_filters(size: int) -> DeleteAclsRequest:
    return DeleteAclsRequest([DeleteAclsFilter(_ANY, None, _ANY, None, None, _ANY, _ANY) for _ in range(size // 8)])


def _quotas(size: int) -> AlterClientQuotasRequest:
    rows = [RequestEntryData([EntityData("user", name)], [OpData("unknown_rate", 1.0)]) for name in names(size // 45)]
    return AlterClientQuotasRequest(rows, True)


WORST_ANSWERS = [
    Worst("Metadata, the same name", 12, lambda size: MetadataRequest([_named(MANY)] * (size // 23))),
    Worst("Fetch, the same partition", 12, _fetch_the_same),
    Worst("ListOffsets, the same partitions", 6, _offsets_of_the_same),
    Worst("OffsetFetch, the same group", 8, _every_group),
    Worst("OffsetFetch, the same partitions", 8, _the_same_topics),
    Worst("FindCoordinator, the same group", 4, lambda size: FindCoordinatorRequest("", 0, ["g"] * (size // 2))),
    Worst("Heartbeat", 4, lambda size: HeartbeatRequest("h" * _LONG_NAME, 1, "m" * _LONG_NAME)),
    Worst("DescribeGroups, the same group", 5, lambda size: DescribeGroupsRequest([CLASSIC_GROUP] * (size // 2), True)),
    Worst("ListGroups", 5, lambda size: ListGroupsRequest(names(size // 8))),
    Worst("ListGroups, all", 5, lambda size: ListGroupsRequest()),
    Worst("SaslHandshake", 1, lambda size: SaslHandshakeRequest("M" * _LONG_NAME)),
    Worst("SaslAuthenticate", 2, lambda size: SaslAuthenticateRequest(bytes(size))),
    Worst("AddOffsetsToTxn", 4, lambda size: AddOffsetsToTxnRequest("t" * _LONG_NAME, 1, 0, "g" * _LONG_NAME)),
    Worst("EndTxn", 5, lambda size: EndTxnRequest("t" * _LONG_NAME, 1, 0, True)),
    Worst("CreateTopics, with their properties", 7, lambda size: _validate(names(size // 25))),
    Worst("DescribeAcls", 3, lambda size: DescribeAclsRequest(_ANY, None, _ANY, None, None, _ANY, _ANY)),
    Worst("CreateAcls", 3, _rules),
    Worst("DeleteAcls", 3, _rule_filters),
    Worst("ListConfigResources, all", 1, lambda size: ListConfigResourcesRequest([])),
    Worst("DescribeConfigs, the same topic", 4, lambda size: _configs(2, [MANY] * (size // 10))),
    Worst("DescribeConfigs, the same topic with other keys", 4, _configs_by_keys),
    Worst(
        "AlterConfigs",
        2,
        lambda size: AlterConfigsRequest(
            [AlterConfigsResource(2, name, [AlterableConfig("unknown", "1")]) for name in names(size // 25)], True
        ),
    ),
    Worst(
        "DescribeLogDirs, the same partitions",
        4,
        lambda size: DescribeLogDirsRequest([DescribableLogDirTopic(MANY, [*range(PARTITIONS)])] * (size // 210)),
    ),
    Worst("CreateDelegationToken", 3, lambda size: CreateDelegationTokenRequest(None, None, _renewers(size), -1)),
    Worst("RenewDelegationToken", 2, lambda size: RenewDelegationTokenRequest(bytes(size), -1)),
    Worst("ExpireDelegationToken", 2, lambda size: ExpireDelegationTokenRequest(bytes(size), -1)),
    Worst(
        "DescribeDelegationToken",
        3,
        lambda size: DescribeDelegationTokenRequest(
            [DescribeDelegationTokenOwner("User", name) for name in names(size // 14)]
        ),
    ),
    Worst(
        "DescribeClientQuotas",
        1,
        lambda size: DescribeClientQuotasRequest([ComponentData("user", 2, None)]),
    ),
    Worst("AlterClientQuotas", 1, _quotas),
    Worst(
        "DescribeUserScramCredentials",
        0,
        lambda size: DescribeUserScramCredentialsRequest([UserName(name) for name in names(size // 9)]),
    ),
    Worst(
        "DescribeUserScramCredentials, the same user",
        0,
        lambda size: DescribeUserScramCredentialsRequest([UserName("u" * 100)] * (size // 102)),
    ),
    Worst(
        "AlterUserScramCredentials",
        0,
        lambda size: AlterUserScramCredentialsRequest([ScramCredentialDeletion(n, 1) for n in names(size // 10)], []),
    ),
    Worst(
        "UpdateFeatures",
        1,
        lambda size: UpdateFeaturesRequest(1000, [FeatureUpdateKey(name, 1) for name in names(size // 13)], True),
    ),
    Worst("DescribeCluster", 2, lambda size: DescribeClusterRequest(include_cluster_authorized_operations=True)),
    Worst(
        "DescribeProducers, the same partition",
        0,
        lambda size: DescribeProducersRequest([ProducersOfTopic(MANY, [0] * (size // 4))]),
    ),
    Worst("UnregisterBroker", 0, lambda size: UnregisterBrokerRequest(1_000_000)),
    Worst(
        "DescribeTransactions, the same transaction",
        0,
        lambda size: DescribeTransactionsRequest([TRANSACTION] * (size // 5)),
    ),
    Worst(
        "ConsumerGroupDescribe, the same group",
        1,
        lambda size: ConsumerGroupDescribeRequest([CONSUMER_GROUP] * (size // 3), True),
    ),
    Worst(
        "DescribeTopicPartitions, the same topic",
        0,
        lambda size: DescribeTopicPartitionsRequest([TopicRequest(MANY)] * (size // 6), 2000),
    ),
]


def _named(name: str) -> MetadataRequestTopic:
    return MetadataRequestTopic(name=name)


def _renewers(size: int) -> list[CreatableRenewers]:
    return [CreatableRenewers("User", name) for name in names(size // 14)]


def _validate(named: list[str]) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in named], 1000, True)


STATE_BYTES = 65_536
"""The largest answer that the names of one of each kind get: all properties of a broker."""
PER_BYTE = {
    "ListConfigResources": 0,
    "ListConfigResources, all": 0,
    "ApiVersions, tagged fields": 0,
    "CreateTopics, 9,999 topics": 67,
    "CreateTopics, with their properties": 67,
    "DescribeConfigs, groups": 64,
    "DescribeProducers": 23,
    "Produce, partitions without records": 19,
    "ElectLeaders": 10,
    "DescribeConfigs, the same topic with other keys": 9,
    "DescribeUserScramCredentials": 9,
    "AlterPartitionReassignments": 8,
    "AlterUserScramCredentials": 7,
    "ConsumerGroupDescribe": 7,
    "CreatePartitions": 7,
    "CreateAcls": 6,
    "CreateTopics, 10,002 topics": 6,
    "DeleteAcls": 6,
    "OffsetFetch, partitions": 6,
    "DeleteTopics": 5,
    "DescribeTransactions": 5,
    "DescribeTopicPartitions": 4,
    "FindCoordinator": 4,
    "AlterConfigs": 3,
    "DescribeGroups": 3,
    "AddPartitionsToTxn, partitions": 2,
    "Fetch, a large session, served": 2,
    "AddPartitionsToTxn, unknown partitions": 2,
    "AlterClientQuotas": 2,
    "AlterReplicaLogDirs": 2,
    "CreateTopics, the same names": 2,
    "DeleteGroups": 2,
    "DeleteRecords": 2,
    "DescribeConfigs, the broker": 2,
    "DescribeConfigs, unknown topics": 2,
    "Fetch, a large session": 2,
    "Fetch, unknown ids": 2,
    "Fetch, unknown partitions": 2,
    "IncrementalAlterConfigs": 2,
    "LeaveGroup, members": 2,
    "ListOffsets, by timestamp": 2,
    "ListOffsets, unknown partitions": 2,
    "Metadata, unknown ids": 2,
    "Metadata, unknown names": 2,
    "OffsetDelete": 2,
    "OffsetFetch, groups": 2,
    "OffsetForLeaderEpoch": 2,
    "WriteTxnMarkers, every partition": 2,
    "WriteTxnMarkers, unknown partitions": 2,
    "AddPartitionsToTxn, transactions": 1,
    "ListTransactions, states": 1,
    "WriteTxnMarkers, forged ids": 1,
    "AddOffsetsToTxn": 0,
    "ApiVersions, a long software name": 0,
    "ConsumerGroupDescribe, the same group": 0,
    "ConsumerGroupHeartbeat, Unicode classes": 0,
    "ConsumerGroupHeartbeat, a regular expression": 0,
    "ConsumerGroupHeartbeat, names": 0,
    "ConsumerGroupHeartbeat, the slowest expression": 0,
    "CreateDelegationToken": 0,
    "DescribeAcls": 0,
    "DescribeClientQuotas": 0,
    "DescribeCluster": 0,
    "DescribeConfigs, keys": 0,
    "DescribeConfigs, the same topic": 0,
    "DescribeDelegationToken": 0,
    "DescribeGroups, the same group": 0,
    "DescribeLogDirs": 0,
    "DescribeLogDirs, the same partitions": 0,
    "DescribeProducers, the same partition": 0,
    "DescribeTopicPartitions, the same topic": 0,
    "DescribeTransactions, the same transaction": 0,
    "DescribeUserScramCredentials, the same user": 0,
    "EndTxn": 0,
    "ExpireDelegationToken": 0,
    "Fetch, the same partition": 0,
    "FindCoordinator, the same group": 0,
    "Heartbeat": 0,
    "InitProducerId, long ids": 0,
    "InitProducerId, new ids": 0,
    "JoinGroup, protocols": 0,
    "ListGroups": 0,
    "ListGroups, all": 0,
    "ListOffsets, the same partitions": 0,
    "ListPartitionReassignments": 0,
    "Metadata, empty names": 0,
    "Metadata, every topic": 0,
    "Metadata, the same name": 0,
    "OffsetCommit, unknown partitions": 0,
    "OffsetFetch, the same group": 0,
    "OffsetFetch, the same partitions": 0,
    "RenewDelegationToken": 0,
    "SaslAuthenticate": 0,
    "SaslHandshake": 0,
    "SyncGroup, assignments": 0,
    "TxnOffsetCommit, every partition": 0,
    "TxnOffsetCommit, unknown partitions": 0,
    "UnregisterBroker": 0,
    "UpdateFeatures": 0,
}
"""The most bytes of an answer, beyond `STATE_BYTES`, for each byte of its request."""
