"""A scripted sequence of requests of groups of the consumer protocol, and their results as lines.

`perform` runs it against any broker. What differs from run to run is named or left out: topic ids by their topics,
member ids that the broker chose, times. `recorded/consumer-groups.txt` is what Apache Kafka 4.3.1 answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.handlers.group_members import find_coordinator
from tests.wire import Wire

SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x06cg-two\xff\xff\xff\xff\x00\x00\x00\x00"
"""Of a classic consumer, version 1: `cg-two`, and no partitions owned, as every eager one says."""

_ASSIGNMENT_INTERVAL_SECONDS = 1.05
"""A group gets a new target once a second at most; the one wait is for that."""


class Script:
    """The requests so far, as lines."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._topics: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        self.lines: list[str] = []

    async def create(self, topic: str, partitions: int) -> None:
        request = CreateTopicsRequest([CreatableTopic(topic, partitions, 1)], timeout_ms=30_000)
        (created,) = (await self._wire.ask(request, 7)).topics
        self._topics[created.topic_id] = topic
        self._ids[topic] = created.topic_id

    def say(self, line: str) -> None:
        self.lines.append(line)

    async def beat(
        self,
        group: str,
        member: str,
        epoch: int,
        owns: Mapping[str, list[int]] | None = None,
        version: int = 1,
        **fields: Any,
    ) -> Any:
        line = f"{group} {member or '(no member)'} {epoch}"
        if owns is not None:
            fields["topic_partitions"] = [TopicPartitions(self._ids[topic], owns[topic]) for topic in owns]
            line += f" owns {dict(owns)}"
        line += "".join(f" {name}={value}" for name, value in fields.items() if name != "topic_partitions")
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)
        response = await self._wire.ask(request, version)
        answer = f"{ErrorCode(response.error_code).name} {response.error_message}"
        if not response.error_code:
            answer = f"epoch {response.member_epoch}, every {response.heartbeat_interval_ms} ms"
            if response.assignment is not None:
                answer += f", {self._partitions(response.assignment.topic_partitions)}"
        self.say(f"heartbeat {line}: {answer}")
        return response

    async def join(self, group: str, member: str, topics: list[str], **fields: Any) -> None:
        await self.beat(group, member, 0, {}, rebalance_timeout_ms=60_000, subscribed_topic_names=topics, **fields)

    async def describe(self, *groups: str) -> None:
        response = await self._wire.ask(ConsumerGroupDescribeRequest(list(groups)), 1)
        for group in sorted(response.groups, key=lambda each: each.group_id):
            self.say(
                f"describe {group.group_id}: {ErrorCode(group.error_code).name} {group.error_message} "
                f"{group.group_state} epoch {group.group_epoch} target {group.assignment_epoch} {group.assignor_name}"
            )
            for member in sorted(group.members, key=lambda each: each.member_id):
                self.say(
                    f"  {member.member_id} {member.instance_id} {member.rack_id} epoch {member.member_epoch} "
                    f"{member.client_id} {member.client_host} {sorted(member.subscribed_topic_names)} "
                    f"{member.subscribed_topic_regex!r} type {member.member_type} "
                    f"has {self._partitions(member.assignment.topic_partitions)} "
                    f"target {self._partitions(member.target_assignment.topic_partitions)}"
                )

    async def commit(self, group: str, member: str, epoch: int, topic: str, partition: int, version: int = 9) -> None:
        row = OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(partition, 7)])
        request = OffsetCommitRequest(group, epoch, member, topics=[row])
        response = await self._wire.ask(request, version)
        code = response.topics[0].partitions[0].error_code
        self.say(f"commit v{version} {group} {member} {epoch} {topic}-{partition}: {ErrorCode(code).name}")

    async def fetch(self, group: str, member: str | None, epoch: int, topic: str, partition: int) -> None:
        wanted = OffsetFetchRequestGroup(
            group, member, epoch, [OffsetFetchRequestTopics(topic, partition_indexes=[partition])]
        )
        response = (await self._wire.ask(OffsetFetchRequest(groups=[wanted]), 9)).groups[0]
        found = [each.committed_offset for row in response.topics for each in row.partitions]
        self.say(f"fetch {group} {member} {epoch} {topic}-{partition}: {ErrorCode(response.error_code).name} {found}")

    async def list(self, *groups: str, **filters: list[str]) -> None:
        response = await self._wire.ask(ListGroupsRequest(**filters), 5)
        for row in sorted(response.groups, key=lambda each: each.group_id):
            if row.group_id in groups:
                self.say(f"list {filters}: {row.group_id} {row.protocol_type} {row.group_state} {row.group_type}")

    def _partitions(self, rows: list[Any]) -> str:
        return str(dict(sorted((self._topics[row.topic_id], sorted(row.partitions)) for row in rows)))


