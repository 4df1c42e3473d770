"""The table of APIs by key and name. The modules of messages are imported at their first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final, NamedTuple

from odradek.protocol.schema import Message, spec

PRODUCE_KEY: Final = 0
FETCH_KEY: Final = 1
METADATA_KEY: Final = 3


class Api(NamedTuple):
    """An API.

    `min_version` and `max_version` are those of Apache Kafka 4.3.1, both inclusive; `flexible_since` is None for never.
    """

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_since: int | None


@cache
def by_key(key: int) -> Api:
    """Return the API with this key. Raises KeyError."""
    name = NAMES[key]
    module = import_module(f"odradek.protocol.messages.{_module_name(name)}")
    request: type[Message] = getattr(module, f"{name}Request")
    declared = spec(request)
    return Api(
        key,
        name,
        request,
        getattr(module, f"{name}Response"),
        declared.first_version,
        declared.last_version,
        declared.flexible_since,
    )


def by_name(name: str) -> Api:
    """Return the API of this name, as in Kafka (`ListOffsets`) or as its module (`list_offsets`). Raises KeyError."""
    wanted = name.replace("_", "").replace("-", "").lower()
    for key, known in NAMES.items():
        if known.lower() == wanted:
            return by_key(key)
    raise KeyError(name)


def _module_name(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


NAMES: dict[int, str] = {
    PRODUCE_KEY: "Produce",
    FETCH_KEY: "Fetch",
    2: "ListOffsets",
    METADATA_KEY: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    55: "DescribeQuorum",
    57: "UpdateFeatures",
    60: "DescribeCluster",
    61: "DescribeProducers",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}
"""The name of each API by its key."""
