"""ElectLeaders (API key 43)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, i8, message, since, string


class TopicPartitions(Structure):
    topic: string = ""
    partitions: list[i32] = []


@message(key=43, versions=(0, 2), flexible_since=2)
class ElectLeadersRequest(Message):
    """ElectLeadersRequest, versions 0–2, flexible from 2."""

    election_type: Annotated[i8, since(1)] = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: i32 = 60000


class PartitionResult(Structure):
    partition_id: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""


class ReplicaElectionResult(Structure):
    topic: string = ""
    partition_result: list[PartitionResult] = []


@message(key=43, versions=(0, 2), flexible_since=2)
class ElectLeadersResponse(Message):
    """ElectLeadersResponse, versions 0–2, flexible from 2."""

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []
