"""AlterPartitionReassignments (API key 45): an admin client moves replicas to other brokers, or cancels that (KIP-455).

The controller responds when the move has begun; ListPartitionReassignments shows its progress.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i16, i32, ignorable, message, since, string


class ReassignablePartition(Structure):
    partition_index: i32 = 0
    replicas: list[i32] | None = None  # wanted, the preferred leader first; None cancels


class ReassignableTopic(Structure):
    name: string = ""
    partitions: list[ReassignablePartition] = []


@message(key=45, versions=(0, 1), flexible_since=0)
class AlterPartitionReassignmentsRequest(Message):
    """Versions 0–1, flexible.

    v1 can require that the number of replicas does not change (KIP-860).
    """

    timeout_ms: i32 = 60000
    allow_replication_factor_change: Annotated[boolean, since(1)] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0  # NO_REASSIGNMENT_IN_PROGRESS (85), INVALID_REPLICA_ASSIGNMENT (39), …
    error_message: string | None = ""


class ReassignableTopicResponse(Structure):
    name: string = ""
    partitions: list[ReassignablePartitionResponse] = []


@message(key=45, versions=(0, 1), flexible_since=0)
class AlterPartitionReassignmentsResponse(Message):
    """Versions 0–1, flexible; v1 repeats the request's flag (KIP-860)."""

    throttle_time_ms: i32 = 0
    allow_replication_factor_change: Annotated[boolean, since(1), ignorable] = True
    error_code: i16 = 0
    error_message: string | None = ""
    responses: list[ReassignableTopicResponse] = []
