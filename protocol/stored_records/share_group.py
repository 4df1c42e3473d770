"""Share groups (KIP-932) in `__consumer_offsets` (record types 10 to 15); records as of consumer groups."""

from typing import Annotated

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i8, i32, i64, message, string, tag, uuid


@message(versions=(0, 0))
class ShareGroupMemberMetadataKey(Message):
    """Record type 10: a member."""

    group_id: string = ""
    member_id: string = ""


@message(versions=(0, 0), flexible_since=0)
class ShareGroupMemberMetadataValue(Message):
    """Version 0, flexible."""

    rack_id: string | None = ""
    client_id: string = ""
    client_host: string = ""
    subscribed_topic_names: list[string] = []


@message(versions=(0, 0))
class ShareGroupMetadataKey(Message):
    """Record type 11: the group."""

    group_id: string = ""


@message(versions=(0, 0), flexible_since=0)
class ShareGroupMetadataValue(Message):
    """Version 0, flexible."""

    epoch: i32 = 0
    metadata_hash: i64 = 0


@message(versions=(0, 0))
class ShareGroupTargetAssignmentMetadataKey(Message):
    """Record type 12: the epoch of the target assignment."""

    group_id: string = ""


@message(versions=(0, 0), flexible_since=0)
class ShareGroupTargetAssignmentMetadataValue(Message):
    """Version 0, flexible."""

    assignment_epoch: i32 = 0
    assignment_timestamp: Annotated[i64, tag(0)] = 0


@message(versions=(0, 0))
class ShareGroupTargetAssignmentMemberKey(Message):
    """Record type 13: the target assignment of a member."""

    group_id: string = ""
    member_id: string = ""


class TopicPartition(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


@message(versions=(0, 0), flexible_since=0)
class ShareGroupTargetAssignmentMemberValue(Message):
    """Version 0, flexible."""

    topic_partitions: list[TopicPartition] = []


@message(versions=(0, 0))
class ShareGroupCurrentMemberAssignmentKey(Message):
    """Record type 14: the current assignment of a member."""

    group_id: string = ""
    member_id: string = ""


class TopicPartitions(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


@message(versions=(0, 0), flexible_since=0)
class ShareGroupCurrentMemberAssignmentValue(Message):
    """Version 0, flexible."""

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    assigned_partitions: list[TopicPartitions] = []


@message(versions=(0, 0))
class ShareGroupStatePartitionMetadataKey(Message):
    """Record type 15: the topics whose state the group has, initializes or deletes."""

    group_id: string = ""


class TopicPartitionsInfo(Structure):
    topic_id: uuid = ZERO_UUID
    topic_name: string = ""
    partitions: list[i32] = []


class TopicInfo(Structure):
    topic_id: uuid = ZERO_UUID
    topic_name: string = ""


@message(versions=(0, 0), flexible_since=0)
class ShareGroupStatePartitionMetadataValue(Message):
    """Version 0, flexible."""

    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[TopicInfo] = []
