"""Rebalance listeners that call the consumer, or fail, and calls of other tasks while they run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.client import Admin, BrokerError, ClosedError, Consumer, NewTopic, RebalanceListener, TopicPartition
from odradek.client.errors import ConfigurationError

THREE: list[dict[str, Any]] = [
    {},
    {"partition_assignment_strategy": "cooperative-sticky"},
    {"group_protocol": "consumer"},
]
of_each_kind = pytest.mark.parametrize("settings", THREE, ids=["eager", "cooperative", "consumer"])
PROPERTIES = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture
async def bootstrap() -> AsyncIterator[str]:
    """The address of a broker with the topics a and b, of two partitions."""
    async with Broker(PROPERTIES) as broker:
        async with Admin(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("a", 2), NewTopic("b", 2)])).values_or_raise()
        yield broker.bootstrap


def consumer_of(bootstrap: str, **settings: Any) -> Consumer:
    common = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100}
    return Consumer(bootstrap, group_id="g", **common | settings)


async def members(bootstrap: str) -> int:
    async with Admin(bootstrap) as admin:
        [described] = (await admin.describe_groups(["g"])).values()
        return 0 if isinstance(described, BrokerError) else len(described.members)  # or there is no such group yet


async def poll_until_assigned(consumer: Consumer) -> None:
    async with asyncio.timeout(20):
        while not consumer.assignment():
            await consumer.poll(timeout_ms=50)


Call = Callable[[], Awaitable[object]]


async def nothing() -> None:
    pass


class Listener(RebalanceListener):
    """Records its calls, and calls a function in each, once."""

    def __init__(self, *, assigned: Call = nothing, revoked: Call = nothing) -> None:
        self.calls: list[str] = []
        self._assigned, self._revoked = assigned, revoked

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        await self._call("assigned", self._assigned)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._call("revoked", self._revoked)

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        await self._call("lost", nothing)

    async def _call(self, name: str, function: Call) -> None:
        is_first = name not in self.calls
        self.calls.append(name)
        if is_first:
            await function()
            self.calls.append(f"end of {name}")


async def cancelled() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


@of_each_kind
async def test_a_cancellation_in_the_listener_is_raised(bootstrap: str, settings: dict[str, Any]) -> None:
    listener = Listener(assigned=cancelled)
    async with consumer_of(bootstrap, **settings) as consumer:
        await consumer.subscribe("a", listener)
        with pytest.raises(asyncio.CancelledError):
            await consumer.poll(timeout_ms=10_000)
        assert listener.calls == ["assigned"]


@pytest.mark.parametrize("how", ["directly", "in a task", "with a time-out"])
@of_each_kind
async def test_the_listener_unsubscribes_as_partitions_are_assigned(
    bootstrap: str, settings: dict[str, Any], how: str
) -> None:
    async with consumer_of(bootstrap, **settings) as consumer:
        calls: dict[str, Call] = {
            "directly": consumer.unsubscribe,
            "in a task": lambda: asyncio.create_task(consumer.unsubscribe()),
            "with a time-out": lambda: asyncio.wait_for(consumer.unsubscribe(), 10),
        }
        listener = Listener(assigned=calls[how])
        await consumer.subscribe("a", listener)
        async with asyncio.timeout(20):
            while "end of assigned" not in listener.calls:
                with contextlib.suppress(ConfigurationError):  # it has unsubscribed, and will end
                    await consumer.poll(timeout_ms=50)
        consumer.assign([("b", 0)])
        await consumer.poll(timeout_ms=300)
        assert consumer.assignment() == [("b", 0)]
        assert await members(bootstrap) == 0
        assert "lost" not in listener.calls


@of_each_kind
async def test_the_listener_unsubscribes_as_partitions_are_revoked(bootstrap: str, settings: dict[str, Any]) -> None:
    async with consumer_of(bootstrap, **settings) as consumer:
        listener = Listener(revoked=consumer.unsubscribe)
        await consumer.subscribe("a", listener)
        await poll_until_assigned(consumer)
        await consumer.subscribe("b", listener)
        async with asyncio.timeout(20):
            while "end of revoked" not in listener.calls:
                await consumer.poll(timeout_ms=50)
        assert consumer.assignment() == []
        assert await members(bootstrap) == 0
        assert listener.calls == ["assigned", "end of assigned", "revoked", "end of revoked"]


@of_each_kind
async def test_a_close_while_partitions_are_revoked_in_another_task(bootstrap: str, settings: dict[str, Any]) -> None:
    listener = Listener(revoked=lambda: asyncio.sleep(30))
    consumer = consumer_of(bootstrap, **settings)
    await consumer.start()
    await consumer.subscribe("a", listener)
    await poll_until_assigned(consumer)
    await consumer.subscribe("b", listener)
    polling = asyncio.create_task(consumer.poll())
    async with asyncio.timeout(20):
        while "revoked" not in listener.calls:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await consumer.close()
    with pytest.raises(ClosedError):
        await polling
    assert listener.calls == ["assigned", "end of assigned", "revoked", "revoked"]  # the first was cancelled
    assert await members(bootstrap) == 0


@of_each_kind
async def test_to_unsubscribe_can_be_cancelled(bootstrap: str, settings: dict[str, Any]) -> None:
    """At each of its awaits: the consumer is subscribed as before then, or it is not."""
    for turns in range(1, 30):
        async with consumer_of(bootstrap, **settings) as consumer:
            await consumer.subscribe("a")
            await poll_until_assigned(consumer)
            leaving = asyncio.create_task(consumer.unsubscribe())
            for _ in range(turns):
                await asyncio.sleep(0)
            if leaving.done():
                return
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            await poll_until_assigned(consumer)
    pytest.fail("it never ended by itself")


@of_each_kind
async def test_a_poll_beside_an_unsubscribe_does_not_join(bootstrap: str, settings: dict[str, Any]) -> None:
    listener = Listener(revoked=lambda: asyncio.sleep(0.5))
    async with consumer_of(bootstrap, **settings) as consumer, consumer_of(bootstrap, **settings) as other:
        await consumer.subscribe("a", listener)
        await poll_until_assigned(consumer)
        leaving = asyncio.create_task(consumer.unsubscribe())
        await other.subscribe("a")
        while not leaving.done():
            await other.poll(timeout_ms=20)
            await asyncio.gather(consumer.poll(timeout_ms=20), return_exceptions=True)
        await leaving
        await poll_until_assigned(other)
        assert listener.calls == ["assigned", "end of assigned", "revoked", "end of revoked"]
        assert await members(bootstrap) == 1


async def test_a_join_that_waits_longer_than_the_poll_interval_costs_nothing(bootstrap: str) -> None:
    """The consumer is in `poll` all the time; another member makes the group wait."""
    listener = Listener()
    async with consumer_of(bootstrap, max_poll_interval_ms=500) as consumer, consumer_of(bootstrap) as slow:
        await slow.subscribe("a")
        await poll_until_assigned(slow)
        await consumer.subscribe("a", listener)
        polling = asyncio.create_task(consumer.poll())
        for _ in range(3):
            await asyncio.sleep(1)
            await slow.poll(timeout_ms=150)
        assert listener.calls[:2] == ["assigned", "end of assigned"]
        assert "lost" not in listener.calls
        polling.cancel()


async def test_a_cancelled_close_ends_the_poll_of_another_task(bootstrap: str) -> None:
    for turns in range(1, 8):
        consumer = consumer_of(bootstrap)
        await consumer.start()
        consumer.assign([("a", 0)])
        polling = asyncio.create_task(consumer.poll())
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(consumer.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        with pytest.raises(ClosedError):
            await asyncio.wait_for(polling, 10)
