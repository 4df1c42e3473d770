"""The APIs of Apache Kafka 4.3.1 that are not served, each with the reason.

They are missing in the answer to ApiVersions, so a client reports to its user that the broker does not support them.
"""

from __future__ import annotations

_REASONS = {
    "Metadata is in a store, not in a Raft log.": "DescribeQuorum AddRaftVoter RemoveRaftVoter",
    "The broker requests no metrics from clients; Kafka does so only with a plug-in.": """
        GetTelemetrySubscriptions PushTelemetry""",
    "Share groups are not built.": """
        ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareAcknowledge InitializeShareGroupState
        ReadShareGroupState WriteShareGroupState DeleteShareGroupState ReadShareGroupStateSummary
        DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets""",
    "Streams groups are not built.": "StreamsGroupHeartbeat StreamsGroupDescribe",
}

NOT_SERVED: dict[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Reasons by Kafka's names of the APIs."""