async def perform(wire: Wire) -> list[str]:
    """Return the lines of the whole script, performed on a broker that has not seen it."""
    script = Script(wire)
    await script.create("cg-one", 1)
    await script.create("cg-two", 4)
    for group in ("cg-a", "cg-b", "cg-c", "cg-d"):
        await find_coordinator(wire, group)
    await _form(script)
    await _two_members(script)
    await _offsets(script)
    await _static_members(script)
    await _expressions(script, wire)
    await _both_protocols(script, wire)
    await _end(script, wire)
    return script.lines


async def _form(script: Script) -> None:
    script.say("# What is refused for its form")
    full: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["cg-one"]}
    await script.beat("cg-a", "", 0, {}, **full)
    await script.beat("cg-a", " ", 0, {}, **full)
    await script.beat("", "m1", 0, {}, **full)
    await script.beat("cg-a", "m1", 0, {}, instance_id="", **full)
    await script.beat("cg-a", "m1", 0, {}, rack_id="", **full)
    await script.beat("cg-a", "m1", 0, {}, subscribed_topic_names=["cg-one"])
    await script.beat("cg-a", "m1", 0, None, **full)
    await script.beat("cg-a", "m1", 0, {"cg-one": [0]}, **full)
    await script.beat("cg-a", "m1", 0, {}, rebalance_timeout_ms=1000)
    await script.beat("cg-a", "m1", -2)
    await script.beat("cg-a", "m1", -3)
    await script.beat("cg-a", "m1", 0, {}, server_assignor="sticky", **full)
    await script.beat("cg-a", "m1", 1)
    await script.beat("cg-a", "m1", -1)
    await script.describe("cg-a")


async def _two_members(script: Script) -> None:
    script.say("# Two members share")
    await script.join("cg-a", "m1", ["cg-two"])
    await script.beat("cg-a", "m1", 2)
    await script.beat("cg-a", "m1", 2, {"cg-two": [0, 1, 2, 3]})
    await script.join("cg-a", "m2", ["cg-two"])
    await script.describe("cg-a")
    await asyncio.sleep(_ASSIGNMENT_INTERVAL_SECONDS)
    await script.beat("cg-a", "m1", 2)
    await script.describe("cg-a")
    await script.beat("cg-a", "m2", 2)
    await script.beat("cg-a", "m1", 2, {"cg-two": [0, 1, 2, 3]})
    owned = {"cg-two": [0, 1]}
    await script.beat("cg-a", "m1", 2, owned)
    await script.beat("cg-a", "m2", 3)
    await script.describe("cg-a")
    script.say("# Epochs that are not the member's")
    await script.beat("cg-a", "m1", 4)
    await script.beat("cg-a", "m1", 2)
    await script.beat("cg-a", "m1", 2, {"cg-two": [2]})
    await script.beat("cg-a", "m1", 2, owned)
    await script.beat("cg-a", "m9", 2)
    await script.beat("cg-a", "m1", 3, owned, rebalance_timeout_ms=1000, subscribed_topic_names=["cg-two"])


async def _offsets(script: Script) -> None:
    script.say("# Offsets")
    await script.commit("cg-a", "m1", 3, "cg-two", 0)
    await script.commit("cg-a", "m1", 2, "cg-two", 0)
    await script.commit("cg-a", "m1", 2, "cg-two", 3)
    await script.commit("cg-a", "m2", 2, "cg-two", 3)
    await script.commit("cg-a", "m1", 4, "cg-two", 0)
    await script.commit("cg-a", "m9", 3, "cg-two", 0)
    await script.commit("cg-a", "", -1, "cg-two", 0)
    await script.commit("cg-a", "m1", 3, "cg-two", 0, version=8)
    await script.fetch("cg-a", "m1", 3, "cg-two", 0)
    await script.fetch("cg-a", "m1", 2, "cg-two", 0)
    await script.fetch("cg-a", "m9", 3, "cg-two", 0)
    await script.fetch("cg-a", None, -1, "cg-two", 0)


async def _static_members(script: Script) -> None:
    script.say("# Static members")
    await script.join("cg-b", "s1", ["cg-two"], instance_id="i1")
    await script.join("cg-b", "s2", ["cg-two"], instance_id="i1")
    await script.beat("cg-b", "s1", -2, instance_id="i1")
    await script.describe("cg-b")
    await script.join("cg-b", "s2", ["cg-two"], instance_id="i1")
    await script.beat("cg-b", "s1", 2, instance_id="i1")
    await script.beat("cg-b", "s2", 2, instance_id="i1")
    await script.beat("cg-b", "s2", 2, instance_id="i9")
    await script.beat("cg-b", "s2", -1, instance_id="i9")
    await script.beat("cg-b", "s1", -1, instance_id="i1")
    await script.beat("cg-b", "s2", -1, instance_id="i1")
    await script.describe("cg-b")


