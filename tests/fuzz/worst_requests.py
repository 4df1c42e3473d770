"""The worst requests of a client: as many rows as fit, of the kinds that are most expensive to process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from odradek.protocol import header
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages import (
    alter_partition_reassignments,
    alter_replica_log_dirs,
    consumer_group_describe,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    join_group,
    leave_group,
    list_config_resources,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.schema import Message, spec

MANY = "many"
"""A topic of many partitions, for responses that are larger than their requests."""

MOST_ROWS = 99_000
"""A request of 100,000 elements is refused."""


class Worst(NamedTuple):
    """One kind of bad request: `request(size)` returns a message or a frame of about so many bytes.

    `follow` makes the later requests of the same connection from its response.
    """

    name: str
    version: int
    request: Callable[[int], Message | bytes]
    follow: Callable[[bytes], Iterator[bytes]] | None = None

    def frame(self, size: int) -> bytes:
        request = self.request(size)
        return request if isinstance(request, bytes) else framed(request, self.version)


def framed(request: Message, version: int) -> bytes:
    """A request with its header and size."""
    api_key = spec(type(request)).key
    assert api_key is not None
    body = header.encode_request(header.RequestHeader(api_key, version, 1, "worst"), request)
    return SIZE_PREFIX.pack(len(body)) + body


def names(count: int) -> list[str]:
    return [f"n{index:06d}" for index in range(min(count, MOST_ROWS))]


def ids(count: int) -> list[bytes]:
    return [index.to_bytes(16, "big") for index in range(1, min(count, MOST_ROWS) + 1)]


def _fetch(count: int, *, session_epoch: int = -1, first: int = 1_000_000) -> fetch.FetchRequest:
    partitions = [fetch.FetchPartition(first + index, partition_max_bytes=1) for index in range(count)]
    return fetch.FetchRequest(
        max_wait_ms=0, session_epoch=session_epoch, topics=[fetch.FetchTopic(MANY, partitions=partitions)]
    )


def _go_on(answer: bytes) -> Iterator[bytes]:
    """The later requests of the fetch session that `answer` opened; they contain no partition."""
    _, opened = header.decode_response(1, 12, answer)
    assert isinstance(opened, fetch.FetchResponse)
    epoch = 0
    while True:
        epoch += 1
        yield framed(fetch.FetchRequest(max_wait_ms=0, session_id=opened.session_id, session_epoch=epoch), 12)


def _tagged(count: int) -> bytes:
    """An ApiVersions request with so many unknown tagged fields."""
    frame = framed(ApiVersionsRequest("a", "b"), 3)[4:-1]
    frame += _uvarint(count) + b"".join(_uvarint(tag) + b"\0" for tag in range(count))
    return SIZE_PREFIX.pack(len(frame)) + frame


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _configs(kind: int, named: list[str], keys: list[str] | None = None) -> describe_configs.DescribeConfigsRequest:
    return describe_configs.DescribeConfigsRequest(
        [describe_configs.DescribeConfigsResource(kind, name, keys) for name in named], True, True
    )


def _alter(named: list[str]) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    config = incremental_alter_configs.AlterableConfig("retention.ms", 0, "1")
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        [incremental_alter_configs.AlterConfigsResource(2, name, [config]) for name in named], True
    )


def _create(named: list[str]) -> create_topics.CreateTopicsRequest:
    return create_topics.CreateTopicsRequest([create_topics.CreatableTopic(name, 1, 1) for name in named], 1000, True)


def _produce(count: int) -> produce.ProduceRequest:
    rows = [produce.PartitionProduceData(index, None) for index in range(count)]
    return produce.ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[produce.TopicProduceData(MANY, partition_data=rows)]
    )


def _list_offsets(count: int, timestamp: int, partitions: int | None = None) -> list_offsets.ListOffsetsRequest:
    rows = [
        list_offsets.ListOffsetsPartition(index % partitions if partitions else 1_000_000 + index, timestamp=timestamp)
        for index in range(count)
    ]
    return list_offsets.ListOffsetsRequest(-1, topics=[list_offsets.ListOffsetsTopic(MANY, rows)])


def _commit(count: int) -> offset_commit.OffsetCommitRequest:
    rows = [offset_commit.OffsetCommitRequestPartition(index, 1) for index in range(count)]
    return offset_commit.OffsetCommitRequest(
        "g", topics=[offset_commit.OffsetCommitRequestTopic(MANY, partitions=rows)]
    )


def _heartbeat(named: list[str] | None, regex: str | None = None) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        "cg",
        "A" * 22,
        0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=named,
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )


WORST = [
    Worst(
        "Metadata, empty names",
        9,
        lambda size: metadata.MetadataRequest([metadata.MetadataRequestTopic(name="")] * (size // 2)),
    ),
    Worst(
        "Metadata, unknown names",
        9,
        lambda size: metadata.MetadataRequest([metadata.MetadataRequestTopic(name=name) for name in names(size // 9)]),
    ),
    Worst(
        "Metadata, unknown ids",
        12,
        lambda size: metadata.MetadataRequest([metadata.MetadataRequestTopic(each, None) for each in ids(size // 18)]),
    ),
    Worst("Metadata, every topic", 12, lambda size: metadata.MetadataRequest(None)),
    Worst("Fetch, unknown partitions", 12, lambda size: _fetch(size // 33)),
    Worst(
        "Fetch, unknown ids",
        13,
        lambda size: fetch.FetchRequest(
            max_wait_ms=0,
            session_epoch=-1,
            topics=[fetch.FetchTopic(topic_id=each, partitions=[fetch.FetchPartition(0)]) for each in ids(size // 52)],
        ),
    ),
    Worst("Fetch, a large session", 12, lambda size: _fetch(size // 33, session_epoch=0), _go_on),
    Worst(
        "Fetch, a large session, served",
        12,
        lambda size: _fetch(min(size // 33, 1000), session_epoch=0, first=0),
        _go_on,
    ),
    Worst("ListOffsets, unknown partitions", 6, lambda size: _list_offsets(size // 17, -1)),
    Worst("ListOffsets, by timestamp", 6, lambda size: _list_offsets(min(size // 17, 10_000), 1, 10_000)),
    Worst("CreateTopics, 10,002 topics", 7, lambda size: _create(names(10_002))),
    Worst("CreateTopics, 9,999 topics", 7, lambda size: _create(names(min(9_999, size // 100)))),
    Worst("CreateTopics, the same names", 7, lambda size: _create(names(size // 36) * 2)),
    Worst(
        "CreatePartitions",
        3,
        lambda size: create_partitions.CreatePartitionsRequest(
            [create_partitions.CreatePartitionsTopic(name, 9999, None) for name in names(size // 14)], 1000, True
        ),
    ),
    Worst(
        "DeleteTopics",
        6,
        lambda size: delete_topics.DeleteTopicsRequest(
            [delete_topics.DeleteTopicState(name) for name in names(size // 25)], timeout_ms=1000
        ),
    ),
    Worst(
        "DeleteRecords",
        2,
        lambda size: delete_records.DeleteRecordsRequest(
            [
                delete_records.DeleteRecordsTopic(
                    MANY, [delete_records.DeleteRecordsPartition(1_000_000 + index, 1) for index in range(size // 13)]
                )
            ],
            1000,
        ),
    ),
    Worst("DescribeConfigs, unknown topics", 4, lambda size: _configs(2, names(size // 11))),
    Worst("DescribeConfigs, the broker", 4, lambda size: _configs(4, ["1"] * min(10_000, size // 5))),
    Worst("DescribeConfigs, groups", 4, lambda size: _configs(32, names(min(10_000, size // 11)))),
    Worst("DescribeConfigs, keys", 4, lambda size: _configs(4, ["1"], names(size // 8))),
    Worst("IncrementalAlterConfigs", 1, lambda size: _alter(names(size // 28))),
    Worst(
        "ElectLeaders",
        2,
        lambda size: elect_leaders.ElectLeadersRequest(
            0, [elect_leaders.TopicPartitions(MANY, list(range(size // 4)))], 1000
        ),
    ),
    Worst(
        "AlterReplicaLogDirs",
        2,
        lambda size: alter_replica_log_dirs.AlterReplicaLogDirsRequest(
            [
                alter_replica_log_dirs.AlterReplicaLogDir(
                    "/x", [alter_replica_log_dirs.AlterReplicaLogDirTopic(MANY, list(range(size // 4)))]
                )
            ]
        ),
    ),
    Worst(
        "DescribeLogDirs",
        4,
        lambda size: describe_log_dirs.DescribeLogDirsRequest(
            [describe_log_dirs.DescribableLogDirTopic(MANY, list(range(size // 4)))]
        ),
    ),
    Worst(
        "DescribeProducers",
        0,
        lambda size: describe_producers.DescribeProducersRequest(
            [describe_producers.TopicRequest(MANY, list(range(size // 4)))]
        ),
    ),
    Worst("OffsetCommit, unknown partitions", 8, lambda size: _commit(size // 18)),
    Worst(
        "OffsetFetch, partitions",
        8,
        lambda size: offset_fetch.OffsetFetchRequest(
            groups=[
                offset_fetch.OffsetFetchRequestGroup(
                    "g", topics=[offset_fetch.OffsetFetchRequestTopics(MANY, partition_indexes=list(range(size // 4)))]
                )
            ]
        ),
    ),
    Worst(
        "OffsetFetch, groups",
        8,
        lambda size: offset_fetch.OffsetFetchRequest(
            groups=[offset_fetch.OffsetFetchRequestGroup(name, topics=None) for name in names(size // 10)]
        ),
    ),
    Worst(
        "OffsetDelete",
        0,
        lambda size: offset_delete.OffsetDeleteRequest(
            "g",
            [
                offset_delete.OffsetDeleteRequestTopic(
                    MANY,
                    [
                        offset_delete.OffsetDeleteRequestPartition(index)
                        for index in range(1_000_000, 1_000_000 + size // 4)
                    ],
                )
            ],
        ),
    ),
    Worst(
        "OffsetForLeaderEpoch",
        4,
        lambda size: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            -1,
            [
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    MANY,
                    [
                        offset_for_leader_epoch.OffsetForLeaderPartition(1_000_000 + index, -1, 1)
                        for index in range(size // 13)
                    ],
                )
            ],
        ),
    ),
    Worst(
        "JoinGroup, protocols",
        7,
        lambda size: join_group.JoinGroupRequest(
            "j",
            6000,
            6000,
            "",
            None,
            "consumer",
            [join_group.JoinGroupRequestProtocol(name, b"") for name in names(size // 10)],
        ),
    ),
    Worst(
        "SyncGroup, assignments",
        5,
        lambda size: sync_group.SyncGroupRequest(
            "j",
            1,
            "m",
            None,
            "consumer",
            "range",
            [sync_group.SyncGroupRequestAssignment(name, b"") for name in names(size // 10)],
        ),
    ),
    Worst(
        "LeaveGroup, members",
        5,
        lambda size: leave_group.LeaveGroupRequest(
            "j", members=[leave_group.MemberIdentity(name, None) for name in names(size // 11)]
        ),
    ),
    Worst("ConsumerGroupHeartbeat, names", 1, lambda size: _heartbeat(names(size // 8))),
    Worst("ConsumerGroupHeartbeat, a regular expression", 1, lambda size: _heartbeat(None, "(a|aa)+" * 4000)),
    Worst("ConsumerGroupHeartbeat, Unicode classes", 1, lambda size: _heartbeat(None, r"\pL" * 10_000)),
    Worst("ConsumerGroupHeartbeat, the slowest expression", 1, lambda size: _heartbeat(None, "a?" * 2048)),
    Worst(
        "FindCoordinator",
        4,
        lambda size: find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=names(size // 8)),
    ),
    Worst("DescribeGroups", 5, lambda size: describe_groups.DescribeGroupsRequest(names(size // 8))),
    Worst(
        "ConsumerGroupDescribe", 0, lambda size: consumer_group_describe.ConsumerGroupDescribeRequest(names(size // 8))
    ),
    Worst("DeleteGroups", 2, lambda size: delete_groups.DeleteGroupsRequest(names(size // 8))),
    Worst(
        "DescribeTopicPartitions",
        0,
        lambda size: describe_topic_partitions.DescribeTopicPartitionsRequest(
            [describe_topic_partitions.TopicRequest(name) for name in names(size // 9)], 2000
        ),
    ),
    Worst(
        "AlterPartitionReassignments",
        0,
        lambda size: alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            1000,
            topics=[
                alter_partition_reassignments.ReassignableTopic(
                    MANY,
                    [alter_partition_reassignments.ReassignablePartition(index, None) for index in range(size // 6)],
                )
            ],
        ),
    ),
    Worst(
        "ListPartitionReassignments",
        0,
        lambda size: list_partition_reassignments.ListPartitionReassignmentsRequest(
            1000, [list_partition_reassignments.ListPartitionReassignmentsTopics(MANY, list(range(size // 4)))]
        ),
    ),
    Worst("ListConfigResources", 1, lambda size: list_config_resources.ListConfigResourcesRequest([2] * size)),
    Worst("Produce, partitions without records", 9, lambda size: _produce(size // 6)),
    Worst("ApiVersions, tagged fields", 3, lambda size: _tagged(size // 4)),
    Worst("ApiVersions, a long software name", 3, lambda size: ApiVersionsRequest("a" * 32_000, "b" * 32_000)),
]
