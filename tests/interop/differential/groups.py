"""Groups of the classic protocol: members join, sync, send heartbeats, commit and leave; admins describe and delete.

All requests use one connection, so at most one member of a group waits for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.handlers.group_members import SUBSCRIPTION
from tests.interop.differential.partitions import create, offsets
from tests.interop.differential.playing import Seen, Step

GROUP, STATIC, OUTSIDE, VERSIONS = SCRIPTED = "script", "script-static", "script-outside", "script-versions"
Id = int | str
"""A member: the index of its id among the ids that the server assigned, or a literal id."""


def _id(seen: Seen, member: Id) -> str:
    return seen.member_ids[member] if isinstance(member, int) else member


def _asked(request: Callable[[Seen], Any], version: int) -> Step:
    return Step(request, version)


def join(group: str, member: Id = "", version: int = 5, protocols: str = "range", **fields: Any) -> Step:
    settings = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer", **fields}
    named = [JoinGroupRequestProtocol(name, SUBSCRIPTION) for name in protocols.split()]
    return _asked(
        lambda seen: JoinGroupRequest(group, member_id=_id(seen, member), protocols=named, **settings), version
    )


def sync(group: str, member: Id, generation: int, version: int = 3, **fields: Any) -> Step:
    def request(seen: Seen) -> SyncGroupRequest:
        assignments = [SyncGroupRequestAssignment(_id(seen, member), b"all")]
        return SyncGroupRequest(group, generation, _id(seen, member), assignments=assignments, **fields)

    return _asked(request, version)


def heartbeat(group: str, member: Id, generation: int, version: int = 3, **fields: Any) -> Step:
    return _asked(lambda seen: HeartbeatRequest(group, generation, _id(seen, member), **fields), version)


def leave(group: str, *members: tuple[Id, str | None], version: int = 5) -> Step:
    def request(seen: Seen) -> LeaveGroupRequest:
        rows = [MemberIdentity(_id(seen, member), instance) for member, instance in members]
        if version < 3:
            return LeaveGroupRequest(group, rows[0].member_id)
        return LeaveGroupRequest(group, members=rows)

    return _asked(request, version)


def commit(group: str, member: Id, generation: int, *topics: str, version: int = 8, **partition: Any) -> Step:
    rows = [OffsetCommitRequestPartition(index, 5 + index, **partition) for index in range(2)]
    named = [OffsetCommitRequestTopic(topic, partitions=rows) for topic in topics]
    return _asked(lambda seen: OffsetCommitRequest(group, generation, _id(seen, member), topics=named), version)


def commit_by_id(group: str, topic: str) -> Step:
    def request(seen: Seen) -> OffsetCommitRequest:
        topic_id = seen.topic_ids.get(topic, bytes(range(16)))
        rows = [OffsetCommitRequestPartition(0, 9)]
        return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic_id=topic_id, partitions=rows)])

    return _asked(request, 10)


def fetch(group: str, topics: tuple[str, ...] | None, version: int) -> Step:
    if version < 8:
        old = None if topics is None else [OffsetFetchRequestTopic(topic, [0, 1, 7]) for topic in topics]
        return Step(OffsetFetchRequest(group, old), version)
    named = None if topics is None else [OffsetFetchRequestTopics(topic, partition_indexes=[0, 7]) for topic in topics]
    groups = [OffsetFetchRequestGroup(each, topics=named) for each in (group, "nobody")]
    return Step(OffsetFetchRequest(groups=groups, require_stable=version == 9), version)


def fetch_by_id(group: str, topic: str | None) -> Step:
    def request(seen: Seen) -> OffsetFetchRequest:
        if topic is None:
            return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None)])
        topic_id = seen.topic_ids.get(topic, bytes(range(16)))
        wanted = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0, 7])]
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=wanted)])

    return _asked(request, 10)


def delete_offsets(group: str, *topics: str) -> Step:
    rows = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)]) for topic in topics]
    return Step(OffsetDeleteRequest(group, rows), 0)


def list_groups(version: int, states: str = "", types: str = "") -> Step:
    """List the groups of this script; filters are words."""
    request = ListGroupsRequest(states.split(), types.split())
    return Step(request, version, counts=lambda answer: [row for row in answer.groups if row.group_id in SCRIPTED])


def describe(*groups: str, version: int = 6, operations: bool = False) -> Step:
    return Step(DescribeGroupsRequest(list(groups), operations), version)


def describe_consumer(*groups: str, version: int) -> Step:
    return Step(ConsumerGroupDescribeRequest(list(groups)), version)


def delete(*groups: str) -> Step:
    return Step(DeleteGroupsRequest(list(groups)), 2)


def find(version: int, key: str = GROUP, key_type: int = 0) -> Step:
    if version < 4:
        return Step(FindCoordinatorRequest(key, key_type), version, reads=True)
    return Step(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key, "other"]), version, reads=True)


def lives(version: int) -> list[Step]:
    """A single member that uses one version of JoinGroup, and matching versions of the other requests.

    It makes three generations: it joins, joins again, and leaves an empty group.
    """
    member, generation = version, 3 * version + 1
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    return [
        join(VERSIONS, version=version),
        *([join(VERSIONS, member, version)] if version >= 4 else []),  # with the id of the first response
        sync(VERSIONS, member, generation, min(version, 5), **named),
        heartbeat(VERSIONS, member, generation, min(version, 4)),
        join(VERSIONS, member, version, "range roundrobin"),
        sync(VERSIONS, member, generation + 1, min(version, 5), **named),
        describe(VERSIONS, version=min(version, 6)),
        leave(VERSIONS, (member, None), version=min(version, 5)),
    ]


MEMBERS = [
    create("script-t", 2),
    create("script-u", 2),
    offsets("script-t", 2, -1),
    offsets("script-u", 2, -1),
    *(find(version, key) for key in (GROUP, "") for version in range(7)),
    find(3, key_type=7),
    find(6, key_type=7),
    Step(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)]), 8, reads=True),
    join(""),
    join(GROUP, session_timeout_ms=10),
    join(GROUP, session_timeout_ms=10_000_000, version=9),
    join(GROUP, "stranger"),
    join(GROUP, "stranger", version=9),
    sync(GROUP, "stranger", 1),
    heartbeat(GROUP, "stranger", 1),
    heartbeat("", "stranger", 1),
    leave(GROUP, ("stranger", None)),
    leave(GROUP, ("stranger", None), version=1),
    join(GROUP, protocols=""),
    join(GROUP, protocol_type=""),
    describe(GROUP),
    join(GROUP),  # member 0 gets its id
    describe(GROUP, version=5),
    join(GROUP, 0, version=9, protocols="range roundrobin"),
    heartbeat(GROUP, 0, 1),
    heartbeat(GROUP, 0, 0, version=0),
    commit(GROUP, 0, 1, "script-t"),
    describe(GROUP),
    sync(GROUP, 0, 2),
    sync(GROUP, 0, 1, version=5),
    sync(GROUP, 0, 1, version=5, protocol_type="consumer", protocol_name="sticky"),
    sync(GROUP, 0, 1, version=5, protocol_type="connect", protocol_name="range"),
    sync(GROUP, 0, 1, version=5, protocol_type="consumer", protocol_name="range"),
    sync(GROUP, 0, 1, version=0),
    *(list_groups(version) for version in range(6)),
    *(list_groups(4, states) for states in ("Stable", "stable Empty", "Empty", "NoSuchState", "Dead")),
    *(list_groups(5, "", types) for types in ("classic", "Classic consumer", "consumer", "nosuchtype", "share")),
    list_groups(5, "Stable", "classic"),
    list_groups(5, "Empty", "classic"),
    *(describe(GROUP, "nobody", version=version) for version in range(7)),
    describe(GROUP, operations=True),
    *(describe_consumer(GROUP, "nobody", "", version=version) for version in range(2)),
    join(GROUP, protocols="sticky"),
    join(GROUP, protocol_type="connect"),
    *(heartbeat(GROUP, 0, 1, version=version) for version in range(5)),
    *(commit(GROUP, 0, 1, "script-t", "missing", version=version) for version in range(2, 10)),
    commit(GROUP, 0, 0, "script-t"),
    commit(GROUP, "stranger", 1, "script-t"),
    commit(GROUP, "", -1, "script-t"),
    commit(GROUP, 0, 1, "script-t", committed_metadata="x" * 5000),
    commit(GROUP, 0, 1, "script-u", committed_metadata="note", committed_leader_epoch=3),
    delete_offsets(GROUP, "script-t", "script-u", "missing"),
    delete_offsets("nobody", "script-t"),
    delete(GROUP, "nobody"),
    join(GROUP, 0, version=5, protocols="range roundrobin"),  # the leader: another generation
    commit(GROUP, 0, 1, "script-t"),
    sync(GROUP, 0, 2),
    leave(GROUP, (0, None), ("stranger", None)),
    describe(GROUP),
    heartbeat(GROUP, 0, 2),
    commit(GROUP, 0, 2, "script-t"),
    delete(GROUP, ""),
    describe(GROUP),
    fetch(GROUP, None, 8),
    list_groups(5),
]

JOINING = [
    Step(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(VERSIONS, topics=None)]), 8, reads=True),
    *(step for version in range(10) for step in lives(version)),
    describe(VERSIONS),
    delete(VERSIONS),
]

STATIC_MEMBERS = [
    Step(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(STATIC, topics=None)]), 8, reads=True),
    join(STATIC, version=9, group_instance_id="i"),
    sync(STATIC, 0, 1, group_instance_id="i"),
    heartbeat(STATIC, 0, 1, group_instance_id="i"),
    heartbeat(STATIC, 0, 1, group_instance_id="another"),
    join(STATIC, version=9, group_instance_id="i"),  # it comes back, and leads
    heartbeat(STATIC, 0, 1, group_instance_id="i"),
    sync(STATIC, 0, 1, group_instance_id="i"),
    sync(STATIC, 1, 1, group_instance_id="i"),
    describe(STATIC),
    join(STATIC, version=6, group_instance_id="i"),  # again, with a version whose response must name another leader
    leave(STATIC, (0, "i")),
    leave(STATIC, ("", "nobody")),
    leave(STATIC, ("", "i")),
    join(STATIC),  # gets a member id, which is then not a static member's
    join(STATIC, 3, group_instance_id="i"),
    leave(STATIC, (3, None)),
    describe(STATIC),
    delete(STATIC),
]

OUTSIDERS = [
    create("script-o", 2),
    offsets("script-o", 2, -1),
    Step(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(OUTSIDE, topics=None)]), 8, reads=True),
    commit(OUTSIDE, "x", 4, "script-o", version=8),
    commit(OUTSIDE, "x", 4, "script-o", version=9),
    commit(OUTSIDE, "", -1, "missing"),
    commit(OUTSIDE, "", -1),
    describe(OUTSIDE),
    commit(OUTSIDE, "", -1, "script-o", "missing", committed_leader_epoch=2, committed_metadata="m"),
    describe(OUTSIDE, version=5),
    *(fetch(OUTSIDE, ("script-o", "missing"), version) for version in range(1, 10)),
    *(fetch(OUTSIDE, None, version) for version in range(2, 10)),
    commit_by_id(OUTSIDE, "script-o"),
    commit_by_id(OUTSIDE, "missing"),
    fetch_by_id(OUTSIDE, "script-o"),
    fetch_by_id(OUTSIDE, "missing"),
    fetch_by_id(OUTSIDE, None),
    delete_offsets(OUTSIDE, "script-o", "missing"),
    fetch(OUTSIDE, None, 8),
    commit("", "", -1, "script-o"),
    fetch("", None, 8),
    describe(""),
    delete("", OUTSIDE),
    fetch(OUTSIDE, ("script-o",), 8),
]
