"""The requests of random sequences of groups: they are made from acts, and learn from the answers.

Names of topics and groups begin with the prefix of the sequence.
"""

from __future__ import annotations

import uuid
from typing import Any

from odradek.protocol.errors import ErrorCode, RemoteProtocolError
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
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
from odradek.protocol.stored_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_consumer_protocol,
    write_consumer_protocol,
)
from tests.interop.differential.random_playing import Act, Kind, Request, Side

TOPICS = ["t", "u"]
LONG = 600_000
"""Milliseconds; no rebalance and no session ends while a sequence is played."""


def _member_id(side: Side, act: Act) -> str:
    """The member id of the request: of the slot itself, of another slot, or a literal one."""
    given = act.fields.get("member", act.slot)
    return side.slot(given).member_id if isinstance(given, int) else str(given)


def _epoch(side: Side, act: Act) -> int:
    known = side.slot(act.slot)
    return int(act.fields.get("epoch", known.epoch + act.fields.get("epoch_by", 0)))


def _group(side: Side) -> str:
    return f"{side.prefix}-g"


def _names(side: Side, topics: list[str]) -> list[str]:
    return [f"{side.prefix}-{topic}" for topic in topics]


def _join(side: Side, act: Act) -> Request:
    fields, version = act.fields, act.fields["version"]
    owned = [TopicPartition(f"{side.prefix}-t", [0])] if fields.get("owns") and fields["format"] else []
    subscription = ConsumerProtocolSubscription(sorted(_names(side, fields["topics"])), owned_partitions=owned)
    metadata = b"\0\xff" if fields.get("malformed") else write_consumer_protocol(subscription, fields["format"])
    return JoinGroupRequest(
        _group(side),
        LONG,
        LONG,
        _member_id(side, act),
        fields.get("instance") if version >= 5 else None,
        fields.get("type", "consumer"),
        [JoinGroupRequestProtocol(name, metadata) for name in fields["protocols"]],
    ), version


def _learn_join(side: Side, act: Act, answer: Any) -> None:
    known = side.slot(act.slot)
    if answer.member_id:
        known.member_id = answer.member_id
    if not answer.error_code:
        known.epoch, known.protocol = answer.generation_id, answer.protocol_name
        known.members = [each.member_id for each in answer.members]
        known.consumer_instance = None


def _is_of_lost_request(answer: Any) -> bool:
    """Return whether the request waited until its member left or sent another: Kafka never answers (differences.md)."""
    return answer.error_code in {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID}


def _may_differ(side: Side, act: Act) -> bool:
    """Return whether the group may be downgraded by this static member, which differs from Kafka (differences.md)."""
    instances = {known.consumer_instance for known in side.known.values()} - {None}
    return act.fields.get("instance") in instances


def _sync(side: Side, act: Act) -> Request:
    known, version = side.slot(act.slot), act.fields["version"]
    rows = []
    for number, member_id in enumerate(sorted(known.members)):
        assignment = ConsumerProtocolAssignment([TopicPartition(f"{side.prefix}-t", [number])])
        rows.append(SyncGroupRequestAssignment(member_id, write_consumer_protocol(assignment, 1)))
    instance = act.fields.get("instance") if version >= 3 else None
    named = (act.fields.get("type"), act.fields.get("protocol")) if version >= 5 else (None, None)
    return SyncGroupRequest(_group(side), _epoch(side, act), _member_id(side, act), instance, *named, rows), version


