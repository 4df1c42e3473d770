"""The committed offsets of groups: read, set and delete them, and the lag of a group (KIP-496, KIP-709).

The requests go to the coordinator. Offsets can be set only in a group without members, and deleted only for topics that
no member subscribes to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from odradek.client.admin.arguments import OffsetSpec
from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.groups import describe_groups, group_error
from odradek.client.admin.offsets import list_offsets
from odradek.client.admin.results import PartitionLag, Results
from odradek.client.errors import BrokerError, ClientError, broker_error
from odradek.client.network.connection import Connection
from odradek.client.record import CommittedOffset, TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.protocol.messages.offset_fetch import (
    FIRST_VERSION_WITH_SEVERAL_GROUPS,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

Committed = Results[TopicPartition, CommittedOffset | None]

_OFFSET_COMMIT_KEY, _OFFSET_FETCH_KEY = 8, 9
_LAST_BY_NAME = 9  # of both: later versions name topics by id
_OUTSIDE = -1  # the generation in a commit from outside of the group
_HAS_MEMBERS = "The group has members, and only they can commit: stop them first"


async def list_group_offsets(
    calls: Calls,
    groups: Mapping[str, Iterable[TopicPartition] | None],
    *,
    require_stable: bool,
    timeout_ms: int | None,
) -> Results[str, Committed]:
    tried = "read committed offsets"
    wanted = {group: None if partitions is None else list(partitions) for group, partitions in groups.items()}

    async def call(connection: Connection, requested: Sequence[str]) -> Outcomes[str, Committed]:
        request = OffsetFetchRequest(require_stable=require_stable)
        for group in requested:
            request.groups.append(OffsetFetchRequestGroup(group, topics=_by_topic(wanted[group])))
        version = connection.versions.highest(_OFFSET_FETCH_KEY, _LAST_BY_NAME, FIRST_VERSION_WITH_SEVERAL_GROUPS)
        response = await connection.send(request, OffsetFetchResponse, version=version)
        return {
            group.group_id: group_error(group.error_code, tried, group.group_id, connection)
            if group.error_code
            else _committed(group, tried, connection)
            for group in response.groups
        }

    async def attempt(left: Sequence[str]) -> Outcomes[str, Committed]:
        return await calls.at_brokers(await calls.coordinators(tried, left), call)

    return await calls.for_each(tried, wanted, attempt, timeout_ms)


async def alter_group_offsets(
    calls: Calls, group: str, offsets: Mapping[TopicPartition, CommittedOffset], *, timeout_ms: int | None
) -> Results[TopicPartition, None]:
    tried = f"commit offsets of group {group}"

    async def call(connection: Connection, partitions: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for partition in partitions:
            at = offsets[partition]
            topic = topics.setdefault(partition.topic, OffsetCommitRequestTopic(partition.topic, partitions=[]))
            topic.partitions.append(
                OffsetCommitRequestPartition(partition.partition, at.offset, at.leader_epoch, at.metadata)
            )
        request = OffsetCommitRequest(group, _OUTSIDE, topics=list(topics.values()))
        version = connection.versions.highest(_OFFSET_COMMIT_KEY, _LAST_BY_NAME)
        response = await connection.send(request, OffsetCommitResponse, version=version)
        return {
            TopicPartition(topic.name, row.partition_index): _partition_error(
                row.error_code,
                tried,
                topic.name,
                row.partition_index,
                connection,
                cure=_HAS_MEMBERS if row.error_code == ErrorCode.UNKNOWN_MEMBER_ID else None,
            )
            for topic in response.topics
            for row in topic.partitions
        }

    return await _of_one_group(calls, tried, group, offsets, call, timeout_ms)


async def delete_group_offsets(
    calls: Calls, group: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None
) -> Results[TopicPartition, None]:
    tried = f"delete offsets of group {group}"

    async def call(connection: Connection, requested: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for name, index in requested:
            topic = topics.setdefault(name, OffsetDeleteRequestTopic(name, []))
            topic.partitions.append(OffsetDeleteRequestPartition(index))
        response = await connection.send(OffsetDeleteRequest(group, list(topics.values())), OffsetDeleteResponse)
        if response.error_code:
            raise broker_error(response.error_code, tried, broker=connection.name)
        return {
            TopicPartition(topic.name, row.partition_index): _partition_error(
                row.error_code, tried, topic.name, row.partition_index, connection
            )
            for topic in response.topics
            for row in topic.partitions
        }

    return await _of_one_group(calls, tried, group, partitions, call, timeout_ms)


async def group_lag(calls: Calls, group: str, *, timeout_ms: int | None) -> Results[TopicPartition, PartitionLag]:
    offsets = (await list_group_offsets(calls, {group: None}, require_stable=False, timeout_ms=timeout_ms)).value(group)
    described = (await describe_groups(calls, [group], timeout_ms=timeout_ms)).value(group)
    owned = {partition for member in described.members for partition in member.assignment}
    times = dict.fromkeys(sorted({*offsets, *owned}), int(OffsetSpec.LATEST))
    ends = await list_offsets(calls, times, read_committed=False, timeout_ms=timeout_ms)
    lags: Results[TopicPartition, PartitionLag] = Results()
    for partition, end in ends.items():
        committed = offsets.get(partition)
        if isinstance(committed, ClientError):
            lags[partition] = committed
        elif isinstance(end, ClientError):
            lags[partition] = end
        else:
            lags[partition] = PartitionLag(committed.offset if committed else None, end.offset)
    return lags


async def _of_one_group(
    calls: Calls,
    tried: str,
    group: str,
    partitions: Iterable[TopicPartition],
    call: Callable[[Connection, Sequence[TopicPartition]], Awaitable[Outcomes[TopicPartition, None]]],
    timeout_ms: int | None,
) -> Results[TopicPartition, None]:
    async def attempt(left: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
        target = (await calls.coordinators(tried, [group]))[group]
        return await calls.at_brokers(dict.fromkeys(left, target), call)

    return await calls.for_each(tried, partitions, attempt, timeout_ms)


def _by_topic(partitions: Sequence[TopicPartition] | None) -> list[OffsetFetchRequestTopics] | None:
    if partitions is None:
        return None
    topics: dict[str, OffsetFetchRequestTopics] = {}
    for name, index in partitions:
        topics.setdefault(name, OffsetFetchRequestTopics(name, partition_indexes=[])).partition_indexes.append(index)
    return list(topics.values())


def _committed(group: OffsetFetchResponseGroup, tried: str, connection: Connection) -> Committed:
    committed: Committed = Results()
    for topic in group.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            committed[partition] = None
            if row.error_code:
                committed[partition] = broker_error(
                    row.error_code,
                    f"{tried} of group {group.group_id}",
                    broker=connection.name,
                    topic=topic.name,
                    partition=row.partition_index,
                )
            elif row.committed_offset >= 0:
                committed[partition] = CommittedOffset(
                    row.committed_offset, row.committed_leader_epoch, row.metadata or ""
                )
    return committed


def _partition_error(
    code: int, tried: str, topic: str, partition: int, connection: Connection, *, cure: str | None = None
) -> BrokerError | None:
    if not code:
        return None
    return broker_error(code, tried, cure=cure, broker=connection.name, topic=topic, partition=partition)
