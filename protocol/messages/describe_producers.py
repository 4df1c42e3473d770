"""DescribeProducers (API key 61): an admin client reads the producers of a partition from its leader (KIP-664).

It finds hanging transactions: open in a partition, while the coordinator has no such transaction.
"""

from odradek.protocol.schema import Message, Structure, i16, i32, i64, message, string


class TopicRequest(Structure):
    name: string = ""
    partition_indexes: list[i32] = []


@message(key=61, versions=(0, 0), flexible_since=0)
class DescribeProducersRequest(Message):
    """Version 0, flexible."""

    topics: list[TopicRequest] = []


class ProducerState(Structure):
    producer_id: i64 = 0
    producer_epoch: i32 = 0
    last_sequence: i32 = -1  # of its last record; -1 none
    last_timestamp: i64 = -1  # of its last batch (ms); -1 none
    coordinator_epoch: i32 = 0  # of the last marker, -1 before the first
    current_txn_start_offset: i64 = -1  # of the open transaction; -1 without one


class PartitionResponse(Structure):
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    active_producers: list[ProducerState] = []


class TopicResponse(Structure):
    name: string = ""
    partitions: list[PartitionResponse] = []


@message(key=61, versions=(0, 0), flexible_since=0)
class DescribeProducersResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    topics: list[TopicResponse] = []
