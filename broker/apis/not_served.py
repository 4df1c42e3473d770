"""The APIs of Apache Kafka 4.3.1 that `table` has no row for, each with the reason.

A client that asks ApiVersions does not find them, and says to its user that the broker does not support them.
"""

from __future__ import annotations

_REASONS = {
    "There are no transactions yet.": """
        AddPartitionsToTxn AddOffsetsToTxn EndTxn WriteTxnMarkers TxnOffsetCommit DescribeTransactions
        ListTransactions""",
    "Nobody is authenticated, no credentials are kept.": "AlterUserScramCredentials",
    "No quotas are kept to.": "AlterClientQuotas",
    "Metadata is kept in a store, not in a Raft log.": "DescribeQuorum AddRaftVoter RemoveRaftVoter",
    "All that this version can do is switched on; there are no levels to change.": "UpdateFeatures",
    "No metrics are asked of clients; Kafka does not offer it either, without a plug-in that wants them.": """
        GetTelemetrySubscriptions PushTelemetry""",
    "Share groups are not built.": """
        ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareAcknowledge InitializeShareGroupState
        ReadShareGroupState WriteShareGroupState DeleteShareGroupState ReadShareGroupStateSummary
        DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets""",
    "Streams groups are not built.": "StreamsGroupHeartbeat StreamsGroupDescribe",
}

NOT_SERVED: dict[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Reasons by Kafka's names of the APIs."""
