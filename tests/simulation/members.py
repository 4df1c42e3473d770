"""The members of a group of a run, of the classic or the consumer protocol: they join, own partitions, and commit.

```
join ─► assignment ─► fetch the committed offsets ─► commit the next ones, again and again ─► the group changes ─► join
                                                       └─ outcome unknown, or a whim ─► a new member, with a new id
```

A member commits again under its id only after an answer that decides about its last commit. So the offset of a
partition never falls: a commit that arrives late is one above all before, or is refused because its member is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
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
    OffsetFetchResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.simulation.client import Client, only
from tests.simulation.cluster import SESSION_MS
from tests.simulation.owned_group import OwnedGroup

_REBALANCE_MS: Final = 1500  # below the time limit of a client's request, which JoinGroup takes until all have joined
_REBALANCES: Final = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.STALE_MEMBER_EPOCH)
_GONE: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH)
_WHIM: Final = 0.04
_LEAVING: Final = -1


class GroupMember:
    """One place in a group, taken by one member after the other. `topic` is (name, id, number of partitions)."""

    def __init__(
        self, client: Client, group: OwnedGroup, topic: tuple[str, bytes, int], is_over: Callable[[], bool]
    ) -> None:
        self.client = client
        self.group = group
        self.topic, self.topic_id, self.partitions = topic
        self.is_over = is_over
        self.member_id = ""
        self.epoch = 0  # the generation, or the member epoch
        self.owned: set[int] = set()
        self.offsets: dict[int, int] = {}  # of owned partitions, the last one that was committed or fetched
        self.coordinator: int | None = None

    async def run(self) -> None:
        """Take part until the run is over."""
        raise NotImplementedError

    def reset(self) -> None:
        """Become another member."""
        self.member_id, self.epoch = "", 0
        self.owned.clear()
        self.offsets.clear()

    async def find_coordinator(self) -> int:
        """Return the node id of the coordinator, whatever it takes."""
        while self.coordinator is None:
            request = FindCoordinatorRequest(coordinator_keys=[self.group.name])
            answer = await self.client.ask(self.client.any_node(), request, FindCoordinatorResponse)
            row = None if answer is None else only(answer.coordinators)
            if row is None or row.error_code:
                await self.client.pause(0.3)
            else:
                self.coordinator = int(row.node_id)
        return self.coordinator

    def assigned(self, partitions: Iterable[int]) -> None:
        """Own these partitions, and no others, in the present epoch."""
        self.owned = set(partitions)
        self.group.assigned(self.member_id, self.epoch, self.owned)
        self.offsets = {index: offset for index, offset in self.offsets.items() if index in self.owned}

    async def fetch_offsets(self, member_epoch: int = -1) -> bool:
        """Fetch the committed offsets of partitions that are owned since now; return False to join again."""
        wanted = sorted(self.owned - self.offsets.keys())
        if not wanted:
            return True
        least = self.group.least(self.epoch)
        topics = [OffsetFetchRequestTopics(self.topic, self.topic_id, wanted)]
        member_id = None if member_epoch < 0 else self.member_id
        group = OffsetFetchRequestGroup(self.group.name, member_id, member_epoch, topics)
        answer = await self.client.ask(
            await self.find_coordinator(), OffsetFetchRequest(groups=[group]), OffsetFetchResponse
        )
        row = None if answer is None else only(answer.groups)
        if row is None or row.error_code or any(each.error_code for each in only(row.topics).partitions):
            self.coordinator = None
            return False
        for each in only(row.topics).partitions:
            self.group.fetched(each.partition_index, self.epoch, each.committed_offset, least)
            self.offsets[each.partition_index] = each.committed_offset
        return True

    async def commit(self) -> ErrorCode | None:
        """Commit the next offset of each owned partition; return the error, None if the outcome is unknown."""
        if not self.offsets:
            return ErrorCode.NONE
        rows = [OffsetCommitRequestPartition(index, offset + 1) for index, offset in sorted(self.offsets.items())]
        request = OffsetCommitRequest(
            self.group.name,
            self.epoch,
            self.member_id,
            topics=[OffsetCommitRequestTopic(self.topic, self.topic_id, rows)],
        )
        answer = await self.client.ask(await self.find_coordinator(), request, OffsetCommitResponse)
        if answer is None:
            return None
        errors = {ErrorCode(row.error_code) for row in only(answer.topics).partitions}
        if errors == {ErrorCode.NONE}:
            for index in self.offsets:
                self.offsets[index] += 1
                self.group.committed(index, self.epoch, self.offsets[index])
        return only(list(errors)) if len(errors) == 1 else None

    async def work(self) -> bool:
        """Commit once; return False if this member ends, or must join again."""
        if self.client.draw.random() < _WHIM:
            if self.client.draw.random() < 0.5:
                await self.leave()
            self.reset()
            return False
        error = await self.commit()
        if error in _REBALANCES:
            return False
        if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            await self.client.pause(0.3)
        elif error != ErrorCode.NONE:  # it may have been written, even if there was an answer
            self.coordinator = None
            self.reset()
            return False
        await self.client.pause(0.8)
        return True

    async def leave(self) -> None:
        """Leave the group, and do not wait for more than one attempt."""
        raise NotImplementedError


class ClassicMember(GroupMember):
    """A member of the classic protocol; the leader assigns the partitions to the members in turn."""

    async def run(self) -> None:
        while not self.is_over():
            if not await self._join():
                await self.client.pause(0.3)
                continue
            if await self.fetch_offsets():
                while not self.is_over() and await self.work() and await self._heartbeat():
                    pass

    async def _join(self) -> bool:
        """Join and receive an assignment; return False to try again."""
        request = JoinGroupRequest(
            self.group.name,
            SESSION_MS,
            _REBALANCE_MS,
            self.member_id,
            protocol_type="simulation",
            protocols=[JoinGroupRequestProtocol("in turn", b"")],
        )
        joined = await self.client.ask(await self.find_coordinator(), request, JoinGroupResponse)
        if joined is None:
            self.coordinator = None
            return False
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return await self._join()
        if joined.error_code:
            self._refused(joined.error_code)
            return False
        self.member_id, self.epoch = joined.member_id, joined.generation_id
        plan = self._plan([each.member_id for each in joined.members]) if joined.leader == joined.member_id else []
        sync = SyncGroupRequest(
            self.group.name,
            self.epoch,
            self.member_id,
            protocol_type="simulation",
            protocol_name="in turn",
            assignments=plan,
        )
        synced = await self.client.ask(await self.find_coordinator(), sync, SyncGroupResponse)
        if synced is None:
            self.coordinator = None
            return False
        if synced.error_code:
            self._refused(synced.error_code)
            return False
        self.offsets.clear()
        self.assigned(bytes(synced.assignment))
        return True

    def _plan(self, members: Sequence[str]) -> list[SyncGroupRequestAssignment]:
        return [
            SyncGroupRequestAssignment(member, bytes(range(position, self.partitions, len(members))))
            for position, member in enumerate(sorted(members))
        ]

    async def _heartbeat(self) -> bool:
        """Return whether this is still the member of the group that it was."""
        request = HeartbeatRequest(self.group.name, self.epoch, self.member_id)
        answer = await self.client.ask(await self.find_coordinator(), request, HeartbeatResponse)
        if answer is None:
            self.coordinator = None
        elif answer.error_code:
            self._refused(answer.error_code)
        return answer is None or not answer.error_code

    def _refused(self, error: int) -> None:
        if error in _GONE:
            self.reset()
        elif error not in _REBALANCES:
            self.coordinator = None

    async def leave(self) -> None:
        request = LeaveGroupRequest(self.group.name, members=[MemberIdentity(self.member_id)])
        await self.client.ask(await self.find_coordinator(), request, LeaveGroupResponse)


class ConsumerMember(GroupMember):
    """A member of the consumer protocol (KIP-848). Every heartbeat has all fields, as after an error."""

    async def run(self) -> None:
        members = 0
        while not self.is_over():
            if not self.member_id:
                members += 1
                self.member_id = f"{self.client.name}-{members}"
            if not await self._heartbeat() or not await self.fetch_offsets(self.epoch):
                await self.client.pause(0.3)
                continue
            await self.work()

    async def _heartbeat(self) -> bool:
        """Confirm what this member owns, and take what it is assigned; return whether it has been answered."""
        request = self._request(self.epoch)
        answer = await self.client.ask(await self.find_coordinator(), request, ConsumerGroupHeartbeatResponse)
        if answer is None or answer.error_code:
            if answer is not None and answer.error_code in _GONE:
                self.reset()
            else:
                self.coordinator = None
            return False
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned(index for each in answer.assignment.topic_partitions for index in each.partitions)
        else:
            self.assigned(self.owned)
        return True

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            self.group.name,
            self.member_id,
            epoch,
            rebalance_timeout_ms=SESSION_MS,
            subscribed_topic_names=[self.topic],
            topic_partitions=[TopicPartitions(self.topic_id, sorted(self.owned))] if self.owned else [],
        )

    async def leave(self) -> None:
        await self.client.ask(await self.find_coordinator(), self._request(_LEAVING), ConsumerGroupHeartbeatResponse)
