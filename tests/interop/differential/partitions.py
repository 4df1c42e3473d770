"""Topics, partitions and records: create, add, describe and delete them."""

from __future__ import annotations

from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.requests import batch, produce_request
from tests.interop.differential.playing import Step

LARGEST_TIMESTAMP = -3


def create(name: str, partitions: int = 1, **configs: str) -> Step:
    properties = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    return Step(CreateTopicsRequest([CreatableTopic(name, partitions, 1, configs=properties)], 5000), 7)


def offsets(name: str, partitions: int, timestamp: int) -> Step:
    """The offsets of the start (-2), the end (-1) or the largest timestamp (-3) of partitions.

    In Apache Kafka partitions get a leader some milliseconds after their creation.
    """
    wanted = [ListOffsetsPartition(index, timestamp=timestamp) for index in range(partitions)]
    version = 7 if timestamp == LARGEST_TIMESTAMP else 4
    return Step(ListOffsetsRequest(-1, topics=[ListOffsetsTopic(name, wanted)]), version, reads=True)


def metadata(*names: str) -> Step:
    return Step(
        MetadataRequest([MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False),
        9,
        reads=True,
    )


def grow(*topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False) -> Step:
    return Step(CreatePartitionsRequest(list(topics), 5000, validate_only), version)


def to(name: str, count: int, *assignments: list[int], assigned: bool = False) -> CreatePartitionsTopic:
    given = [CreatePartitionsAssignment(replicas) for replicas in assignments]
    return CreatePartitionsTopic(name, count, given if given or assigned else None)


def delete_records(*topics: tuple[str, dict[int, int]], version: int = 2) -> Step:
    wanted = [
        DeleteRecordsTopic(name, [DeleteRecordsPartition(index, offset) for index, offset in partitions.items()])
        for name, partitions in topics
    ]
    return Step(DeleteRecordsRequest(wanted, 5000), version)


GROWING = [
    create("grow", 2),
    create("grow-too", 1),
    offsets("grow", 2, -1),
    grow(to("grow", 2)),
    grow(to("grow", 1)),
    grow(to("grow", 0)),
    grow(to("grow", -1)),
    grow(to("missing", 3)),
    grow(to("", 3)),
    grow(to("bad name", 3)),
    grow(to("grow", 4), to("grow", 5)),
    grow(to("grow", 3, assigned=True)),
    grow(to("grow", 3, [1], [1])),
    grow(to("grow", 3, [])),
    grow(to("grow", 3, [1, 1])),
    grow(to("grow", 3, [2])),
    grow(to("grow", 3, [-1])),
    grow(to("grow", 3, [1, 2])),
    grow(to("grow", 5), validate_only=True),
    grow(to("grow", 1), to("missing", 2), validate_only=True),
    metadata("grow"),
    *(
        grow(to("grow", 3 + version), to("missing", 1), to("grow-too", 2 + version), version=version)
        for version in range(4)
    ),
    grow(to("grow", 8, [1], [1])),
    grow(),
    metadata("grow", "grow-too"),
    offsets("grow", 8, -1),
]

DELETING_RECORDS = [
    create("shorten", 3),
    create("compacted", 1, cleanup_policy="compact"),
    create("both", 1, cleanup_policy="compact,delete"),
    create("kept", 1, cleanup_policy=""),
    *(offsets(name, 1, -1) for name in ("compacted", "both", "kept")),
    offsets("shorten", 3, -1),
    *(
        Step(produce_request(name, batch(b"1", b"2", b"3", b"4", b"5")), 9)
        for name in ("shorten", "compacted", "both", "kept")
    ),
    *(delete_records(("shorten", {0: 1 + version}), version=version) for version in range(3)),
    delete_records(("shorten", {0: 2})),
    delete_records(("shorten", {0: 6})),
    delete_records(("shorten", {0: -2})),
    delete_records(("shorten", {0: 4, 1: 0, 2: 1, 3: 0, -1: 0})),
    delete_records(("shorten", {1: -1})),
    delete_records(("missing", {0: 0}), ("shorten", {0: 4}), ("compacted", {0: 1}), ("both", {0: 1}), ("kept", {0: 1})),
    delete_records(("bad name", {0: 0}), ("", {0: 0})),
    delete_records(("shorten", {})),
    delete_records(),
    delete_records(("shorten", {0: 1}), ("shorten", {0: 2})),
    offsets("shorten", 3, -2),
    offsets("shorten", 3, LARGEST_TIMESTAMP),
    delete_records(("shorten", {0: -1})),
    offsets("shorten", 3, LARGEST_TIMESTAMP),  # of a record that is deleted
    *(offsets(name, 1, -2) for name in ("shorten", "compacted", "both", "kept")),
    offsets("shorten", 3, -1),
    Step(produce_request("shorten", batch(b"6")), 9),
]
