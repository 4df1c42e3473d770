"""Groups of the consumer protocol (KIP-848) in `__consumer_offsets` (record types 3 to 8 and 16).

A group consists of several records, each replaced separately: its epoch, its members, the target assignment, and the
current assignment of each member.
"""

from typing import Annotated

import msgspec

from odradek.protocol.schema import ZERO_UUID, Message, Structure, binary, i8, i32, i64, message, string, tag, uuid


@message(versions=(0, 0))
class ConsumerGroupMetadataKey(Message):
    """Record type 3: the group."""

    group_id: string = ""


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupMetadataValue(Message):
    """Version 0, flexible."""

    epoch: i32 = 0
    metadata_hash: Annotated[i64, tag(0)] = 0


@message(versions=(0, 0))
class ConsumerGroupPartitionMetadataKey(Message):
    """Record type 4: the topics that the group subscribes to. Kafka 4 only deletes such records."""

    group_id: string = ""


class PartitionMetadata(Structure):
    partition: i32 = 0
    racks: list[string] = []


class TopicMetadata(Structure):
    topic_id: uuid = ZERO_UUID
    topic_name: string = ""
    num_partitions: i32 = 0
    partition_metadata: list[PartitionMetadata] = []


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupPartitionMetadataValue(Message):
    """Version 0, flexible."""

    topics: list[TopicMetadata] = []


@message(versions=(0, 0))
class ConsumerGroupMemberMetadataKey(Message):
    """Record type 5: a member."""

    group_id: string = ""
    member_id: string = ""


class ClassicProtocol(Structure):
    name: string = ""
    metadata: binary = b""


class ClassicMemberMetadata(Structure):
    session_timeout_ms: i32 = 0
    supported_protocols: list[ClassicProtocol] = []


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupMemberMetadataValue(Message):
    """Version 0, flexible. A member of the classic protocol has the tagged structure."""

    instance_id: string | None = ""
    rack_id: string | None = ""
    client_id: string = ""
    client_host: string = ""
    subscribed_topic_names: list[string] = []
    subscribed_topic_regex: string | None = ""
    rebalance_timeout_ms: i32 = -1
    server_assignor: string | None = ""
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, tag(0)] = msgspec.field(
        default_factory=ClassicMemberMetadata
    )


@message(versions=(0, 0))
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """Record type 6: the epoch of the target assignment."""

    group_id: string = ""


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """Version 0, flexible."""

    assignment_epoch: i32 = 0
    assignment_timestamp: Annotated[i64, tag(0)] = 0


@message(versions=(0, 0))
class ConsumerGroupTargetAssignmentMemberKey(Message):
    """Record type 7: the target assignment of a member."""

    group_id: string = ""
    member_id: string = ""


class TopicPartition(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    """Version 0, flexible."""

    topic_partitions: list[TopicPartition] = []


@message(versions=(0, 0))
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """Record type 8: the current assignment of a member."""

    group_id: string = ""
    member_id: string = ""


class TopicPartitions(Structure):
    topic_id: uuid = ZERO_UUID
    partitions: list[i32] = []
    assignment_epochs: Annotated[list[i32] | None, tag(0)] = []


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """Version 0, flexible."""

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []


@message(versions=(0, 0))
class ConsumerGroupRegularExpressionKey(Message):
    """Record type 16: the topics that match the regular expression of a subscription."""

    group_id: string = ""
    regular_expression: string = ""


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupRegularExpressionValue(Message):
    """Version 0, flexible."""

    topics: list[string] = []
    version: i64 = 0
    timestamp: i64 = 0
