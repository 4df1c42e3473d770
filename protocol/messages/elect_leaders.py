"""ElectLeaders (API key 43): an admin client makes the controller elect leaders (KIP-183).

Its main use: to make the preferred replicas leaders again after a broker has returned.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i8, i16, i32, ignorable, message, since, string


class TopicPartitions(Structure):
    topic: string = ""
    partitions: list[i32] = []


@message(key=43, versions=(0, 2), flexible_since=2)
class ElectLeadersRequest(Message):
    """Versions 0–2, flexible from 2.

    v0 elects preferred leaders only; v1 can also force an unclean election if no replica is in sync (KIP-460).
    """

    # 0 preferred; 1 unclean: a live replica that is not in sync, which may lose records.
    election_type: Annotated[i8, since(1)] = 0
    topic_partitions: list[TopicPartitions] | None = []  # None for all
    timeout_ms: i32 = 60000


class PartitionResult(Structure):
    partition_id: i32 = 0
    error_code: i16 = 0  # ELECTION_NOT_NEEDED (84), PREFERRED_LEADER_NOT_AVAILABLE (80), …
    error_message: string | None = ""


class ReplicaElectionResult(Structure):
    topic: string = ""
    partition_result: list[PartitionResult] = []


@message(key=43, versions=(0, 2), flexible_since=2)
class ElectLeadersResponse(Message):
    """Versions 0–2, flexible from 2; v1 adds an error for the request as a whole (KIP-460)."""

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(1), ignorable] = 0  # in version 0 Kafka leaves it out, and sets only the rows
    replica_election_results: list[ReplicaElectionResult] = []