def _assignment(data: bytes) -> Any:
    """The topics of an assignment: a broker that wrote it did so in any order."""
    try:
        found = read_consumer_protocol(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment()
    except RemoteProtocolError:
        return data
    return str(sorted((row.topic, sorted(row.partitions)) for row in found.assigned_partitions))


def _shown_sync(_: Side, answer: Any) -> Any:
    answer.assignment = _assignment(answer.assignment)
    return answer


def _shown_description(_: Side, answer: Any) -> Any:
    for group in answer.groups:
        for member in group.members:
            member.member_assignment = _assignment(member.member_assignment)
    return answer


def _heartbeat(side: Side, act: Act) -> Request:
    instance = act.fields.get("instance")
    return HeartbeatRequest(_group(side), _epoch(side, act), _member_id(side, act), instance), 4


def _leave(side: Side, act: Act) -> Request:
    if act.fields["version"] < 3:
        return LeaveGroupRequest(_group(side), _member_id(side, act)), act.fields["version"]
    rows = [
        MemberIdentity(side.slot(member).member_id if isinstance(member, int) else member, instance)
        for member, instance in act.fields["members"]
    ]
    return LeaveGroupRequest(_group(side), members=rows), act.fields["version"]


def _consumer(side: Side, act: Act) -> Request:
    fields, known = act.fields, side.slot(act.slot)
    epoch = _epoch(side, act)
    owned = None
    match fields.get("owned"):
        case "assigned":
            owned = [TopicPartitions(topic_id, numbers) for topic_id, numbers in known.assigned.items()]
        case "nothing":
            owned = []
        case "another":
            owned = [TopicPartitions(side.topic_id("t"), [0, 1, 2])]
    return ConsumerGroupHeartbeatRequest(
        _group(side),
        _member_id(side, act),
        epoch,
        fields.get("instance"),
        fields.get("rack"),
        LONG if fields.get("joins") else -1,
        None if fields.get("topics") is None else _names(side, fields["topics"]),
        None if fields.get("regex") is None else fields["regex"].replace("PREFIX", side.prefix),
        fields.get("assignor"),
        owned,
    ), 1


def _learn_consumer(side: Side, act: Act, answer: Any) -> None:
    known = side.slot(act.slot)
    if not answer.error_code:
        known.member_id, known.epoch = answer.member_id, answer.member_epoch
        known.consumer_instance = act.fields.get("instance") or known.consumer_instance
        if answer.assignment is not None:
            known.assigned = {row.topic_id: row.partitions for row in answer.assignment.topic_partitions}


def _commit(side: Side, act: Act) -> Request:
    fields, version = act.fields, act.fields["version"]
    rows = [OffsetCommitRequestPartition(index, 100 + act.number, 0, "m") for index in fields["partitions"]]
    topics = [OffsetCommitRequestTopic(name, partitions=rows) for name in _names(side, fields["topics"])]
    if version >= 10:
        topics = [OffsetCommitRequestTopic("", side.topic_id(topic), rows) for topic in fields["topics"]]
    instance = fields.get("instance") if version >= 7 else None
    return OffsetCommitRequest(_group(side), _epoch(side, act), _member_id(side, act), instance, topics=topics), version


def _fetch(side: Side, act: Act) -> Request:
    fields, version = act.fields, act.fields["version"]
    names = None if fields["topics"] is None else _names(side, fields["topics"])
    if version < 8:
        old = None if names is None else [OffsetFetchRequestTopic(name, [0, 1, 7]) for name in names]
        return OffsetFetchRequest(_group(side), old), version
    topics = None if names is None else [OffsetFetchRequestTopics(name, partition_indexes=[0, 1, 7]) for name in names]
    if names is not None and version >= 10:
        topics = [OffsetFetchRequestTopics("", side.topic_id(topic), [0, 1, 7]) for topic in fields["topics"]]
    group = OffsetFetchRequestGroup(_group(side), None, -1, topics)
    if version >= 9 and fields.get("as_member"):
        group.member_id, group.member_epoch = _member_id(side, act), _epoch(side, act)
    return OffsetFetchRequest(groups=[group]), version


def _delete_offsets(side: Side, act: Act) -> Request:
    rows = [
        OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in _names(side, act.fields["topics"])
    ]
    return OffsetDeleteRequest(_group(side), rows), 0


def _list(side: Side, act: Act) -> Request:
    return ListGroupsRequest([], []), 5


def _shown_list(side: Side, answer: Any) -> Any:
    return [row for row in answer.groups if row.group_id.startswith(f"{side.prefix}-")]


def _create(side: Side, act: Act) -> Request:
    topics = [CreatableTopic(name, act.fields["partitions"], 1) for name in _names(side, act.fields["topics"])]
    return CreateTopicsRequest(topics, 30_000), 7


def _grow(side: Side, act: Act) -> Request:
    [name] = _names(side, act.fields["topics"])
    return CreatePartitionsRequest([CreatePartitionsTopic(name, act.fields["partitions"], None)], 30_000), 3


def _delete(side: Side, act: Act) -> Request:
    return DeleteTopicsRequest(topic_names=_names(side, act.fields["topics"]), timeout_ms=30_000), 5


async def _topics_settled(side: Side) -> Any:
    """Return the topics and partitions, once the coordinator knows them, too.

    Kafka's controller answers before its broker has applied a change, and the coordinator is the last to do so.
    """
    names = _names(side, [*TOPICS, "x"])
    wanted = [MetadataRequestTopic(name=name) for name in names]
    answer = await side.ask(MetadataRequest(wanted, allow_auto_topic_creation=False), 12)
    side.note(answer)
    probe = f"probe-{uuid.uuid4()}"
    joined = await side.ask(
        ConsumerGroupHeartbeatRequest(probe, "m", 0, None, None, LONG, names, topic_partitions=[]), 1
    )
    assigned = {row.topic_id: len(row.partitions) for row in joined.assignment.topic_partitions}
    return [(topic.name, len(topic.partitions), assigned.get(topic.topic_id)) for topic in answer.topics]


async def _group_settled(side: Side) -> Any:
    """Return the description of the group, which shows whether regular expressions are resolved."""
    return await side.ask(ConsumerGroupDescribeRequest([_group(side)]), 1)


KINDS = {
    "join": Kind(_join, _learn_join, may_differ=_may_differ, is_only_here=_is_of_lost_request),
    "sync": Kind(_sync, shown=_shown_sync, is_only_here=_is_of_lost_request),
    "heartbeat": Kind(_heartbeat),
    "leave": Kind(_leave),
    "consumer": Kind(
        _consumer, _learn_consumer, settled=lambda act: _group_settled if act.fields.get("regex") else None
    ),
    "commit": Kind(_commit),
    "fetch": Kind(_fetch),
    "delete offsets": Kind(_delete_offsets),
    "describe": Kind(lambda side, act: (DescribeGroupsRequest([_group(side)]), 6), shown=_shown_description),
    "describe consumer": Kind(lambda side, act: (ConsumerGroupDescribeRequest([_group(side)]), 1)),
    "list": Kind(_list, shown=_shown_list),
    "delete group": Kind(lambda side, act: (DeleteGroupsRequest([_group(side)]), 2)),
    "create": Kind(_create, settled=lambda act: _topics_settled),
    "grow": Kind(_grow, settled=lambda act: _topics_settled),
    "delete": Kind(_delete, settled=lambda act: _topics_settled),
}
