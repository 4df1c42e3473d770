"""StreamsGroupDescribe (API key 89): an admin client reads the state and members of Streams groups (KIP-1071)."""

import msgspec

from odradek.protocol.schema import Message, Structure, boolean, i16, i32, i64, message, string, u16


@message(key=89, versions=(0, 0), flexible_since=0)
class StreamsGroupDescribeRequest(Message):
    """Version 0, flexible."""

    group_ids: list[string] = []
    include_authorized_operations: boolean = False


class KeyValue(Structure):
    key: string = ""
    value: string = ""


class TopicInfo(Structure):
    """An internal topic of the application: a changelog or a repartition topic."""

    name: string = ""
    partitions: i32 = 0  # 0: the broker chooses; always 0 for changelogs
    replication_factor: i16 = 0  # 0 for the broker's default
    topic_configs: list[KeyValue] = []


class Subtopology(Structure):
    subtopology_id: string = ""
    source_topics: list[string] = []
    repartition_sink_topics: list[string] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []


class Topology(Structure):
    epoch: i32 = 0
    subtopologies: list[Subtopology] | None = None  # None while source topics are missing or wrongly partitioned


class Endpoint(Structure):
    host: string = ""
    port: u16 = 0


class TaskOffset(Structure):
    subtopology_id: string = ""
    partition: i32 = 0
    offset: i64 = 0


class TaskIds(Structure):
    """A task is a subtopology and a partition of its input."""

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
    process_id: string = ""  # members of one process share their state on disk
    user_endpoint: Endpoint | None = None  # this member's address for interactive queries
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = msgspec.field(default_factory=Assignment)  # the tasks that it runs
    # The tasks that it will run; equal to `assignment` in a stable group.
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)
    is_classic: boolean = False  # uses the classic protocol, not upgraded yet


class DescribedGroup(Structure):
    error_code: i16 = 0
    error_message: string | None = None
    group_id: string = ""
    group_state: string = ""  # Empty, NotReady, Assigning, Reconciling, Stable, Dead
    group_epoch: i32 = 0  # increases with each change of members or topology
    assignment_epoch: i32 = 0  # the group epoch that the target assignment was computed for
    topology: Topology | None = None  # None with an error
    members: list[Member] = []
    authorized_operations: i32 = -2147483648


@message(key=89, versions=(0, 0), flexible_since=0)
class StreamsGroupDescribeResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup] = []
