"""Streams groups (KIP-1071) in `__consumer_offsets` (record types 17 and 19 to 23).

Their records are like those of consumer groups, but tasks are assigned: partitions of subtopologies.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i8, i16, i32, i64, message, string, tag, u16


@message(versions=(0, 0))
class StreamsGroupMetadataKey(Message):
    """Record type 17: the group."""

    group_id: string = ""


class LastAssignmentConfig(Structure):
    key: string = ""
    value: string = ""


@message(versions=(0, 0), flexible_since=0)
class StreamsGroupMetadataValue(Message):
    """Version 0, flexible."""

    epoch: i32 = 0
    metadata_hash: i64 = 0
    validated_topology_epoch: Annotated[i32, tag(0)] = -1
    last_assignment_configs: Annotated[list[LastAssignmentConfig] | None, tag(1)] = []


@message(versions=(0, 0))
class StreamsGroupMemberMetadataKey(Message):
    """Record type 19: a member."""

    group_id: string = ""
    member_id: string = ""


class Endpoint(Structure):
    host: string = ""
    port: u16 = 0


class KeyValue(Structure):
    key: string = ""
    value: string = ""


@message(versions=(0, 0), flexible_since=0)
class StreamsGroupMemberMetadataValue(Message):
    """Version 0, flexible."""

    instance_id: string | None = ""
    rack_id: string | None = ""
    client_id: string = ""
    client_host: string = ""
    rebalance_timeout_ms: i32 = -1
    topology_epoch: i32 = 0
    process_id: string = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []


@message(versions=(0, 0))
class StreamsGroupTargetAssignmentMetadataKey(Message):
    """Record type 20: the epoch of the target assignment."""

    group_id: string = ""


@message(versions=(0, 0), flexible_since=0)
class StreamsGroupTargetAssignmentMetadataValue(Message):
    """Version 0, flexible."""

    assignment_epoch: i32 = 0
    assignment_timestamp: Annotated[i64, tag(0)] = 0


@message(versions=(0, 0))
class StreamsGroupTargetAssignmentMemberKey(Message):
    """Record type 21: the target assignment of a member."""

    group_id: string = ""
    member_id: string = ""


class TargetTaskIds(Structure):
    subtopology_id: string = ""
    partitions: list[i32] = []


@message(versions=(0, 0), flexible_since=0)
class StreamsGroupTargetAssignmentMemberValue(Message):
    """Version 0, flexible."""

    active_tasks: list[TargetTaskIds] = []
    standby_tasks: list[TargetTaskIds] = []
    warmup_tasks: list[TargetTaskIds] = []


@message(versions=(0, 0))
class StreamsGroupCurrentMemberAssignmentKey(Message):
    """Record type 22: the current assignment of a member."""

    group_id: string = ""
    member_id: string = ""


class TaskIds(Structure):
    subtopology_id: string = ""
    partitions: list[i32] = []
    assignment_epochs: Annotated[list[i32] | None, tag(0)] = []


@message(versions=(0, 0), flexible_since=0)
class StreamsGroupCurrentMemberAssignmentValue(Message):
    """Version 0, flexible."""

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
    active_tasks_pending_revocation: list[TaskIds] = []
    standby_tasks_pending_revocation: list[TaskIds] = []
    warmup_tasks_pending_revocation: list[TaskIds] = []


@message(versions=(0, 0))
class StreamsGroupTopologyKey(Message):
    """Record type 23: the subtopologies of the application."""

    group_id: string = ""


class TopicConfig(Structure):
    key: string = ""
    value: string = ""


class TopicInfo(Structure):
    name: string = ""
    partitions: i32 = 0
    replication_factor: i16 = 0
    topic_configs: list[TopicConfig] = []


class CopartitionGroup(Structure):
    source_topics: list[i16] = []
    source_topic_regex: list[i16] = []
    repartition_source_topics: list[i16] = []


class Subtopology(Structure):
    subtopology_id: string = ""
    source_topics: list[string] = []
    source_topic_regex: list[string] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: list[string] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []


@message(versions=(0, 0), flexible_since=0)
class StreamsGroupTopologyValue(Message):
    """Version 0, flexible."""

    epoch: i32 = 0
    subtopologies: list[Subtopology] = []
