"""What is asked of a member while it joins: it is done when the join has ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.client import (
    Admin,
    BrokerError,
    CommittedOffset,
    Consumer,
    NewTopic,
    Producer,
    RebalanceListener,
    TopicPartition,
)
from odradek.client.group.consumer_member import ConsumerMember

BOTH: list[dict[str, Any]] = [{}, {"group_protocol": "consumer"}]
SESSION_MS = 1000
PROPERTIES = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.min.session.timeout.ms": str(SESSION_MS),
}


@pytest.fixture
async def bootstrap() -> AsyncIterator[str]:
    """The address of a broker with the topics a, of one partition, and b, of two."""
    async with Broker(PROPERTIES) as broker:
        async with Admin(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("a", 1), NewTopic("b", 2)])).values_or_raise()
        yield broker.bootstrap


def consumer_of(bootstrap: str, **settings: Any) -> Consumer:
    common = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": SESSION_MS}
    return Consumer(bootstrap, group_id="g", **common | settings)


async def poll_until_assigned(consumer: Consumer, *expected: tuple[str, int]) -> None:
    async with asyncio.timeout(20):
        while consumer.assignment() != list(expected):
            await consumer.poll(timeout_ms=50)


async def poll_for_ever(consumer: Consumer) -> None:
    while True:
        await consumer.poll(timeout_ms=50)


async def poll_longer_than_a_session(consumer: Consumer) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + 3 * SESSION_MS / 1000
    while loop.time() < end:
        await consumer.poll(timeout_ms=100)


class Listener(RebalanceListener):
    """Records its calls; the first `on_assigned` waits until `go_on` is set."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.assigning = asyncio.Event()
        self.go_on = asyncio.Event()

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append("assigned")
        self.assigning.set()
        await self.go_on.wait()

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append("lost")


@pytest.mark.parametrize("settings", BOTH)
async def test_a_subscription_during_a_join_is_joined(bootstrap: str, settings: dict[str, Any]) -> None:
    async with consumer_of(bootstrap, **settings) as consumer, Producer(bootstrap) as producer:
        await (await producer.send("b", b"wanted", partition=1))
        await consumer.subscribe(["a"])
        await consumer.poll(timeout_ms=0)
        await consumer.subscribe(["b"])
        [record] = await consumer.poll(timeout_ms=10_000)
        assert record.value == b"wanted"
        assert consumer.assignment() == [("b", 0), ("b", 1)]


@pytest.mark.parametrize("settings", BOTH)
async def test_a_member_whose_listener_takes_longer_than_its_session_stays_one(
    bootstrap: str, settings: dict[str, Any]
) -> None:
    listener = Listener()
    async with consumer_of(bootstrap, **settings) as slow, consumer_of(bootstrap, **settings) as other:
        await slow.subscribe("a", listener)
        polling = asyncio.create_task(slow.poll(timeout_ms=30_000))
        await listener.assigning.wait()
        await other.subscribe("b")
        await poll_longer_than_a_session(other)
        listener.go_on.set()
        reading = asyncio.create_task(poll_for_ever(other))
        async with Producer(bootstrap) as producer:
            await (await producer.send("a", b"for the member"))
        [record] = await polling
        assert record.value == b"for the member"
        reading.cancel()
        assert "lost" not in listener.calls


async def test_a_member_that_was_removed_while_its_listener_ran_joins_again(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    async with (
        consumer_of(bootstrap, group_protocol="consumer") as slow,
        consumer_of(bootstrap, group_protocol="consumer") as other,
    ):
        await slow.subscribe("a", listener)
        with monkeypatch.context() as silenced:  # as if the machine stood still
            silenced.setattr(ConsumerMember, "keep_alive", forget_to)
            polling = asyncio.create_task(slow.poll(timeout_ms=30_000))
            await listener.assigning.wait()
            await other.subscribe("a")
            await poll_until_assigned(other, ("a", 0))
        await other.close()
        listener.go_on.set()
        async with Producer(bootstrap) as producer:
            await (await producer.send("a", b"for the member that is back"))
        [record] = await polling
        assert record.value == b"for the member that is back"
        assert listener.calls == ["assigned", "lost", "assigned"]


async def forget_to(*_: object) -> None:
    """Send no heartbeat."""


async def test_partitions_that_are_added_while_the_leaders_listener_runs_are_assigned(bootstrap: str) -> None:
    listener = Listener()
    async with consumer_of(bootstrap, session_timeout_ms=30_000, metadata_max_age_ms=100) as leader:
        await leader.subscribe("b", listener)
        polling = asyncio.create_task(leader.poll(timeout_ms=1000))
        await listener.assigning.wait()
        async with Admin(bootstrap) as admin:
            (await admin.create_partitions({"b": 3})).value("b")
        await asyncio.sleep(0.5)  # until the leader has read the metadata
        listener.go_on.set()
        await polling
        await poll_until_assigned(leader, ("b", 0), ("b", 1), ("b", 2))


@pytest.mark.parametrize("timeout_ms", [None, 10_000])
@pytest.mark.parametrize("settings", BOTH)
async def test_a_time_out_of_the_listener_is_raised(
    bootstrap: str, settings: dict[str, Any], timeout_ms: int | None
) -> None:
    class TimesOut(RebalanceListener):
        async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            raise TimeoutError("of the user's database")

    async with consumer_of(bootstrap, **settings) as consumer:
        await consumer.subscribe("a", TimesOut())
        with pytest.raises(TimeoutError, match="of the user's database"):
            await consumer.poll(timeout_ms)


async def test_a_pattern_waits_for_the_broker_as_names_do() -> None:
    async with Broker(PROPERTIES) as broker:
        async with Admin(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("a", 1)])).values_or_raise()
        async with consumer_of(broker.bootstrap, session_timeout_ms=30_000) as consumer:
            await consumer.subscribe(re.compile("a.*"))
            await broker.stop()
            assert await consumer.poll(timeout_ms=500) == []
            await broker.start()
            await poll_until_assigned(consumer, ("a", 0))


