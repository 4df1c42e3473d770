"""AlterPartitionReassignments (API key 45)."""

from typing import Annotated

from protocol.schema import Message, Structure, boolean, i16, i32, ignorable, message, since, string


class ReassignablePartition(Structure):
    partition_index: i32 = 0
    replicas: list[i32] | None = None


class ReassignableTopic(Structure):
    name: string = ""
    partitions: list[ReassignablePartition] = []


@message(key=45, versions=(0, 1), flexible_since=0)
class AlterPartitionReassignmentsRequest(Message):
    """AlterPartitionReassignmentsRequest, versions 0–1, flexible."""

    timeout_ms: i32 = 60000
    allow_replication_factor_change: Annotated[boolean, since(1)] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""


class ReassignableTopicResponse(Structure):
    name: string = ""
    partitions: list[ReassignablePartitionResponse] = []


@message(key=45, versions=(0, 1), flexible_since=0)
class AlterPartitionReassignmentsResponse(Message):
    """AlterPartitionReassignmentsResponse, versions 0–1, flexible."""

    throttle_time_ms: i32 = 0
    allow_replication_factor_change: Annotated[boolean, since(1), ignorable] = True
    error_code: i16 = 0
    error_message: string | None = ""
    responses: list[ReassignableTopicResponse] = []
