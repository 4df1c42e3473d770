"""DescribeTopicPartitions (API key 75): an admin client reads topics page by page, large ones in parts (KIP-966).

It returns what Metadata does and the replicas that may be elected, and never creates a topic.
"""

from odradek.protocol.schema import ZERO_UUID, Message, Structure, boolean, i16, i32, message, string, uuid


class TopicRequest(Structure):
    name: string = ""


class Cursor(Structure):
    """The first partition of the next page, by topic name."""

    topic_name: string = ""
    partition_index: i32 = 0


@message(key=75, versions=(0, 0), flexible_since=0)
class DescribeTopicPartitionsRequest(Message):
    """Version 0, flexible."""

    topics: list[TopicRequest] = []  # empty for all
    response_partition_limit: i32 = 2000
    cursor: Cursor | None = None  # None for the first page


class DescribeTopicPartitionsResponsePartition(Structure):
    error_code: i16 = 0
    partition_index: i32 = 0
    leader_id: i32 = 0  # -1 without a leader
    leader_epoch: i32 = -1
    replica_nodes: list[i32] = []
    isr_nodes: list[i32] = []
    eligible_leader_replicas: list[i32] | None = None  # out of sync, but with every committed record
    last_known_elr: list[i32] | None = None  # eligible replicas after an unclean shutdown
    offline_replicas: list[i32] = []


class DescribeTopicPartitionsResponseTopic(Structure):
    error_code: i16 = 0
    name: string | None = ""
    topic_id: uuid = ZERO_UUID
    is_internal: boolean = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: i32 = -2147483648


@message(key=75, versions=(0, 0), flexible_since=0)
class DescribeTopicPartitionsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None  # None when this is the last page
