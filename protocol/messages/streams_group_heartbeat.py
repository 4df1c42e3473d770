"""StreamsGroupHeartbeat (API key 88): members join, stay in and leave Streams groups (KIP-1071).

The coordinator stores the application's topology, creates its internal topics, and assigns tasks as
ConsumerGroupHeartbeat assigns partitions. In both directions, a field that did not change since the last heartbeat is
null or -1.
"""

import msgspec

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, i64, message, string, u16


class KeyValue(Structure):
    key: string = ""
    value: string = ""


class TopicInfo(Structure):
    """An internal topic of the application: a changelog or a repartition topic."""

    name: string = ""
    partitions: i32 = 0  # 0: the broker chooses; always 0 for changelogs
    replication_factor: i16 = 0  # 0 for the broker's default
    topic_configs: list[KeyValue] = []


class CopartitionGroup(Structure):
    """Topics that must have the same number of partitions, as indexes into the lists of their subtopology."""

    source_topics: list[i16] = []
    source_topic_regex: list[i16] = []
    repartition_source_topics: list[i16] = []


class Subtopology(Structure):
    subtopology_id: string = ""
    source_topics: list[string] = []
    source_topic_regex: list[string] = []  # patterns of further source topics
    state_changelog_topics: list[TopicInfo] = []  # created by the coordinator
    repartition_sink_topics: list[string] = []
    repartition_source_topics: list[TopicInfo] = []  # created by the coordinator
    copartition_groups: list[CopartitionGroup] = []


class Topology(Structure):
    epoch: i32 = 0  # the developer raises it with each new topology
    subtopologies: list[Subtopology] = []


class TaskIds(Structure):
    """A task is a subtopology and a partition of its input."""

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
    """Version 0, flexible."""

    group_id: string = ""
    member_id: string = ""  # chosen by the member, the same until its process ends
    member_epoch: i32 = 0  # 0 joins, -1 leaves, -2 a static member leaves for a while; otherwise the last one received
    endpoint_information_epoch: i32 = 0  # the newest epoch of `partitions_by_user_endpoint` that the member has
    instance_id: string | None = None
    rack_id: string | None = None
    rebalance_timeout_ms: i32 = -1
    topology: Topology | None = None  # in a join; otherwise None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: string | None = None  # members of one process share their state on disk
    user_endpoint: Endpoint | None = None  # this member's address for interactive queries
    client_tags: list[KeyValue] | None = None  # for spreading standby tasks over racks
    # The positions of the local state; sent when it has caught up, and at intervals.
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None  # the end offsets of those changelogs
    shutdown_application: boolean = False  # shut down all members of the group


class Status(Structure):
    # 0 stale topology, 1 source topics missing, 2 wrong numbers of partitions, 3 internal topics missing, 4 shut down,
    # 5 assignment delayed.
    status_code: i8 = 0
    status_detail: string = ""


class TopicPartition(Structure):
    topic: string = ""
    partitions: list[i32] = []


class EndpointToPartitions(Structure):
    """The partitions that a member serves to interactive queries."""

    user_endpoint: Endpoint = msgspec.field(default_factory=Endpoint)
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []


@message(key=88, versions=(0, 0), flexible_since=0)
class StreamsGroupHeartbeatResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    member_id: string = ""
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    acceptable_recovery_lag: i32 = 0  # a warm-up task with at most this lag has caught up
    task_offset_interval_ms: i32 = 0  # how often to send `task_offsets`
    status: list[Status] | None = []  # problems that stop the group; empty without any
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: i32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
