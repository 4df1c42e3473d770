"""A member of a classic group, request by request, on its own connection."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.wire import Wire

SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
"""A consumer's, version 0: topic `t`."""


_numbers = itertools.count()


def new_group_id() -> str:
    """A new group id."""
    return f"group-{next(_numbers)}"


async def find_coordinator(wire: Wire, group_id: str) -> None:
    """Return when the group's coordinator is there: at once here, after some attempts on Apache Kafka."""
    while (await wire.ask(FindCoordinatorRequest(key=group_id), 3)).error_code:
        pass
    while (await wire.ask(_fetch_all(group_id), 8)).groups[0].error_code:
        pass


def _fetch_all(group_id: str) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id, topics=None)])


class GroupMember:
    """Send a request as a member; store its id and generation from the answers."""

    def __init__(self, wire: Wire, group_id: str, instance_id: str | None = None) -> None:
        self.wire = wire
        self.group_id = group_id
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1

    async def join(
        self, version: int = 5, protocols: Mapping[str, bytes] = {"range": SUBSCRIPTION}, **fields: Any
    ) -> JoinGroupResponse:
        """JoinGroup; once more, as clients do, if the id was refused as the first answer."""
        joined = await self.try_to_join(version, protocols, **fields)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            joined = await self.try_to_join(version, protocols, **fields)
        if joined.error_code == ErrorCode.NONE:
            self.member_id, self.generation_id = joined.member_id, joined.generation_id
        return joined

    async def try_to_join(
        self, version: int = 5, protocols: Mapping[str, bytes] = {"range": SUBSCRIPTION}, **fields: Any
    ) -> JoinGroupResponse:
        """One JoinGroup."""
        request = JoinGroupRequest(
            self.group_id,
            **{"session_timeout_ms": 30_000, "rebalance_timeout_ms": 5_000, "protocol_type": "consumer", **fields},
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocols=[JoinGroupRequestProtocol(name, metadata) for name, metadata in protocols.items()],
        )
        answer: JoinGroupResponse = await self.wire.ask(_without_new_fields(request, version), version)
        return answer

    async def sync(self, assignments: Mapping[str, bytes] = {}, version: int = 3, **fields: Any) -> SyncGroupResponse:
        rows = [SyncGroupRequestAssignment(member_id, assignment) for member_id, assignment in assignments.items()]
        request = SyncGroupRequest(
            self.group_id, self.generation_id, self.member_id, self.instance_id, assignments=rows, **fields
        )
        answer: SyncGroupResponse = await self.wire.ask(request, version)
        return answer

    async def become_only_member(self, version: int = 5, **fields: Any) -> JoinGroupResponse:
        """Join as the leader, and assign everything to itself."""
        joined = await self.join(version, **fields)
        assert joined.error_code == ErrorCode.NONE, joined
        assert (await self.sync({self.member_id: b"all"})).assignment == b"all"
        return joined

    async def heartbeat(self, version: int = 3) -> ErrorCode:
        request = HeartbeatRequest(self.group_id, self.generation_id, self.member_id, self.instance_id)
        return ErrorCode((await self.wire.ask(request, version)).error_code)

    async def until_rebalance(self) -> None:
        """Send heartbeats until one says that the group rebalances."""
        while await self.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
            pass

    async def leave(self) -> LeaveGroupResponse:
        members = [MemberIdentity(self.member_id, self.instance_id)]
        answer: LeaveGroupResponse = await self.wire.ask(LeaveGroupRequest(self.group_id, members=members), 4)
        return answer

    async def commit(
        self, topic: str, offset: int, version: int = 8, retention_time_ms: int = -1, **fields: Any
    ) -> ErrorCode:
        """Commit partition 0; `fields` are the partition's."""
        row = OffsetCommitRequestPartition(0, offset, **fields)
        request = OffsetCommitRequest(
            self.group_id,
            self.generation_id,
            self.member_id,
            self.instance_id,
            retention_time_ms,
            [OffsetCommitRequestTopic(topic, partitions=[row])],
        )
        answer: OffsetCommitResponse = await self.wire.ask(request, version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def committed(self, topic: str, version: int = 8) -> int:
        """The committed offset of partition 0."""
        topics = [OffsetFetchRequestTopics(topic, partition_indexes=[0])]
        group = await self.fetch(version, topics)
        return group.topics[0].partitions[0].committed_offset

    async def fetch(
        self, version: int = 8, topics: list[OffsetFetchRequestTopics] | None = None, **fields: Any
    ) -> OffsetFetchResponseGroup:
        """OffsetFetch of the group; all that it has committed if no topics are named."""
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group_id, topics=topics)], **fields)
        [group] = (await self.wire.ask(request, version)).groups
        found: OffsetFetchResponseGroup = group
        return found


def _without_new_fields(request: JoinGroupRequest, version: int) -> JoinGroupRequest:
    """Without the instance id where it cannot be said."""
    if version < 5:
        request.group_instance_id = None
    return request