async def _expressions(script: Script, wire: Wire) -> None:
    script.say("# Regular expressions")
    full: dict[str, Any] = {"rebalance_timeout_ms": 1000}
    await script.beat("cg-c", "r1", 0, {}, subscribed_topic_regex="cg-(one|two)", **full)
    # It is resolved in the background.
    for _ in range(100):
        request = ConsumerGroupDescribeRequest(["cg-c"])
        if (await wire.ask(request, 1)).groups[0].group_epoch == 2:
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(_ASSIGNMENT_INTERVAL_SECONDS)
    await script.beat("cg-c", "r1", 1)
    await script.describe("cg-c")
    await script.beat("cg-c", "r1", -1)


async def _both_protocols(script: Script, wire: Wire) -> None:
    script.say("# A member of each protocol")
    member_id = await _classic_join(script, wire, "", 5)
    member_id = await _classic_join(script, wire, member_id, 5)
    await _classic_sync(script, wire, member_id, 1, {"cg-two": [0, 1, 2, 3]})
    await script.join("cg-d", "c1", ["cg-two"])
    await _describe_classic(script, wire)
    await _classic_heartbeat(script, wire, member_id, 1)
    await _classic_join(script, wire, member_id, 5)
    await _classic_sync(script, wire, member_id, 2, None)
    await _classic_heartbeat(script, wire, member_id, 2)
    await script.beat("cg-d", "c1", 2)
    await script.list("cg-a", "cg-d")
    await script.list("cg-a", "cg-b", "cg-c", "cg-d", types_filter=["consumer"])
    await script.beat("cg-d", "c1", -1)
    await _describe_classic(script, wire)
    await _classic_heartbeat(script, wire, member_id, 2)
    await _classic_join(script, wire, member_id, 5)
    request = LeaveGroupRequest("cg-d", members=[MemberIdentity(member_id)])
    script.say(f"classic leave: {ErrorCode((await wire.ask(request, 4)).members[0].error_code).name}")


async def _end(script: Script, wire: Wire) -> None:
    script.say("# The end")
    response = await wire.ask(DeleteGroupsRequest(["cg-a", "cg-b"]), 2)
    script.say(f"delete: {sorted((each.group_id, ErrorCode(each.error_code).name) for each in response.results)}")
    await script.beat("cg-a", "m1", -1)
    await script.beat("cg-a", "m2", -1)
    await script.describe("cg-a", "cg-b")
    response = await wire.ask(DeleteGroupsRequest(["cg-a"]), 2)
    script.say(f"delete: {sorted((each.group_id, ErrorCode(each.error_code).name) for each in response.results)}")
    await script.describe("cg-a")


async def _classic_join(script: Script, wire: Wire, member_id: str, version: int) -> str:
    request = JoinGroupRequest(
        group_id="cg-d",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", SUBSCRIPTION)],
    )
    joined = await wire.ask(request, version)
    leads = "leads" if joined.leader == joined.member_id else "follows"
    script.say(
        f"classic join: {ErrorCode(joined.error_code).name} generation {joined.generation_id} "
        f"{joined.protocol_name} {leads} {len(joined.members)}"
    )
    member_id: str = joined.member_id
    return member_id


async def _classic_sync(
    script: Script, wire: Wire, member_id: str, generation: int, assigns: dict[str, list[int]] | None
) -> None:
    rows = []
    if assigns is not None:
        data = b"\x00\x01\x00\x00\x00\x01\x00\x06cg-two\x00\x00\x00\x04"
        data += b"".join(number.to_bytes(4, "big") for number in assigns["cg-two"]) + b"\xff\xff\xff\xff"
        rows = [SyncGroupRequestAssignment(member_id, data)]
    request = SyncGroupRequest(
        group_id="cg-d",
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=rows,
    )
    synced = await wire.ask(request, 5)
    script.say(
        f"classic sync: {ErrorCode(synced.error_code).name} {synced.protocol_type} {synced.protocol_name} "
        f"{bytes(synced.assignment).hex()}"
    )


async def _classic_heartbeat(script: Script, wire: Wire, member_id: str, generation: int) -> None:
    response = await wire.ask(HeartbeatRequest("cg-d", generation, member_id), 4)
    script.say(f"classic heartbeat {generation}: {ErrorCode(response.error_code).name}")


async def _describe_classic(script: Script, wire: Wire) -> None:
    for version in (5, 6):
        (group,) = (await wire.ask(DescribeGroupsRequest(["cg-d"]), version)).groups
        script.say(
            f"classic describe: {ErrorCode(group.error_code).name} {group.error_message} {group.group_state} "
            f"{group.protocol_type} {len(group.members)}"
        )
