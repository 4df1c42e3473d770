"""Requests about partitions and leaders, topics, producers and access rules."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.messages import alter_partition_reassignments as reassignments
from odradek.protocol.messages import describe_producers, describe_topic_partitions, elect_leaders
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.handlers.requests import batch, produce_request
from tests.interop.differential.partitions import create, offsets
from tests.interop.differential.playing import Seen, Step

AN_ID = bytes(range(16))
PREFERRED, UNCLEAN = 0, 1


def elect(topics: dict[str, list[int]] | None, kind: int = PREFERRED, version: int = 2) -> Step:
    wanted = None if topics is None else [elect_leaders.TopicPartitions(*each) for each in topics.items()]
    return Step(elect_leaders.ElectLeadersRequest(kind, wanted, 5000), version)


def reassign(topic: str, replicas: dict[int, list[int] | None], version: int = 1, **fields: bool) -> Step:
    partitions = [reassignments.ReassignablePartition(*each) for each in replicas.items()]
    wanted = [reassignments.ReassignableTopic(topic, partitions)]
    return Step(reassignments.AlterPartitionReassignmentsRequest(5000, topics=wanted, **fields), version)


def list_reassignments(topics: dict[str, list[int]] | None) -> Step:
    wanted = None if topics is None else [ListPartitionReassignmentsTopics(*each) for each in topics.items()]
    return Step(ListPartitionReassignmentsRequest(5000, wanted), 0, reads=True)


def describe_partitions(names: Sequence[str], limit: int = 2000, cursor: tuple[str, int] | None = None) -> Step:
    wanted = [describe_topic_partitions.TopicRequest(name) for name in names]
    start = None if cursor is None else describe_topic_partitions.Cursor(*cursor)
    return Step(describe_topic_partitions.DescribeTopicPartitionsRequest(wanted, limit, start), 0, reads=True)


def producers(topics: dict[str, list[int]]) -> Step:
    wanted = [describe_producers.TopicRequest(*each) for each in topics.items()]
    return Step(describe_producers.DescribeProducersRequest(wanted), 0, reads=True)


def move(topics: dict[str, list[int]], path: str = "", version: int = 2) -> Step:
    def request(seen: Seen) -> AlterReplicaLogDirsRequest:
        wanted = [AlterReplicaLogDirTopic(*each) for each in topics.items()]
        return AlterReplicaLogDirsRequest([AlterReplicaLogDir(path or seen.log_dir, wanted)])

    return Step(request, version)


def describe_by_id(*names: str, unknown: bool = False) -> Step:
    def request(seen: Seen) -> MetadataRequest:
        ids = [seen.topic_ids[name] for name in names] + [AN_ID] * unknown
        return MetadataRequest([MetadataRequestTopic(topic_id, None) for topic_id in ids], False)

    return Step(request, 12, reads=True)


PLACEMENT = [
    create("led", 3),
    offsets("led", 3, -1),
    elect({"led": [0, 1]}),
    elect({"led": [0, 9], "missing": [0]}),
    elect({"led": [0]}, UNCLEAN),
    elect({"led": [0]}, 7),
    elect({"led": [0]}, version=0),
    elect({"led": [0, 0]}, version=1),
    elect({"led": [0], "": [0], "bad name": [0]}),
    elect({}),
    elect(None),
    elect(None, UNCLEAN),
    reassign("led", {0: [1]}),
    reassign("led", {0: [1]}, version=0),
    reassign("led", {0: [2]}),
    reassign("led", {0: [1, 2]}),
    reassign("led", {0: [1, 1]}),
    reassign("led", {0: []}),
    reassign("led", {0: [-1]}),
    reassign("led", {0: None}),
    reassign("led", {9: [1]}),
    reassign("led", {9: None}),
    reassign("missing", {0: [1]}),
    reassign("missing", {0: None}),
    reassign("led", {0: [1, 2]}, allow_replication_factor_change=False),
    reassign("led", {0: [1]}, allow_replication_factor_change=False),
    reassign("led", {}),
    Step(reassignments.AlterPartitionReassignmentsRequest(5000), 1),
    list_reassignments(None),
    list_reassignments({"led": [0, 1]}),
    list_reassignments({"missing": [0], "led": [9]}),
    list_reassignments({}),
    move({"led": [0, 1]}),
    move({"led": [0]}, version=1),
    move({"led": [9], "missing": [0]}),
    move({"led": [0]}, "/not/a/log/dir"),
    move({"led": [0]}, "relative"),
    move({}),
    Step(DescribeLogDirsRequest([DescribableLogDirTopic("led", [0, 1, 9]), DescribableLogDirTopic("x", [0])]), 5),
    Step(DescribeLogDirsRequest([]), 5),
    *(Step(DescribeLogDirsRequest([DescribableLogDirTopic("led", [0])]), version) for version in range(1, 6)),
]

DESCRIPTIONS = [
    create("a", 3),
    create("b", 2),
    create("c", 1),
    offsets("a", 3, -1),
    offsets("b", 2, -1),
    offsets("c", 1, -1),
    describe_partitions(["a", "b"]),
    describe_partitions(["b", "a", "missing"]),
    describe_partitions(["a", "a"]),
    describe_partitions([]),
    describe_partitions(["a", "b", "c"], 2),
    describe_partitions(["a", "b", "c"], 3),
    describe_partitions(["a", "b", "c"], 4),
    describe_partitions(["a", "b", "c"], 2, ("a", 2)),
    describe_partitions(["a", "b", "c"], 2, ("b", 0)),
    describe_partitions(["a", "b", "c"], 2, ("b", 1)),
    describe_partitions(["a", "b", "c"], 2, ("b", 5)),
    describe_partitions(["a", "c"], 2, ("b", 0)),
    describe_partitions(["a", "c"], 2, ("d", 0)),
    describe_partitions(["a", "missing", "c"], 3),
    describe_partitions([], 2, ("b", 1)),
    describe_partitions(["a"], 0),
    describe_partitions(["a"], -5),
    describe_partitions(["a"], 2, ("a", -1)),
    describe_by_id("a", "b"),
    describe_by_id("a", unknown=True),
    producers({"a": [0, 1], "missing": [0]}),
    producers({"a": [9, -1]}),
    producers({}),
    producers({"bad name": [0], "": [0]}),
    Step(produce_request("a", batch(b"1", producer_id=1234567, producer_epoch=3, base_sequence=0)), 9),
    Step(produce_request("a", batch(b"1", b"2", producer_id=1234567, producer_epoch=3, base_sequence=1)), 9),
    producers({"a": [0, 1]}),
    *(Step(ListConfigResourcesRequest(kinds), 1, reads=True) for kinds in ([2], [4], [8], [16], [32], [2, 4], [], [3])),
    Step(ListConfigResourcesRequest(), 0, reads=True),
]

SECURITY = [
    Step(UnregisterBrokerRequest(7), 0),
    Step(UnregisterBrokerRequest(-1), 0),
    *(Step(DescribeAclsRequest(1, None, 1, None, None, 1, 1), version) for version in (1, 2, 3)),
    Step(DescribeAclsRequest(99, None, 1, None, None, 1, 1), 3),
    *(
        Step(CreateAclsRequest([AclCreation(2, name, 3, "User:x", "*", 3, 3) for name in ("t", "u")]), version)
        for version in (1, 2, 3)
    ),
    Step(CreateAclsRequest([]), 3),
    *(Step(DeleteAclsRequest([DeleteAclsFilter(2, None, 1, None, None, 1, 1)] * 2), version) for version in (1, 2, 3)),
]
