"""StreamsGroupHeartbeat (API key 88)."""

import msgspec

from protocol.schema import Message, Structure, boolean, i16, i32, i64, i8, message, string, u16


class KeyValue(Structure):
    key: string = ""
    value: string = ""


class TopicInfo(Structure):
    name: string = ""
    partitions: i32 = 0
    replication_factor: i16 = 0
    topic_configs: list[KeyValue] = []


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


class Topology(Structure):
    epoch: i32 = 0
    subtopologies: list[Subtopology] = []


class TaskIds(Structure):
    subtopology_id: string = ""
    partitions: list[i32] = []


class Endpoint(Structure):
    host: string = ""
    port: u16 = 0


class TaskOffset(Structure):
    subtopology_id: string = ""
    partition: i32 = 0
    offset: i64 = 0


@message(key=88, versions=(0, 0), flexible_since=0)
class StreamsGroupHeartbeatRequest(Message):
    """StreamsGroupHeartbeatRequest, version 0, flexible."""

    group_id: string = ""
    member_id: string = ""
    member_epoch: i32 = 0
    endpoint_information_epoch: i32 = 0
    instance_id: string | None = None
    rack_id: string | None = None
    rebalance_timeout_ms: i32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: string | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: boolean = False


class Status(Structure):
    status_code: i8 = 0
    status_detail: string = ""


class TopicPartition(Structure):
    topic: string = ""
    partitions: list[i32] = []


class EndpointToPartitions(Structure):
    user_endpoint: Endpoint = msgspec.field(default_factory=Endpoint)
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []


@message(key=88, versions=(0, 0), flexible_since=0)
class StreamsGroupHeartbeatResponse(Message):
    """StreamsGroupHeartbeatResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    member_id: string = ""
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    acceptable_recovery_lag: i32 = 0
    task_offset_interval_ms: i32 = 0
    status: list[Status] | None = []
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: i32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
