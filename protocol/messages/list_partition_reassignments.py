"""ListPartitionReassignments (API key 46): an admin client lists the replicas that are being moved (KIP-455)."""

from odradek.protocol.schema import Message, Structure, i16, i32, message, string


class ListPartitionReassignmentsTopics(Structure):
    name: string = ""
    partition_indexes: list[i32] = []


@message(key=46, versions=(0, 0), flexible_since=0)
class ListPartitionReassignmentsRequest(Message):
    """Version 0, flexible."""

    timeout_ms: i32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None  # None for all


class OngoingPartitionReassignment(Structure):
    partition_index: i32 = 0
    replicas: list[i32] = []  # all present ones, those being added and removed included
    adding_replicas: list[i32] = []
    removing_replicas: list[i32] = []


class OngoingTopicReassignment(Structure):
    name: string = ""
    partitions: list[OngoingPartitionReassignment] = []


@message(key=46, versions=(0, 0), flexible_since=0)
class ListPartitionReassignmentsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""
    topics: list[OngoingTopicReassignment] = []
