"""StreamsGroupDescribe (API key 89)."""

import msgspec

from protocol.schema import Message, Structure, boolean, i16, i32, i64, message, string, u16


@message(key=89, versions=(0, 0), flexible_since=0)
class StreamsGroupDescribeRequest(Message):
    """StreamsGroupDescribeRequest, version 0, flexible."""

    group_ids: list[string] = []
    include_authorized_operations: boolean = False


class KeyValue(Structure):
    key: string = ""
    value: string = ""


class TopicInfo(Structure):
    name: string = ""
    partitions: i32 = 0
    replication_factor: i16 = 0
    topic_configs: list[KeyValue] = []


class Subtopology(Structure):
    subtopology_id: string = ""
    source_topics: list[string] = []
    repartition_sink_topics: list[string] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []


class Topology(Structure):
    epoch: i32 = 0
    subtopologies: list[Subtopology] | None = None


class Endpoint(Structure):
    host: string = ""
    port: u16 = 0


class TaskOffset(Structure):
    subtopology_id: string = ""
    partition: i32 = 0
    offset: i64 = 0


class TaskIds(Structure):
    subtopology_id: string = ""
    partitions: list[i32] = []


class Assignment(Structure):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class Member(Structure):
    member_id: string = ""
    member_epoch: i32 = 0
    instance_id: string | None = None
    rack_id: string | None = None
    client_id: string = ""
    client_host: string = ""
    topology_epoch: i32 = 0
    process_id: string = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)
    is_classic: boolean = False


class DescribedGroup(Structure):
    error_code: i16 = 0
    error_message: string | None = None
    group_id: string = ""
    group_state: string = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    topology: Topology | None = None
    members: list[Member] = []
    authorized_operations: i32 = -2147483648


@message(key=89, versions=(0, 0), flexible_since=0)
class StreamsGroupDescribeResponse(Message):
    """StreamsGroupDescribeResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
