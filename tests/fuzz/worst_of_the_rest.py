"""The worst requests of users, rights, quotas and tokens, and the requests that cannot be large."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

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
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.fuzz.worst_requests import Worst, framed, names

_LONG = "n" * 32_000
_MADE = 200
"""Topics that are really created, each with a log on the disk."""


def _create_and_delete(_: bytes) -> Iterator[bytes]:
    made = [f"made{index}" for index in range(_MADE)]
    create = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in made], 60_000)
    delete = DeleteTopicsRequest([DeleteTopicState(name) for name in made], timeout_ms=60_000)
    return cycle([framed(create, 7), framed(delete, 6)])


def _rules(count: int) -> CreateAclsRequest:
    return CreateAclsRequest([AclCreation(2, name, 3, "User:worst", "*", 3, 3) for name in names(count)])


def _unfound(count: int) -> DeleteAclsRequest:
    return DeleteAclsRequest([DeleteAclsFilter(1, name, 1, None, None, 1, 1) for name in names(count)])


def _every_rule(count: int) -> DeleteAclsRequest:
    return DeleteAclsRequest([DeleteAclsFilter(2, None, 1, "User:worst", None, 1, 1)] * count)


def _quotas(count: int) -> AlterClientQuotasRequest:
    ops = [OpData("producer_byte_rate", 1e9)]
    return AlterClientQuotasRequest([RequestEntryData([EntityData("user", name)], ops) for name in names(count)])


def _credentials(count: int) -> AlterUserScramCredentialsRequest:
    salted = b"p" * 32
    return AlterUserScramCredentialsRequest(
        upsertions=[ScramCredentialUpsertion(name, 1, 4096, b"s" * 16, salted) for name in names(count)]
    )


def _deletions(count: int) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest([ScramCredentialDeletion(name, 1) for name in names(count)])


def _configs(count: int) -> AlterConfigsRequest:
    configs = [AlterableConfig("retention.ms", "1")]
    return AlterConfigsRequest([AlterConfigsResource(2, name, configs) for name in names(count)])


def _tokens(count: int) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(None, None, [CreatableRenewers("User", name) for name in names(count)], -1)


WORST_OF_THE_REST = [
    Worst("AlterUserScramCredentials, users", 0, lambda size: _credentials(size // 70)),
    Worst("AlterUserScramCredentials, unknown users", 0, lambda size: _deletions(size // 10)),
    Worst(
        "DescribeUserScramCredentials, users",
        0,
        lambda size: DescribeUserScramCredentialsRequest([UserName(name) for name in names(size // 9)]),
    ),
    Worst("CreateAcls, rules", 3, lambda size: _rules(size // 27)),
    Worst("DescribeAcls, every rule", 3, lambda size: DescribeAclsRequest(1, None, 1, None, None, 1, 1)),
    Worst("DeleteAcls, no rule", 3, lambda size: _unfound(size // 16)),
    Worst("DeleteAcls, every rule", 3, lambda size: _every_rule(size // 20)),
    Worst("AlterClientQuotas, users", 1, lambda size: _quotas(size // 50)),
    Worst(
        "DescribeClientQuotas, every user",
        1,
        lambda size: DescribeClientQuotasRequest([ComponentData("user", 2, None)], strict=False),
    ),
    Worst("AlterConfigs", 2, lambda size: _configs(size // 27)),
    Worst(
        "CreatePartitions, 9,000 more",
        3,
        lambda size: CreatePartitionsRequest([CreatePartitionsTopic("many", 10_000)], 60_000, True),
    ),
    Worst("CreateTopics and DeleteTopics, made", 2, lambda size: DescribeClusterRequest(), _create_and_delete),
    Worst("CreateDelegationToken, renewers", 3, lambda size: _tokens(size // 15)),
    Worst(
        "DescribeDelegationToken, owners",
        3,
        lambda size: DescribeDelegationTokenRequest(
            [DescribeDelegationTokenOwner("User", name) for name in names(size // 15)]
        ),
    ),
    Worst("RenewDelegationToken", 2, lambda size: RenewDelegationTokenRequest(b"h" * (size // 2), 1)),
    Worst("ExpireDelegationToken", 2, lambda size: ExpireDelegationTokenRequest(b"h" * (size // 2), 1)),
    Worst(
        "UpdateFeatures, unknown",
        1,
        lambda size: UpdateFeaturesRequest(1000, [FeatureUpdateKey(name, 1) for name in names(size // 12)]),
    ),
    Worst("ListGroups, states", 5, lambda size: ListGroupsRequest(names(size // 8))),
    Worst(
        "ListTransactions, a slow expression",
        2,
        lambda size: ListTransactionsRequest(transactional_id_pattern="a?" * 2000),
    ),
    Worst("Heartbeat", 4, lambda size: HeartbeatRequest(_LONG, 1, _LONG)),
    Worst("AddOffsetsToTxn", 3, lambda size: AddOffsetsToTxnRequest(_LONG, 1, 0, _LONG)),
    Worst("EndTxn", 3, lambda size: EndTxnRequest(_LONG, 1, 0, True)),
    Worst("DescribeCluster", 2, lambda size: DescribeClusterRequest(True)),
    Worst("UnregisterBroker, unknown", 0, lambda size: UnregisterBrokerRequest(1_000_000)),
    Worst("SaslHandshake, unknown", 1, lambda size: SaslHandshakeRequest(_LONG)),
    Worst("SaslAuthenticate", 2, lambda size: SaslAuthenticateRequest(b"\0" * (size // 2))),
]
"""Kinds for each API that neither `worst_requests` nor `worst_of_transactions` has."""
