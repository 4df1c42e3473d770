"""StreamsGroupHeartbeat (API key 88): the request by which instances of Kafka Streams join, live and leave (KIP-1071).

The coordinator knows the application's topology, creates the topics that it needs inside, and assigns tasks where
ConsumerGroupHeartbeat assigns partitions. What did not change since the last heartbeat is null or -1, in both
directions.
"""

import msgspec

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, i64, message, string, u16


class KeyValue(Structure):
    key: string = ""
    value: string = ""


class TopicInfo(Structure):
    """A topic that belongs to the application: a changelog, or one to repartition by."""

    name: string = ""
    partitions: i32 = 0  # 0 leaves the number to the broker, always for changelogs
    replication_factor: i16 = 0  # 0 for the broker's default
    topic_configs: list[KeyValue] = []


class CopartitionGroup(Structure):
    """Topics that must have equally many partitions, as indexes into the lists of their subtopology."""

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
    epoch: i32 = 0  # raised by the developer with each new topology
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
    member_id: string = ""  # made up by the member, kept as long as the process lives
    member_epoch: i32 = 0  # 0 joins, -1 leaves, -2 a static member leaves for a while; else as last told
    endpoint_information_epoch: i32 = 0  # the newest epoch of `partitions_by_user_endpoint` that the member has
    instance_id: string | None = None
    rack_id: string | None = None
    rebalance_timeout_ms: i32 = -1
    topology: Topology | None = None  # when joining; else None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: string | None = None  # members of one process share their state on disk
    user_endpoint: Endpoint | None = None  # where interactive queries reach this member
    client_tags: list[KeyValue] | None = None  # for spreading standby tasks over racks
    # How far the local state is; sent when it caught up, and from time to time.
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None  # where those changelogs end
    shutdown_application: boolean = False  # ask all members of the group to shut down


class Status(Structure):
    # 0 stale topology, 1 source topics missing, 2 wrong numbers of partitions, 3 internal topics missing, 4 shut down,
    # 5 assignment delayed.
    status_code: i8 = 0
    status_detail: string = ""


class TopicPartition(Structure):
    topic: string = ""
    partitions: list[i32] = []


class EndpointToPartitions(Structure):
    """Which partitions a member holds for interactive queries."""

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
    acceptable_recovery_lag: i32 = 0  # a warm-up task within this many records has caught up
    task_offset_interval_ms: i32 = 0  # how often to tell `task_offsets`
    status: list[Status] | None = []  # what keeps the group from going ahead; empty when nothing does
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: i32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