@pytest.mark.parametrize("settings", BOTH)
async def test_a_join_that_ended_while_nobody_polled_is_followed_by_heartbeats(
    bootstrap: str, settings: dict[str, Any]
) -> None:
    listener = Listener()
    async with consumer_of(bootstrap, **settings) as busy, consumer_of(bootstrap, **settings) as other:
        await busy.subscribe("a", listener)
        assert await busy.poll(timeout_ms=1) == []
        await listener.assigning.wait()
        listener.go_on.set()  # the join ends, and the user works longer than the session lasts
        await other.subscribe("b")
        await poll_longer_than_a_session(other)
        await poll_until_assigned(busy, ("a", 0))
        assert "lost" not in listener.calls


@pytest.mark.parametrize("settings", BOTH)
async def test_a_close_commits_while_a_rebalance_is_pending(bootstrap: str, settings: dict[str, Any]) -> None:
    async with Producer(bootstrap) as producer:
        await (await producer.send("a", b"read once"))
    async with consumer_of(bootstrap, auto_commit_interval_ms=60_000, **settings) as first:
        await first.subscribe("a")
        [record] = await first.poll(timeout_ms=10_000)
        assert record.value == b"read once"
        await first.subscribe(["a", "b"])  # joins at the next poll
    async with consumer_of(bootstrap, **settings) as second:
        assert await second.committed([("a", 0)]) == {("a", 0): CommittedOffset(1, 0)}


async def test_partitions_are_lost_once_more_if_the_listener_fails(bootstrap: str) -> None:
    """They belong to others: whatever the listener does, they are not committed as if they were owned."""

    class Fails(Listener):
        async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
            await super().on_lost(partitions)
            if self.calls.count("lost") == 1:
                raise ValueError("of the user")

    listener = Fails()
    listener.go_on.set()
    async with (
        consumer_of(bootstrap, max_poll_interval_ms=300, session_timeout_ms=30_000) as slow,
        consumer_of(bootstrap, session_timeout_ms=30_000) as other,
    ):
        await slow.subscribe("a", listener)
        await poll_until_assigned(slow, ("a", 0))
        await other.subscribe("a")
        await poll_until_assigned(other, ("a", 0))
        with pytest.raises(ValueError, match="of the user"):
            await slow.poll(timeout_ms=10_000)
        await slow.poll(timeout_ms=500)
    assert listener.calls[:3] == ["assigned", "lost", "lost"]


async def test_a_listener_that_takes_longer_than_the_poll_interval_costs_the_membership(bootstrap: str) -> None:
    listener = Listener()
    async with (
        consumer_of(bootstrap, max_poll_interval_ms=500, session_timeout_ms=30_000) as slow,
        consumer_of(bootstrap, session_timeout_ms=30_000) as other,
    ):
        await slow.subscribe("a", listener)
        polling = asyncio.create_task(slow.poll(timeout_ms=2000))
        await listener.assigning.wait()
        await other.subscribe("a")
        await poll_until_assigned(other, ("a", 0))
        listener.go_on.set()
        await polling
        assert listener.calls[:2] == ["assigned", "lost"]


@pytest.mark.parametrize("settings", BOTH)
async def test_to_unsubscribe_during_a_join_ends_it(bootstrap: str, settings: dict[str, Any]) -> None:
    """At each of its awaits: the group has no member then, and what the user assigned stays assigned."""
    async with Admin(bootstrap) as admin:
        for turns in range(1, 60, 3):
            async with consumer_of(bootstrap, **settings) as consumer:
                await consumer.subscribe("a")
                polling = asyncio.create_task(consumer.poll(timeout_ms=10_000))
                for _ in range(turns):
                    await asyncio.sleep(0)
                await consumer.unsubscribe()
                consumer.assign([("b", 0)])
                async with Producer(bootstrap) as producer:
                    await (await producer.send("b", b"of the assigned partition", partition=0))
                assert {record.value for record in await polling} == {b"of the assigned partition"}
                assert consumer.assignment() == [("b", 0)]
                [described] = (await admin.describe_groups(["g"])).values()
                assert isinstance(described, BrokerError) or described.members == (), turns  # it may not exist yet
