"""Members and the broker's group state machines in virtual time: what a member owns, commits and reports."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.client import Consumer, RebalanceListener, TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.schema import ZERO_UUID
from tests.client.reading import fill, read
from tests.client.scripted_broker import DROP, Answer, Broker
from tests.client.scripted_groups import GroupCoordinator
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import now
from tests.client.virtual_time import simulated

of_both_protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def a_cluster() -> tuple[ScriptedNetwork, GroupCoordinator]:
    """One broker with the topics a and b, of one partition with 20 records, and members' sessions of 6 seconds."""
    groups = GroupCoordinator()
    network = ScriptedNetwork(groups=groups)
    for topic in ("a", "b"):
        fill(*network.create(topic), 20)
    return network, groups


def consumer_of(network: ScriptedNetwork, protocol: str, **settings: Any) -> Consumer:
    common = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 1000, "session_timeout_ms": 6000}
    return Consumer(network.bootstrap, network=network, group_id="g", group_protocol=protocol, **common | settings)


async def poll_for(seconds: float, *consumers: Consumer) -> None:
    end = now() + seconds
    while now() < end:
        for consumer in consumers:
            await consumer.poll(timeout_ms=50)


@of_both_protocols
@simulated
async def test_a_repeated_automatic_commit_does_not_replace_a_later_one(protocol: str) -> None:
    network, groups = a_cluster()
    async with consumer_of(network, protocol, auto_commit_interval_ms=1000) as consumer:
        await consumer.subscribe("a")
        await read(consumer, 5)
        await asyncio.sleep(1.5)
        network.brokers[1].script("OffsetCommit", refuse(groups, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        await read(consumer, 5)  # begins to commit 5
        await asyncio.sleep(0.05)
        await consumer.commit()
        await asyncio.sleep(1)
        assert groups.committed("g", "a", 0) == 10


@of_both_protocols
@simulated
async def test_a_pattern_ends_with_a_subscription_by_name(protocol: str) -> None:
    network, _ = a_cluster()
    async with consumer_of(network, protocol) as consumer:
        await consumer.subscribe(re.compile("[ab]"))
        await poll_for(3, consumer)
        assert consumer.assignment() == [("a", 0), ("b", 0)]
        await consumer.subscribe(["a"])
        await poll_for(5, consumer)
        assert consumer.assignment() == [("a", 0)]


@simulated
async def test_a_join_looks_up_the_names_of_topics_until_a_broker_answers() -> None:
    network, _ = a_cluster()
    dropped: list[MetadataRequest] = []

    async def drop_look_ups_by_id(broker: Broker, request: Any) -> Answer:
        by_id = isinstance(request, MetadataRequest) and any(row.topic_id != ZERO_UUID for row in request.topics or ())
        if by_id and len(dropped) < 3:
            dropped.append(request)
            return DROP
        return await broker.serve(request)

    network.disturbance = drop_look_ups_by_id
    async with consumer_of(network, "consumer") as consumer:
        await consumer.subscribe("a")
        await poll_for(3, consumer)
        assert len(dropped) == 3
        assert consumer.assignment() == [("a", 0)]


@of_both_protocols
@simulated
async def test_a_member_finds_the_coordinator_again_that_moved_before_it_joins(protocol: str) -> None:
    groups = GroupCoordinator()
    network = ScriptedNetwork(2, groups=groups)
    network.create("a")
    async with consumer_of(network, protocol) as consumer:
        await consumer.subscribe("a")
        await poll_for(1, consumer)
        await consumer.unsubscribe()
        groups.move(2)
        await consumer.subscribe("a")
        await poll_for(5, consumer)
        assert consumer.assignment() == [("a", 0)]


@of_both_protocols
@simulated
async def test_a_subscription_during_a_join_that_is_repeated_is_joined(protocol: str) -> None:
    network, groups = a_cluster()
    for join in ("JoinGroup", "ConsumerGroupHeartbeat"):
        network.brokers[1].script(join, refuse(groups, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    async with consumer_of(network, protocol, retry_backoff_ms=500) as consumer:
        await consumer.subscribe("a")
        await consumer.poll(timeout_ms=200)
        await consumer.subscribe("b")
        await poll_for(5, consumer)
        assert consumer.assignment() == [("b", 0)]


@simulated
async def test_a_partition_whose_owner_still_takes_it_over_is_given_to_no_other() -> None:
    class Slow(RebalanceListener):
        async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            await asyncio.sleep(3)

    network, _ = a_cluster()
    async with consumer_of(network, "consumer") as slow, consumer_of(network, "consumer") as other:
        await slow.subscribe(["a", "b"], Slow())
        await slow.poll(timeout_ms=100)
        await slow.subscribe(["a"])  # while its listener runs
        await other.subscribe(["a", "b"])
        for _ in range(50):
            await other.poll(timeout_ms=50)
            assert not set(slow.assignment()) & set(other.assignment())
        await poll_for(3, slow, other)
        assert (slow.assignment(), other.assignment()) == ([("a", 0)], [("b", 0)])


@simulated
async def test_a_partition_whose_listener_fails_to_give_it_up_is_given_to_no_other() -> None:
    class Failing(RebalanceListener):
        async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            failed.append(partitions)
            if len(failed) == 1:
                raise ValueError("of the user")

    failed: list[Sequence[TopicPartition]] = []
    network, _ = a_cluster()
    async with consumer_of(network, "consumer") as failing, consumer_of(network, "consumer") as other:
        await failing.subscribe(["a", "b"], Failing())
        await poll_for(1, failing)
        await failing.subscribe(["a"], Failing())
        with pytest.raises(ValueError, match="of the user"):
            await poll_for(2, failing)
        await other.subscribe(["b"])
        await poll_for(3, other)
        assert (failing.assignment(), other.assignment()) == ([("a", 0), ("b", 0)], [])
        await poll_for(3, failing, other)
        assert (failing.assignment(), other.assignment()) == ([("a", 0)], [("b", 0)])


@simulated
async def test_a_partition_of_a_target_that_may_be_old_is_not_taken_over() -> None:
    """The report that the partition is not owned arrives, so another member gets it, and the answer is lost."""

    class Notes(RebalanceListener):
        async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            assigned.extend(partitions)

    async def lose_an_answer(broker: Broker, request: Any) -> Answer:
        answer = await broker.serve(request)
        if is_losing and isinstance(request, ConsumerGroupHeartbeatRequest) and request.topic_partitions:
            lost.set()
            return DROP
        return answer

    assigned: list[TopicPartition] = []
    is_losing, lost = False, asyncio.Event()
    network, _ = a_cluster()
    network.disturbance = lose_an_answer
    async with consumer_of(network, "consumer") as consumer, consumer_of(network, "consumer") as other:
        await consumer.subscribe(["a"], Notes())
        await poll_for(1, consumer)
        await consumer.subscribe(["a", "b"], Notes())
        await asyncio.sleep(2)  # a heartbeat has the target a and b, which the next poll would take over
        await consumer.subscribe(["a"], Notes())
        is_losing = True
        await lost.wait()
        is_losing = False
        await other.subscribe(["b"])
        await poll_for(0.3, other)
        assert other.assignment() == [("b", 0)]
        await poll_for(3, consumer, other)
        assert assigned == [("a", 0)]
        assert (consumer.assignment(), other.assignment()) == ([("a", 0)], [("b", 0)])


@simulated
async def test_partitions_of_a_member_that_is_removed_during_a_join_are_lost() -> None:
    class Notes(RebalanceListener):
        async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
            lost.extend(partitions)

    lost: list[TopicPartition] = []
    network, groups = a_cluster()
    async with consumer_of(network, "classic", partition_assignment_strategy="cooperative-sticky") as consumer:
        await consumer.subscribe("a", Notes())
        await poll_for(1, consumer)
        network.brokers[1].script("SyncGroup", refuse(groups, ErrorCode.UNKNOWN_MEMBER_ID))
        await consumer.subscribe(["a", "b"], Notes())
        await poll_for(1, consumer)
        assert lost == [("a", 0)]


@of_both_protocols
@simulated
async def test_a_task_of_an_earlier_listener_ends_a_join_by_unsubscribing(protocol: str) -> None:
    class Starting(RebalanceListener):
        async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            if not tasks:
                tasks.append(asyncio.create_task(unsubscribe_later()))

    async def unsubscribe_later() -> None:
        await is_joining.wait()
        await consumer.unsubscribe()

    async def serve_late(broker: Broker, request: Any) -> Answer:
        if is_slow and groups.serves(request):
            await asyncio.sleep(2)
        return await broker.serve(request)

    tasks: list[asyncio.Task[None]] = []
    is_joining = asyncio.Event()
    is_slow = False
    network, groups = a_cluster()
    network.disturbance = serve_late
    async with consumer_of(network, protocol) as consumer:
        await consumer.subscribe("a", Starting())
        await poll_for(3, consumer)
        is_slow = True
        await consumer.subscribe(["a", "b"], Starting())
        await consumer.poll(timeout_ms=100)
        is_joining.set()
        await tasks[0]
        await asyncio.sleep(20)
        assert consumer.assignment() == []
        assert groups.members("g") == set()


@of_both_protocols
@simulated
async def test_a_member_sends_heartbeats_while_it_waits_for_committed_offsets(protocol: str) -> None:
    network, groups = a_cluster()
    ended: list[str] = []
    groups.on_session_end = ended.append

    async def unstable(broker: Broker, request: Any) -> Answer:
        if isinstance(request, OffsetFetchRequest) and now() < 15:  # as while a transaction is open
            return groups.refusal(request, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return await broker.serve(request)

    network.disturbance = unstable
    async with consumer_of(network, protocol) as consumer:
        await consumer.subscribe("a")
        await poll_for(20, consumer)
        assert consumer.assignment() == [("a", 0)]
        assert ended == []


def refuse(groups: GroupCoordinator, code: ErrorCode) -> Any:
    async def answer(_: Broker, request: Any) -> Answer:
        return groups.refusal(request, code)

    return answer
