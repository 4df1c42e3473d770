"""Offsets that transactions commit, beside everything else that happens to a group, its offsets and their topics.

A group of each script has pending offsets; what follows is answered by both servers, and then the transaction ends. A
script waits for the state after each end, because Apache Kafka writes markers after its response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.schema import ZERO_UUID
from tests.interop.differential.groups import delete, delete_offsets, describe, join, leave, sync
from tests.interop.differential.partitions import create, offsets
from tests.interop.differential.playing import Seen, Step
from tests.interop.differential.transaction_steps import (
    GROUP_KEY,
    TOPIC,
    UNKNOWN_ID,
    Id,
    P,
    begin,
    end,
    init,
    send,
    state,
    versions,
)

OTHER_TOPIC, TOO_LONG = "txn-other", "x" * 4097
Member = int | str
"""A member: the index of its id among the ids that the server assigned, or a literal id."""
Rows = Sequence[tuple[str, list[TxnOffsetCommitRequestPartition]]]

CLASSIC, CONSUMER, MIXED, OUTSIDE, INVALID_FIELDS = GROUPS = (
    "txn-classic", "txn-consumer", "txn-mixed", "txn-outside", "txn-invalid",
)  # fmt: skip


def row(offset: int = 7, index: int = 0, metadata: str | None = "", epoch: int = -1) -> TxnOffsetCommitRequestPartition:
    return TxnOffsetCommitRequestPartition(index, offset, epoch, metadata)


def commit(
    name: str, producer: Id, epoch: int, group: str, offset: int = 7, *, version: int = 5, member: Member = "",
    rows: Rows = (), **fields: Any,
) -> Step:  # fmt: skip
    """Commit an offset of partition 0 of the topic, or `rows`, in the transaction `name`."""
    topics = [TxnOffsetCommitRequestTopic(*each) for each in rows or [(TOPIC, [row(offset)])]]

    def request(seen: Seen) -> TxnOffsetCommitRequest:
        member_id = seen.member_ids[member] if isinstance(member, int) else member
        producer_id = seen.producer_ids[producer.index] if isinstance(producer, P) else producer
        return TxnOffsetCommitRequest(name, group, producer_id, epoch, topics=topics, member_id=member_id, **fields)

    return Step(request, version)


def commit_plainly(group: str, offset: int, topic: str = TOPIC) -> Step:
    rows = [OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, offset)])]
    return Step(OffsetCommitRequest(group, topics=rows), 8)


def fetch(group: str, version: int = 8, *, stable: bool = True, everything: bool = False) -> Step:
    """Fetch the offsets of two partitions of both topics, or all of the group. Version 7 is the first with `stable`."""
    names = None if everything else [TOPIC, OTHER_TOPIC]

    def request(seen: Seen) -> OffsetFetchRequest:
        if version < 8:
            old = None if names is None else [OffsetFetchRequestTopic(name, [0, 1]) for name in names]
            return OffsetFetchRequest(group, old, require_stable=stable and version == 7)
        wanted = None
        if names is not None and version < 10:
            wanted = [OffsetFetchRequestTopics(name, partition_indexes=[0, 1]) for name in names]
        elif names is not None:
            ids = [seen.topic_ids.get(name, ZERO_UUID) for name in names]
            wanted = [OffsetFetchRequestTopics("", each, [0, 1]) for each in ids]
        groups = [OffsetFetchRequestGroup(each, topics=wanted) for each in (group, "txn-nobody")]
        return OffsetFetchRequest(groups=groups, require_stable=stable)

    return Step(request, version, reads=True)


def fetch_in_every_way(group: str) -> list[Step]:
    return [
        *(fetch(group, version, stable=False) for version in (1, 6, 7, 10)),
        *(fetch(group, version) for version in (7, 8, 9, 10)),
        *(fetch(group, version, stable=stable, everything=True) for version in (7, 8, 10) for stable in (True, False)),
    ]


def heartbeat(group: str, member_id: str, epoch: int, *owned: int, topic: str = TOPIC, joins: bool = False) -> Step:
    """A heartbeat of a member of the consumer protocol that owns these partitions of the topic."""

    def request(seen: Seen) -> ConsumerGroupHeartbeatRequest:
        partitions = [TopicPartitions(seen.topic_ids[topic], list(owned))] if owned else []
        subscription = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [topic]} if joins else {}
        return ConsumerGroupHeartbeatRequest(group, member_id, epoch, topic_partitions=partitions, **subscription)

    return Step(request, 1)


def list_groups() -> Step:
    return Step(ListGroupsRequest(), 5, counts=lambda answer: [row for row in answer.groups if row.group_id in GROUPS])


def await_coordinator(group: str) -> Step:
    def succeeds(answer: Any) -> bool:
        return not answer.coordinators[0].error_code

    return Step(FindCoordinatorRequest("", GROUP_KEY, [group]), 6, reads=True, ready=succeeds)


def delete_topic(name: str) -> list[Step]:
    return [Step(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)]


def complete(name: str, producer: Id, epoch: int, committed: bool = True) -> list[Step]:
    """End the transaction, and wait until its markers are written."""
    return [end(name, producer, epoch, committed), state(name, "CompleteCommit" if committed else "CompleteAbort")]


def start(name: str, group: str) -> list[Step]:
    return [
        *begin(name),
        *delete_topic(OTHER_TOPIC),
        create(OTHER_TOPIC, 2),
        offsets(OTHER_TOPIC, 2, -1),
        await_coordinator(group),
        fetch(group),
        init(name),
    ]


CLASSIC_MEMBERS = [
    *start("of-classic", CLASSIC),
    commit("of-classic", P(0), 0, CLASSIC, generation_id=0),  # there is no group
    commit("of-classic", P(0), 0, CLASSIC, member="m", generation_id=-1),
    list_groups(),
    describe(CLASSIC),
    *fetch_in_every_way(CLASSIC),
    commit("of-classic", P(0), 0, CLASSIC, member="m", generation_id=3),  # it has no members
    commit("of-classic", P(0), 0, CLASSIC, generation_id=0),
    commit("of-classic", P(0), 0, CLASSIC, generation_id=-5),
    join(CLASSIC, version=9, group_instance_id="i"),
    sync(CLASSIC, 0, 1, group_instance_id="i"),
    *versions(lambda v: commit("of-classic", P(0), 0, CLASSIC, 10, version=v), 0, 5),
    *(
        commit("of-classic", P(0), 0, CLASSIC, 11, version=version, **fields)
        for version in (3, 4, 5)
        for fields in (
            {"member": 0, "generation_id": 1, "group_instance_id": "i"},
            {"member": 0, "generation_id": 1},
            {"member": 0, "generation_id": 0},
            {"member": 0, "generation_id": 2, "group_instance_id": "i"},
            {"member": 0, "generation_id": -1},
            {"member": "x", "generation_id": 1},
            {"member": "x", "generation_id": 1, "group_instance_id": "i"},
            {"member": 0, "generation_id": 1, "group_instance_id": "other"},
            {"member": "", "generation_id": 1},
            {"member": "", "generation_id": -1, "group_instance_id": "i"},
            {"member": "", "generation_id": -1, "group_instance_id": "other"},
        )
    ),
    join(CLASSIC, 0, version=9, protocols="range roundrobin", group_instance_id="i"),  # the next generation
    *(
        commit("of-classic", P(0), 0, CLASSIC, 12, member=0, generation_id=generation)  # before its assignment
        for generation in (1, 2)
    ),
    commit("of-classic", P(0), 0, CLASSIC, 12),
    sync(CLASSIC, 0, 2, group_instance_id="i"),
    commit("of-classic", P(0), 0, CLASSIC, 13, member=0, generation_id=2),
    delete(CLASSIC),
    delete_offsets(CLASSIC, TOPIC, OTHER_TOPIC),
    *fetch_in_every_way(CLASSIC),
    *complete("of-classic", P(0), 0),
    *fetch_in_every_way(CLASSIC),
    leave(CLASSIC, ("", "i")),
    commit("of-classic", P(0), 1, CLASSIC, 14, member=0, generation_id=2),  # it left
    commit("of-classic", P(0), 1, CLASSIC, 14),
    delete(CLASSIC),
    *complete("of-classic", P(0), 1),
    fetch(CLASSIC),
]
"""Members of a group of the classic protocol (KIP-447)."""

CONSUMER_MEMBERS = [
    *start("of-consumer", CONSUMER),
    heartbeat(CONSUMER, "m1", 0, joins=True),
    heartbeat(CONSUMER, "m1", 1, 0, 1, 2),
    *(
        commit("of-consumer", P(0), 0, CONSUMER, 10, version=version, **fields)
        for version in (2, 3, 4, 5)
        for fields in (
            {},
            *(
                (
                    {"member": "m1", "generation_id": 1},
                    {"member": "m1", "generation_id": 0},
                    {"member": "m1", "generation_id": 2},
                    {"member": "m1", "generation_id": -1},
                    {"member": "x", "generation_id": 1},
                    {"member": "", "generation_id": 1},
                    {"member": "", "generation_id": -1, "group_instance_id": "i"},
                    {"member": "m1", "generation_id": 1, "group_instance_id": "i"},
                )
                if version >= 3
                else ()
            ),
        )
    ),
    *fetch_in_every_way(CONSUMER),
    delete_offsets(CONSUMER, TOPIC, OTHER_TOPIC),
    delete(CONSUMER),
    *complete("of-consumer", P(0), 0),
    *fetch_in_every_way(CONSUMER),
    commit("of-consumer", P(0), 1, CONSUMER, 11, member="m1", generation_id=1),
    heartbeat(CONSUMER, "m1", -1),  # leaves
    commit("of-consumer", P(0), 1, CONSUMER, 12, member="m1", generation_id=1),
    commit("of-consumer", P(0), 1, CONSUMER, 13, member="m1", generation_id=-1),
    *complete("of-consumer", P(0), 1, False),
    fetch(CONSUMER),
    delete(CONSUMER),
    fetch(CONSUMER),
]
"""Members of a group of the consumer protocol (KIP-848)."""

DELETIONS = [
    *start("of-outside", OUTSIDE),
    init("of-other"),
    # Plain commits before, between and after.
    commit_plainly(OUTSIDE, 3),
    commit("of-outside", P(0), 0, OUTSIDE, 5),
    *fetch_in_every_way(OUTSIDE),
    *complete("of-outside", P(0), 0),
    fetch(OUTSIDE),
    commit("of-outside", P(0), 1, OUTSIDE, 6),
    commit_plainly(OUTSIDE, 4),
    fetch(OUTSIDE),
    *complete("of-outside", P(0), 1),
    fetch(OUTSIDE),  # the later commit stays
    # Two producers.
    commit("of-outside", P(0), 2, OUTSIDE, 20),
    commit("of-other", P(1), 0, OUTSIDE, 21),
    commit("of-outside", P(0), 2, OUTSIDE, 22),
    *complete("of-outside", P(0), 2),
    *fetch_in_every_way(OUTSIDE),
    *complete("of-other", P(1), 0),
    fetch(OUTSIDE),
    commit("of-outside", P(0), 3, OUTSIDE, 30),
    commit("of-other", P(1), 1, OUTSIDE, 31),
    *complete("of-other", P(1), 1, False),
    *fetch_in_every_way(OUTSIDE),
    *complete("of-outside", P(0), 3, False),
    fetch(OUTSIDE),
    # The offsets are deleted.
    commit("of-outside", P(0), 4, OUTSIDE, 40, rows=[(TOPIC, [row(40), row(41, 1)]), (OTHER_TOPIC, [row(42)])]),
    commit("of-other", P(1), 2, OUTSIDE, 43),
    delete_offsets(OUTSIDE, TOPIC),
    *fetch_in_every_way(OUTSIDE),
    *complete("of-outside", P(0), 4),
    *fetch_in_every_way(OUTSIDE),
    *complete("of-other", P(1), 2),
    *fetch_in_every_way(OUTSIDE),
    # A topic is deleted, and created again.
    commit("of-outside", P(0), 5, OUTSIDE, 50, rows=[(TOPIC, [row(50)]), (OTHER_TOPIC, [row(51), row(52, 1)])]),
    *delete_topic(OTHER_TOPIC),
    fetch(OUTSIDE, 8),
    fetch(OUTSIDE, 8, everything=True),
    create(OTHER_TOPIC, 2),
    offsets(OTHER_TOPIC, 2, -1),
    fetch(OUTSIDE, 8),
    *complete("of-outside", P(0), 5),
    fetch(OUTSIDE, 8),
    fetch(OUTSIDE, 8, everything=True),
    # The group is deleted.
    commit("of-outside", P(0), 6, OUTSIDE, 60),
    commit("of-other", P(1), 3, OUTSIDE, 61),
    list_groups(),
    delete(OUTSIDE),
    *fetch_in_every_way(OUTSIDE),
    list_groups(),
    commit("of-other", P(1), 3, OUTSIDE, 62),
    list_groups(),
    *complete("of-outside", P(0), 6),
    *fetch_in_every_way(OUTSIDE),
    *complete("of-other", P(1), 3),
    *fetch_in_every_way(OUTSIDE),
    delete(OUTSIDE),
    # A group of pending offsets alone.
    commit("of-outside", P(0), 7, OUTSIDE, 70),
    describe(OUTSIDE),
    delete_offsets(OUTSIDE, TOPIC),
    fetch(OUTSIDE),
    *complete("of-outside", P(0), 7),
    list_groups(),
    fetch(OUTSIDE),
    delete(OUTSIDE),
]
"""Commits of several producers and of none; deletion of the offsets, of their topic and of the group."""

CONVERSIONS = [
    *start("of-mixed", MIXED),
    commit("of-mixed", P(0), 0, MIXED, 5),
    heartbeat(MIXED, "m1", 0, joins=True),  # a group of the consumer protocol takes the place of the empty one
    list_groups(),
    *fetch_in_every_way(MIXED),
    commit("of-mixed", P(0), 0, MIXED, 6, member="m1", generation_id=1),
    heartbeat(MIXED, "m1", -1),
    join(MIXED, version=9, group_instance_id="i"),  # and one of the classic protocol again
    sync(MIXED, 0, 1, group_instance_id="i"),
    list_groups(),
    *fetch_in_every_way(MIXED),
    commit("of-mixed", P(0), 0, MIXED, 7, member=0, generation_id=1),
    *complete("of-mixed", P(0), 0),
    *fetch_in_every_way(MIXED),
    leave(MIXED, ("", "i")),
    delete(MIXED),
]
"""Groups that get another type while they have pending offsets."""

INVALID = [
    *start("of-invalid", INVALID_FIELDS),
    *versions(lambda v: commit("", P(0), 0, INVALID_FIELDS, version=v), 0, 5),
    *versions(lambda v: commit("of-invalid", P(0), -1, INVALID_FIELDS, version=v), 0, 5),
    *versions(lambda v: commit("of-invalid", -1, -1, INVALID_FIELDS, version=v), 0, 5),
    *(commit("of-invalid", P(0), 0, INVALID_FIELDS, rows=[(TOPIC, [])], version=version) for version in (0, 3, 5)),
    *(
        commit("of-invalid", P(0), 0, INVALID_FIELDS, rows=rows, version=version)
        for version in (4, 5)
        for rows in (
            [("", [row()]), ("no topic", [row()]), ("..", [row()])],
            [("missing", []), (TOPIC, []), ("missing", [row(), row()])],
            [(TOPIC, [row(index=-1), row(index=3), row(index=1 << 30)])],
            [(TOPIC, [row(metadata=TOO_LONG)]), ("missing", [row()]), (OTHER_TOPIC, [])],
            [(TOPIC, [row(metadata=TOO_LONG), row(-1, 1, None), row(-7, 2, "", -9), row(8, 9)]),
             ("missing", [row(metadata=TOO_LONG)]),
             (OTHER_TOPIC, [row(1), row(2), row(1 << 62, 1, "\U0001f600" * 2048)])],
            [(TOPIC, [row(3), row(4, 9), row(5)]), (OTHER_TOPIC, [row(6)])],
            [(TOPIC, [row(metadata="\U0001f600" * 2049)])],
        )
    ),
    *fetch_in_every_way(INVALID_FIELDS),
    # While the transaction is open here, its coordinator is not asked.
    *(
        commit(name, producer, epoch, INVALID_FIELDS, version=version)
        for version in (0, 3, 4, 5)
        for name, producer, epoch in (
            ("", P(0), 0), ("unknown", P(0), 0), ("of-invalid", P(0), -1), ("of-invalid", P(0), 1),
            ("of-invalid", -5, 0), ("of-invalid", UNKNOWN_ID, 0),
        )
    ),
    *complete("of-invalid", P(0), 0),
    *fetch_in_every_way(INVALID_FIELDS),
    *(
        commit(name, producer, epoch, INVALID_FIELDS, version=version)
        for version in (0, 3, 4, 5)
        for name, producer, epoch in (
            ("", P(0), 0), ("unknown", P(0), 0), ("of-invalid", P(0), 0), ("of-invalid", P(0), 3), ("", P(0), 1),
            ("unknown", P(0), 1),
        )
    ),
    *(
        send(name, P(0), epoch, version=version)
        for version in (9, 11, 12)
        for name, epoch in (("", 1), ("unknown", 1), ("of-invalid", 0))
    ),
    send("of-invalid", P(0), 1),
    *complete("of-invalid", P(0), 1),
    *(
        send(name, P(0), epoch, version=version)
        for version in (9, 11, 12)
        for name, epoch in (("", 1), ("unknown", 1), ("of-invalid", 1), ("", 2), ("unknown", 2))
    ),
    delete(INVALID_FIELDS),
]  # fmt: skip
"""Fields that no client sends, and transactions that are not the producer's."""
