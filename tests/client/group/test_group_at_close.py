"""Closing a consumer of a group: its listener is called, and may still commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.client import (
    Admin,
    ClosedError,
    CommittedOffset,
    Consumer,
    MembershipError,
    RebalanceListener,
    TopicPartition,
)
from tests.client.conftest import MakeTopic
from tests.client.group.test_group import BOTH, RecordingListener, consumer_of, numbers, read, share, write


class CommitsAtTheEnd(RebalanceListener):
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        assert await self._consumer.position(partitions[0]) == 10
        await self._consumer.commit()
        assert await self._consumer.committed(partitions) == {partitions[0]: CommittedOffset(10, 0)}


class Fails(RebalanceListener):
    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        raise LookupError("of the user")


@pytest.mark.parametrize("settings", BOTH)
async def test_closing_revokes_the_partitions(bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]) -> None:
    topic = await make_topic(2)
    listener = RecordingListener()
    async with consumer_of(bootstrap, topic, **settings) as consumer:
        await consumer.subscribe(topic, listener)
        await share(consumer, partitions=2)
    assert listener.calls == [("assigned", [0, 1]), ("revoked", [0, 1])]
    await consumer.close()
    assert len(listener.calls) == 2


@pytest.mark.parametrize("settings", BOTH)
async def test_a_listener_commits_at_close(bootstrap: str, make_topic: MakeTopic, settings: dict[str, Any]) -> None:
    topic = await make_topic(1)
    await write(bootstrap, topic, numbers(10), 1)
    async with consumer_of(bootstrap, topic, enable_auto_commit=False, **settings) as consumer:
        await consumer.subscribe(topic, CommitsAtTheEnd(consumer))
        await read(consumer, 10)
    with pytest.raises(ClosedError):
        await consumer.commit()
    async with consumer_of(bootstrap, topic, **settings) as consumer:
        assert await consumer.committed([(topic, 0)]) == {(topic, 0): CommittedOffset(10, 0)}


async def test_an_exception_that_ends_async_with_revokes_too(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(1)
    listener = RecordingListener()

    async def fail() -> None:
        async with consumer_of(bootstrap, topic) as consumer:
            await consumer.subscribe(topic, listener)
            await share(consumer, partitions=1)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert listener.calls == [("assigned", [0]), ("revoked", [0])]


async def test_the_error_of_a_listener_at_close_is_raised_after_the_group_was_left(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(1)
    consumer = consumer_of(bootstrap, topic)
    await consumer.start()
    await consumer.subscribe(topic, Fails())
    await share(consumer, partitions=1)
    with pytest.raises(LookupError, match="of the user"):
        await consumer.close()
    async with Admin(bootstrap) as admin:
        assert (await admin.describe_groups([f"group-{topic}"])).value(f"group-{topic}").members == ()


async def test_the_listener_of_a_consumer_that_never_joined_is_not_called(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(1)
    listener = RecordingListener()
    async with consumer_of(bootstrap, topic) as consumer:
        await consumer.subscribe(topic, listener)
    assert listener.calls == []


async def test_a_member_that_was_removed_has_lost_its_partitions_at_close(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(1)
    listener = RecordingListener()
    async with consumer_of(bootstrap, topic, max_poll_interval_ms=200) as consumer:
        await consumer.subscribe(topic, listener)
        await share(consumer, partitions=1)
        async with asyncio.timeout(30), Admin(bootstrap) as admin:
            while (await admin.describe_groups([f"group-{topic}"])).value(f"group-{topic}").members:
                pass
            while not await accepts_commit(consumer, (topic, 0)):
                pass
    assert listener.calls == [("assigned", [0]), ("lost", [0])]


async def accepts_commit(consumer: Consumer, partition: tuple[str, int]) -> bool:
    """Whether the consumer has left its group: a removed member cannot commit, a consumer outside of it can."""
    try:
        await consumer.commit({partition: 0})
    except MembershipError:
        return False
    return True
