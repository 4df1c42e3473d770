"""Transactions of our producer against brokers: Apache Kafka with each version of the protocol, and ours."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import (
    Admin,
    ConfigurationError,
    Consumer,
    Producer,
    ProducerFencedError,
    TopicPartition,
    TransactionAbortedError,
)
from tests.client.conftest import MakeTopic
from tests.client.provoked_errors import provokes
from tests.client.transactions.versions import set_transaction_version

VERSIONS = [0, 1, 2]

pytestmark = pytest.mark.servers("odradek", "apache")


async def read(bootstrap: str, topic: str, isolation_level: Any = "read_committed") -> list[bytes | None]:
    """All records of a topic of one partition up to its end, as of now."""
    async with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level=isolation_level) as consumer:
        partition = (topic, 0)
        consumer.assign([partition])
        [end] = (await consumer.end_offsets([partition])).values()
        values = []
        while await consumer.position(partition) < end:
            values += [record.value for record in await consumer.poll(100)]
        return values


@pytest.mark.parametrize("version", VERSIONS)
async def test_committed_records_are_read_and_aborted_ones_are_not(
    bootstrap: str, make_topic: MakeTopic, version: int
) -> None:
    await set_transaction_version(bootstrap, version)
    topic = await make_topic(1)
    async with Producer(bootstrap, transactional_id=topic, linger_ms=0) as producer:
        for number in range(4):
            async with producer.transaction():
                await producer.send(topic, b"committed %d" % number)
            with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is what is tested
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"aborted %d" % number)
                    raise ZeroDivisionError
        async with producer.transaction():
            pass
    assert await read(bootstrap, topic) == [b"committed %d" % number for number in range(4)]
    assert len(await read(bootstrap, topic, "read_uncommitted")) == 8


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_cancellation_aborts_and_the_producer_goes_on(
    bootstrap: str, make_topic: MakeTopic, version: int
) -> None:
    await set_transaction_version(bootstrap, version)
    topic = await make_topic(1)
    written = asyncio.Event()

    async def wait(producer: Producer) -> None:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"cancelled")
            written.set()
            await asyncio.Event().wait()

    async with Producer(bootstrap, transactional_id=topic, linger_ms=0) as producer:
        task = asyncio.create_task(wait(producer))
        await written.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with producer.transaction():
            await producer.send(topic, b"committed")
            with pytest.raises(ConfigurationError, match="has not ended"):
                async with producer.transaction():
                    pass
        with pytest.raises(ConfigurationError, match="no open transaction"):
            await producer.send(topic, b"outside")
    assert await read(bootstrap, topic) == [b"committed"]
    assert await read(bootstrap, topic, "read_uncommitted") == [b"cancelled", b"committed"]


@provokes(ProducerFencedError)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_newer_producer_fences_the_one_before(bootstrap: str, make_topic: MakeTopic, version: int) -> None:
    await set_transaction_version(bootstrap, version)
    topic = await make_topic(1)
    async with Producer(bootstrap, transactional_id=topic) as zombie, Producer(bootstrap, transactional_id=topic):
        with pytest.raises(ProducerFencedError, match="PRODUCER_FENCED"):
            async with zombie.transaction():
                await zombie.send(topic, b"zombie")
        with pytest.raises(ProducerFencedError):
            async with zombie.transaction():
                pass
    assert await read(bootstrap, topic) == []


@provokes(TransactionAbortedError)
async def test_with_version_2_a_producer_is_not_fenced_by_the_timeout_of_its_transaction(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    await set_transaction_version(bootstrap, 2)  # with version 1 Apache Kafka refuses the next epoch
    topic = await make_topic(1)
    async with Producer(bootstrap, transactional_id=topic, transaction_timeout_ms=1, linger_ms=0) as producer:
        with pytest.raises(TransactionAbortedError):  # noqa: PT012
            async with producer.transaction():
                await producer.send_and_wait(topic, b"too late")
                await until_ended(bootstrap, topic)
        async with producer.transaction():  # a record would be too late again
            pass
    assert await read(bootstrap, topic) == []


async def until_ended(bootstrap: str, topic: str) -> None:
    """Wait until the last stable offset is the end of the log."""
    async with Admin(bootstrap) as admin:
        ends = [-1, 0]
        while ends[0] != ends[1]:
            levels: list[Any] = ["read_committed", "read_uncommitted"]
            found = [await admin.list_offsets({(topic, 0): -1}, isolation_level=level) for level in levels]
            ends = [one.value(TopicPartition(topic, 0)).offset for one in found]
            await asyncio.sleep(0.01)
